"""Feature fusion trained with and without its parts, judged on the same windows.

Networks are checkpoints of `mmedge lab train fusion`: with ``--without`` a part of the temporal
aggregation is left out. Those of one seed saw the same windows in the same order. Beside them
stands the newest picture alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from mmedge_lab.judging import EvaluationError
from mmedge_lab.judging.bench import Bench, BenchRequest, Figure, Row, Subject, Sums
from mmedge_lab.training.checkpoint import load_checkpoint
from mmedge_lab.training.feature_cache import CachedFlight, read_flight
from mmedge_lab.training.fusion_session import cached_folders
from mmedge_lab.training.fusion_settings import VALIDATION, FusionSettings
from mmedge_lab.training.window_judging import JUDGED_CONFIGURATIONS, Judgement, judge
from mmedge_lab.training.window_set import WindowSet
from mmedge_lab.worker_processes import OnShare
from mmedge_ros.encoding.bundle.weights import sha256_of

NEWEST, FULL = 'newest picture alone', 'full'
_FIGURES = {
    'worth': Figure('worth of boxes', 'iou', 'boxes'),
    'mean_iou': Figure('mean IoU', 'iou_tall', 'tall'),
    'recall': Figure('recall', 'hits', 'people'),
    'precision': Figure('precision', 'hits', 'shown'),
    'range_error': Figure('range error', 'errors', quantile=0.5),
}


def bench(
    request: BenchRequest, *, features: str = 'out/features', threshold: float = 0.4
) -> Bench:
    """Judge checkpoints of feature fusion on cached flights.

    :param features: what `mmedge lab train fusion --validation SET --features FOLDER` left there
    :param threshold: least score of a box
    """
    folders = cached_folders(Path(features), VALIDATION)
    if not folders:
        raise EvaluationError(
            f'{features} holds no features of validation flights; make them with `mmedge lab '
            'train fusion SET --validation SET --features FOLDER` and name them by --set '
            'features=FOLDER'
        )
    request.input(0, 'checkpoints (fusion.pt) of `mmedge lab train fusion --keep-work`')
    flights = [read_flight(folder) for folder in folders[: 2 if request.quick else None]]
    networks = {}
    for path in request.inputs:
        networks[network_name(load_checkpoint(path)['settings'])] = path
    rows = [
        Row(name, partial(_judged, path, what, threshold), '', words)
        for what, words in (
            ('full', 'all pictures and scans, large networks'),
            ('least', '10 pictures and 5 scans a second, small networks'),
        )
        for name, path in {NEWEST: None, **networks}.items()
    ]
    return Bench(
        'Feature fusion with and without its parts',
        tuple(rows),
        _FIGURES,
        tuple(
            Subject(flight.name, folder, flight.seed or flight.name)
            for flight, folder in zip(flights, folders, strict=False)
        ),
        _opened,
        references=(NEWEST, FULL),
        key=' '.join([str(threshold), *map(sha256_of, request.inputs), *map(str, folders)]),
        about={'flights': len(flights), 'threshold': threshold},
    )


def network_name(settings: dict[str, Any]) -> str:
    """Return what a trained network is called in the table."""
    parts = [f'without {part}' for part in settings.get('without', ())]
    seed = f', seed {settings["seed"]}' if settings.get('seed') else ''
    return (' and '.join(parts) or FULL) + seed


def _opened(subject: Subject, rows: Sequence[Row], on_share: OnShare) -> CachedFlight:  # noqa: ARG001
    return read_flight(subject.flight)


def _judged(path: Path | None, what: str, threshold: float, of: CachedFlight) -> Sums:
    windows = WindowSet((of,), FusionSettings().window, FusionSettings().stride)
    chosen = windows.spread(len(windows.ends), JUDGED_CONFIGURATIONS[what])
    if path is None:
        return plain_sums(judge(windows, chosen, None)[1], threshold)
    from mmedge_lab.training.fusion_training import load_network, run_network

    network = load_network(path)
    fused, _ = judge(windows, chosen, partial(run_network, network))
    return plain_sums(fused, threshold)


def plain_sums(judgement: Judgement, threshold: float) -> Sums:
    """Return the sums that the figures of the bench are made of."""
    figures = judgement.at(threshold)
    return {
        **{name: float(getattr(figures, name)) for name in figures._fields[1:-2]},
        'shown': figures.hits + figures.wrong,
        'boxes': figures.people + figures.wrong,
        'errors': [float(abs(error)) for error in figures.errors],
    }
