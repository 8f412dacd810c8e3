"""What trainings with and without parts of fusion came to, beside each other."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mmedge_lab.judging.flight_bootstrap import RESAMPLES, Drawings, interval
from mmedge_lab.training import TrainingError
from mmedge_lab.training.fusion_settings import AGGREGATION, DIFFERENCES, SHIFT
from mmedge_lab.training.window_judging import JUDGED_CONFIGURATIONS, THRESHOLDS, Judgement
from mmedge_ros.data_types import FloatArray


class Variant(NamedTuple):
    """A network to train: see FusionSettings for ``without`` and ``whole_window``."""

    name: str
    title: str
    without: tuple[str, ...] = ()
    whole_window: bool = False


FULL = 'full'
VARIANTS = (
    Variant(FULL, 'full'),
    Variant('no_shift', 'without shift', (SHIFT,)),
    Variant('no_differences', 'without differences', (DIFFERENCES,)),
    Variant('last_unit', 'without aggregation (last unit only)', (AGGREGATION,)),
    Variant('whole_window', 'whole-window (3-D) encoder', whole_window=True),
)
TABLE = 'report.json'
NETWORK, NEWEST_PICTURE = 'network', 'newest_picture'
FIGURES = ('worth', 'mean_iou', 'recall', 'precision', 'range_error')
# Columns of counts: see window_judging.Counts; the last is the median size of range errors.
_COLUMNS = 7
_SEED = 20251122
_DIGITS = 4


class Run(NamedTuple):
    """One training of one variant.

    ``figures`` by configuration and NETWORK or NEWEST_PICTURE: counts (F, T, 7) of the judged
    ``flights`` at THRESHOLDS. ``seconds`` of processor time it took, without those before it
    was cut short. ``flight_seeds`` are those of the flights, () where each has its own.
    """

    variant: str
    seed: int
    flights: tuple[str, ...]
    losses: tuple[float, ...]
    seconds: float
    figures: Mapping[str, Mapping[str, Any]]
    flight_seeds: tuple[str, ...] = ()

    def counts(self, configuration: str, what: str = NETWORK) -> FloatArray:
        """Return counts (F, T, 7)."""
        return np.array(self.figures[configuration][what], np.float64)


def counts_by_threshold(judgement: Judgement) -> list[list[float]]:
    """Return counts (T, 7) at THRESHOLDS."""
    rows = []
    for threshold in THRESHOLDS:
        counts = judgement.counts(threshold)
        error = float(np.median(np.abs(counts.errors))) if len(counts.errors) else math.nan
        rows.append([*map(float, counts[:-1]), error])
    return rows


def save_run(path: Path, run: Run) -> None:
    """Write a run, whole or not at all.

    :raises OSError: if it cannot be written
    """
    part = path.with_name(f'.{path.name}.part')
    part.write_text(json.dumps(run._asdict()), encoding='utf-8')
    part.replace(path)


def load_run(path: Path) -> Run:
    """Read a run.

    :raises TrainingError: if it is damaged or none
    """
    try:
        content = json.loads(path.read_text(encoding='utf-8'))
        run = Run(
            str(content['variant']),
            int(content['seed']),
            tuple(map(str, content['flights'])),
            tuple(map(float, content['losses'])),
            float(content['seconds']),
            content['figures'],
            tuple(map(str, content.get('flight_seeds', ()))),
        )
        if len(run.flight_seeds) not in (0, len(run.flights)):
            raise ValueError('not every flight has a seed')
        shape = len(run.flights), len(THRESHOLDS), _COLUMNS
        for name in JUDGED_CONFIGURATIONS:
            for what in (NETWORK, NEWEST_PICTURE):
                if run.counts(name, what).shape != shape:
                    raise ValueError(f'counts of {name} are not {shape}')
    except (OSError, ValueError, KeyError, TypeError) as err:
        raise TrainingError(
            f'{path} cannot be used ({str(err)[:200]}); remove it and go on with --resume'
        ) from err
    return run


def tabulate(runs: Sequence[Run]) -> dict[str, Any]:
    """Compare variants, configuration by configuration.

    The threshold all are compared at is the one at which the newest picture alone, without any
    of the networks, is worth most. Differences from ``full`` are of means over seeds; their
    intervals come from drawing trainings and the seeds of flights, the same ones for both.

    :raises TrainingError: if runs are missing or of other flights
    """
    seeds = sorted({run.seed for run in runs})
    by_name = {(run.variant, run.seed): run for run in runs}
    wanted = {(variant.name, seed) for variant in VARIANTS for seed in seeds}
    if not runs or set(by_name) != wanted or len({run.flights for run in runs}) > 1:
        raise TrainingError(
            'the runs are not one of each variant and seed on the same flights; go on with '
            '--resume, or name another --out'
        )
    flights = runs[0].flights
    drawn = _drawings(runs[0].flight_seeds or flights, len(seeds))
    configurations = {}
    for name in JUDGED_CONFIGURATIONS:
        alone = runs[0].counts(name, NEWEST_PICTURE)[None]
        worths = [_value(alone[:, :, k], 'worth') for k in range(len(THRESHOLDS))]
        common = int(np.nanargmax(worths)) if np.isfinite(worths).any() else 0
        counts = {
            v.name: np.stack([by_name[v.name, seed].counts(name) for seed in seeds])
            for v in VARIANTS
        }
        configurations[name] = {
            'threshold': THRESHOLDS[common],
            'people': int(alone[0, :, 0, 0].sum()),
            'newest_picture': {f: _plain(_value(alone[:, :, common], f)) for f in FIGURES},
            'variants': {
                v.name: _compared(counts[v.name], counts[FULL], common, drawn) for v in VARIANTS
            },
        }
    seconds = {
        v.name: round(float(np.mean([by_name[v.name, s].seconds for s in seeds])), 1)
        for v in VARIANTS
    }
    losses = {
        v.name: [[round(x, _DIGITS) for x in by_name[v.name, s].losses] for s in seeds]
        for v in VARIANTS
    }
    return {
        'seeds': seeds,
        'flights': list(flights),
        'configurations': configurations,
        'training_seconds': seconds,
        'losses': losses,
    }


def _compared(
    counts: FloatArray, full: FloatArray, common: int, drawn: tuple[Drawings, FloatArray]
) -> dict[str, Any]:
    """Describe a variant's counts (S, F, T, 7) beside those of the full network."""
    entry: dict[str, Any] = {}
    for figure in FIGURES:
        by_seed = [_value(counts[s : s + 1, :, common], figure) for s in range(len(counts))]
        entry[figure] = _spread(by_seed)
        weights = drawn[0].weights, drawn[1]
        ours, theirs = (_drawn(c[:, :, common], figure, weights) for c in (counts, full))
        value = float(np.mean(by_seed)) - _value(full[:, :, common], figure)
        low, high = interval(ours - theirs, len(np.unique(drawn[0].seeds)))
        entry[figure]['less_full'] = [_plain(x) for x in (value, low, high)]
    best = [
        max((_value(counts[s : s + 1, :, k], 'worth'), -k) for k in range(len(THRESHOLDS)))
        for s in range(len(counts))
    ]
    entry['best_worth'] = _spread([worth for worth, _ in best])
    entry['best_worth']['thresholds'] = [THRESHOLDS[-place] for _, place in best]
    return entry


def _spread(values: Sequence[float]) -> dict[str, Any]:
    deviation = float(np.std(values, ddof=1)) if len(values) > 1 else math.nan
    return {
        'mean': _plain(float(np.mean(values))),
        'deviation': _plain(deviation),
        'seeds': [_plain(value) for value in values],
    }


def _drawings(flight_seeds: Sequence[str], trainings: int) -> tuple[Drawings, FloatArray]:
    """Return how often flights and trainings (B, S) are drawn; the same always."""
    random = np.random.default_rng((_SEED, trainings))
    drawn = random.multinomial(trainings, np.full(trainings, 1.0 / trainings), RESAMPLES)
    return Drawings.of(flight_seeds), drawn.astype(np.float64)


def _value(counts: FloatArray, figure: str) -> float:
    """Return a figure of counts (S, F, 7), the mean over seeds."""
    ones = np.ones((1, counts.shape[1])), np.ones((1, counts.shape[0]))
    return float(_drawn(counts, figure, ones)[0])


def _drawn(counts: FloatArray, figure: str, drawn: tuple[FloatArray, FloatArray]) -> FloatArray:
    """Return a figure (B,) of counts (S, F, 7) for each drawing of flights and seeds."""
    people, tall, iou, iou_tall, hits, wrong, errors = np.moveaxis(counts, 2, 0)
    if figure == 'range_error':  # the mean over flights of their medians
        known = np.isfinite(errors)
        above, below = np.where(known, errors, 0.0), known.astype(np.float64)
    else:
        above, below = {
            'worth': (iou, people + wrong),
            'mean_iou': (iou_tall, tall),
            'recall': (hits, people),
            'precision': (hits, hits + wrong),
        }[figure]
    flights, seeds = drawn
    with np.errstate(invalid='ignore', divide='ignore'):
        by_seed = (flights @ above.T) / (flights @ below.T)
    made: FloatArray = (by_seed * seeds).sum(axis=1) / seeds.sum(axis=1)
    return made


def _plain(value: float) -> float | None:
    return round(value, _DIGITS) if math.isfinite(value) else None
