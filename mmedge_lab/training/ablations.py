"""Feature fusion trained again and again, in the same way, each time without a part of it.

All trainings of one seed see the same windows in the same order, and are judged at their end
on the same windows; nothing is chosen by what they are judged on. A training that was cut short
goes on from its last epoch, and one that has ended is not done again.
"""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mmedge_lab.training import Report, TrainingError
from mmedge_lab.training.ablation_table import (
    NETWORK,
    NEWEST_PICTURE,
    TABLE,
    VARIANTS,
    Run,
    Variant,
    counts_by_threshold,
    load_run,
    save_run,
    tabulate,
)
from mmedge_lab.training.checkpoint import disk_error, work_folder
from mmedge_lab.training.epoch_training import prepare_torch
from mmedge_lab.training.feature_cache import CachedFlight, flights_digest, read_flight
from mmedge_lab.training.fusion_features import CACHE, TRAIN
from mmedge_lab.training.fusion_settings import FusionSettings
from mmedge_lab.training.window_batches import WindowSource
from mmedge_lab.training.window_judging import JUDGED_CONFIGURATIONS, judge
from mmedge_lab.training.window_set import WindowSet

PLAN, RUNS = 'plan.json', 'runs'
_VALIDATION = 'validation'


@dataclass(frozen=True)
class AblationRequest:
    """What to train with and without, and on what.

    :param features: folder that a fusion training with ``validation`` has left
    :param out: folder of the runs
    :param seeds: so many trainings of each variant, with the seeds 0, 1, ...
    :param flights: learn from so many, evenly from all of them; 0 takes all
    """

    features: Path
    out: Path
    settings: FusionSettings
    seeds: int = 3
    flights: int = 0
    resume: bool = False


def run_ablations(request: AblationRequest, report: Report) -> dict[str, Any]:
    """Train and judge each variant with each seed, and compare them.

    :return: see `tabulate`, with the ``plan`` all trainings share and their number of ``steps``
    :raises TrainingError: if the features cannot be used, or ``out`` holds other runs; after a
        full disk all that is whole is kept
    :raises EncodingError: if a library is missing
    """
    try:
        if (request.out / TABLE).is_file() and not request.resume:
            raise TrainingError(
                f'{request.out} holds ablations that have ended; name another --out, or have '
                'their report written again by --resume'
            )
        learned = _thinned(_flights(request.features, TRAIN), request.flights)
        judged = _flights(request.features, _VALIDATION)
        with work_folder(request.out, PLAN, request.resume) as out:
            identity = _identity(request, learned, judged)
            _keep_plan(out / PLAN, identity)
            (out / RUNS).mkdir(exist_ok=True)
            prepare_torch(out / RUNS, request.settings.threads)
            settings = request.settings
            windows = [
                WindowSet(flights, settings.window, settings.stride)
                for flights in (learned, judged)
            ]
            runs_to_do = [(seed, variant) for seed in range(request.seeds) for variant in VARIANTS]
            runs = []
            for place, (seed, variant) in enumerate(runs_to_do):

                def on_progress(share: float, words: str, place: int = place) -> None:
                    name = f'{runs_to_do[place][1].name}, seed {runs_to_do[place][0]}: {words}'
                    report((place + share) / len(runs_to_do), name)

                path = out / RUNS / f'{variant.name}_{seed}.json'
                if not path.is_file():
                    run = _run(variant, replace(settings, seed=seed), windows, path, on_progress)
                    save_run(path, run)
                    path.with_suffix('.pt').unlink(missing_ok=True)
                runs.append(load_run(path))
        steps = settings.epochs * len(WindowSource(windows[0], settings))
        return {'plan': identity, 'steps': steps, **tabulate(runs)}
    except OSError as err:
        raise disk_error(request.out, PLAN, err) from err


def _run(
    variant: Variant,
    settings: FusionSettings,
    windows: Sequence[WindowSet],
    path: Path,
    on_progress: Report,
) -> Run:
    from mmedge_lab.training.fusion_training import FusionTraining, run_network

    learned, judged = windows
    settings = replace(settings, without=variant.without, whole_window=variant.whole_window)
    begun = time.process_time()
    data = flights_digest(learned.flights)
    training = FusionTraining(learned, settings, path.with_suffix('.pt'), data)
    training.run(lambda share, words: on_progress(0.9 * share, words))
    seconds = time.process_time() - begun
    network = training.network
    figures: dict[str, Any] = {}
    for number, (name, configuration) in enumerate(JUDGED_CONFIGURATIONS.items()):
        on_progress(0.9 + 0.1 * number / len(JUDGED_CONFIGURATIONS), 'judging')
        chosen = judged.spread(settings.judged_windows, configuration)
        by_flight = [
            judge(
                judged,
                [window for window in chosen if window.flight == flight],
                lambda batch: run_network(network, batch),
            )
            for flight in range(len(judged.flights))
        ]
        figures[name] = {
            NETWORK: [counts_by_threshold(fused) for fused, _ in by_flight],
            NEWEST_PICTURE: [counts_by_threshold(alone) for _, alone in by_flight],
        }
    names = tuple(flight.name for flight in judged.flights)
    seeds = tuple(flight.seed or flight.name for flight in judged.flights)
    return Run(variant.name, settings.seed, names, tuple(training.losses), seconds, figures, seeds)


def _flights(features: Path, name: str) -> tuple[CachedFlight, ...]:
    folder = features / CACHE / name
    folders = sorted(p for p in folder.glob('[!.]*') if p.is_dir()) if folder.is_dir() else []
    if not folders:
        raise TrainingError(
            f'{folder} holds no features of flights; make them with `mmedge lab train fusion SET '
            f'--validation SET --features {shlex.quote(str(features))}`'
        )
    return tuple(read_flight(path) for path in folders)


def _thinned(flights: tuple[CachedFlight, ...], count: int) -> tuple[CachedFlight, ...]:
    count = min(count or len(flights), len(flights))
    return tuple(flights[k * len(flights) // count] for k in range(count))


def _identity(
    request: AblationRequest, learned: Sequence[CachedFlight], judged: Sequence[CachedFlight]
) -> dict[str, Any]:
    """Return what the runs in one folder have in common; seeds may be added."""
    return {
        'learned_from': [flight.name for flight in learned],
        'data': [flights_digest(learned), flights_digest(judged)],
        'settings': request.settings.plain(),
    }


def _keep_plan(path: Path, identity: dict[str, Any]) -> None:
    text = json.dumps(identity, indent=1)
    if path.is_file():
        if path.read_text(encoding='utf-8', errors='replace') != text:
            raise TrainingError(
                f'{path} is of runs with other settings or flights; choose the same, or name '
                'another --out'
            )
        return
    part = path.with_name(f'.{path.name}.part')
    part.write_text(text, encoding='utf-8')
    part.replace(path)
