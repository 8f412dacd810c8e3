"""Every figure of a comparison with its interval: quotients of totals, and quantiles.

The unit that is drawn is the seed of flights, for all cases the same ones, so that differences of
two cases are paired.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

import numpy as np

from mmedge_lab.judging.case_figures import MEDIANS, QUOTIENTS
from mmedge_lab.judging.flight_bootstrap import Drawings, Estimate, interval
from mmedge_lab.rivals.comparison.outcome import MODALITIES, PARTS, Outcome
from mmedge_ros.data_types import FloatArray

# Sorting anew for each drawing takes long; 200 give an interval to within a few hundredths.
QUANTILE_RESAMPLES = 200
# Ends of windows lie on a grid: as seconds since 1970 they are exact to a microsecond.
_MS = 1e3
HALVES = ('easy', 'hard')


class Quotient(NamedTuple):
    """A weighted sum of totals over another one, scaled; ``offset`` is added."""

    above: Mapping[str, float]
    below: Mapping[str, float]
    scale: float = 1.0
    offset: float = 0.0


class Quantile(NamedTuple):
    """A quantile of a column of windows, all flights together; ``q`` None for the mean."""

    column: str
    q: float | None
    scale: float = _MS


Figure: TypeAlias = Quotient | Quantile


def _per(above: str, below: str, scale: float = 1.0) -> Quotient:
    return Quotient({above: 1.0}, {below: 1.0}, scale)


def _quantiles(name: str, column: str) -> dict[str, Figure]:
    quantiles = {'p50': 0.5, 'p95': 0.95, 'p99': 0.99, 'mean': None, 'max': 1.0}
    return {f'{name}.{word}': Quantile(column, q) for word, q in quantiles.items()}


def _figures() -> dict[str, Figure]:
    figures: dict[str, Figure] = {
        **{f'accuracy.{name}': _per(*totals) for name, totals in QUOTIENTS.items()},
        'tracking.mota': Quotient(
            {'true_boxes': -1.0, 'result_boxes': -1.0, 'matches': 2.0, 'id_switches': -1.0},
            {'true_boxes': 1.0},
            offset=1.0,
        ),
        'tracking.idf1': Quotient({'idtp': 2.0}, {'true_boxes': 1.0, 'result_boxes': 1.0}),
        'tracking.id_switches_per_minute': _per('id_switches', 'seconds', 60.0),
        'accuracy.nees': _per('nees', 'nees_samples'),
        **_quantiles('latency_ms', 'latency'),
        **_quantiles('floor_ms', 'floor'),
    }
    for modality in MODALITIES:
        figures |= _quantiles(f'age_ms.{modality}', f'age_{modality}')
        figures |= _quantiles(f'waiting_ms.{modality}', f'waited_{modality}')
    figures |= {
        'deadline_miss_rate': _per('misses', 'decisions'),
        'dropped_share': _per('dropped', 'windows'),
        'late_or_dropped_share': Quotient({'misses': 1.0, 'dropped': 1.0}, {'windows': 1.0}),
        'rested_share': _per('rested', 'decisions'),
        'imputed_share': _per('imputed', 'decisions'),
    }
    for modality in MODALITIES:
        calls = f'calls_{modality}'
        figures[f'encoder_calls_per_s.{modality}'] = _per(calls, 'seconds')
        figures[f'encoder_calls_per_unit.{modality}'] = _per(calls, f'units_{modality}')
        figures[f'encoder_busy.{modality}'] = _per(f'busy_s_{modality}', 'seconds')
    return figures | {
        'cpu_s_per_s': _per('cpu_s', 'seconds'),
        'power_w': _per('energy_j', 'duration'),
        **{f'part_w.{part}': _per(f'energy_j_{part}', 'duration') for part in PARTS},
    }


FIGURES: Mapping[str, Figure] = MappingProxyType(_figures())
STREAMING, MEAN_IOU = 'accuracy.streaming_mean_iou', 'accuracy.mean_iou'
CPU = 'cpu_s_per_s'
P50, P95, MEAN = 'latency_ms.p50', 'latency_ms.p95', 'latency_ms.mean'
# Of `CaseFigures.errors`; medians, which no window holds.
ERRORS = MappingProxyType({f'accuracy.{name}': name for name in MEDIANS})


class Drawn(NamedTuple):
    """A figure, what it is in each drawing (B,), and of how many seeds."""

    value: float
    drawn: FloatArray
    seeds: int

    @property
    def estimate(self) -> Estimate:
        """The figure with its interval."""
        return Estimate(self.value, *interval(self.drawn, self.seeds))

    def minus(self, other: Drawn) -> Estimate:
        """This minus another one of the same drawings."""
        count = min(len(self.drawn), len(other.drawn))
        difference = self.drawn[:count] - other.drawn[:count]
        return Estimate(
            self.value - other.value, *interval(difference, min(self.seeds, other.seeds))
        )

    def over(self, other: Drawn) -> Estimate:
        """This as a share of another one of the same drawings."""
        count = min(len(self.drawn), len(other.drawn))
        with np.errstate(invalid='ignore', divide='ignore'):
            share = self.drawn[:count] / other.drawn[:count]
        value = self.value / other.value if other.value else math.nan
        return Estimate(value, *interval(share, min(self.seeds, other.seeds)))


@dataclass(frozen=True)
class Bootstrap:
    """Draws the seeds of flights, the same for every figure."""

    drawings: Drawings

    @staticmethod
    def of(seeds: Sequence[Hashable]) -> Bootstrap:
        """Return one for flights of these ``seeds``, one of each flight."""
        return Bootstrap(Drawings.of(seeds))

    def figure(self, outcomes: Sequence[Outcome], name: str) -> Drawn:
        """Return a figure of `FIGURES`."""
        figure = FIGURES[name]
        if isinstance(figure, Quotient):
            above, below = (
                np.array(
                    [sum(w * outcome.totals[n] for n, w in sums.items()) for outcome in outcomes]
                )
                for sums in (figure.above, figure.below)
            )
            ratio = self.quotient(above, below)
            return Drawn(
                figure.offset + figure.scale * ratio.value,
                figure.offset + figure.scale * ratio.drawn,
                ratio.seeds,
            )
        columns = [figure.scale * outcome.column(figure.column) for outcome in outcomes]
        return self.quantile(columns, figure.q)

    def quotient(self, above: FloatArray, below: FloatArray) -> Drawn:
        """Return the quotient of two sums over flights (F,)."""
        weights = self.drawings.weights
        with np.errstate(invalid='ignore', divide='ignore'):
            drawn = (weights @ above) / (weights @ below)
        total = float(below.sum())
        value = float(above.sum()) / total if total else math.nan
        return Drawn(value, drawn, self.drawings.count(below != 0.0))

    def quantile(self, columns: Sequence[FloatArray], q: float | None) -> Drawn:
        """Return a quantile, or for None the mean, of values of all flights; NaN are left out."""
        known = [column[np.isfinite(column)] for column in columns]
        seeds = self.drawings.count([len(part) > 0 for part in known])
        values = np.concatenate(known) if known else np.zeros(0)
        weights = self.drawings.weights[:QUANTILE_RESAMPLES]
        if not len(values):
            return Drawn(math.nan, np.full(len(weights), math.nan), 0)
        if q is None:
            sums = np.array([part.sum() for part in known])
            return self.quotient(sums, np.array([float(len(part)) for part in known]))
        if q >= 1.0:
            # The largest value has no interval worth the name.
            return Drawn(float(values.max()), np.full(len(weights), math.nan), seeds)
        return Drawn(float(np.quantile(values, q)), _drawn(known, values, weights, q), seeds)


def _drawn(
    parts: Sequence[FloatArray], values: FloatArray, weights: FloatArray, q: float
) -> FloatArray:
    owners = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
    order = np.argsort(values, kind='stable')
    values, owners = values[order], owners[order]
    heights = np.cumsum(weights[:, owners], axis=1)
    wanted = q * heights[:, -1]
    places = [
        min(int(np.searchsorted(row, level)), len(values) - 1)
        for row, level in zip(heights, wanted, strict=True)
    ]
    return np.where(heights[:, -1] > 0.0, values[places], math.nan)


class Halves:
    """Which windows are easy: the upper half by the mean IoU of blocking, each run alone.

    Windows without visible people belong to neither. Fixed by one policy for all, so that no
    policy chooses what is easy.
    """

    def __init__(self, blocking: Sequence[Outcome]) -> None:
        qualities = [_quality(outcome) for outcome in blocking]
        known = np.concatenate(qualities) if qualities else np.zeros(0)
        known = known[np.isfinite(known)]
        middle = float(np.median(known)) if len(known) else np.nan
        self._of_end = [
            {
                end: 'easy' if quality >= middle else 'hard'
                for end, quality in zip(_ends(outcome), known.tolist(), strict=True)
                if math.isfinite(quality)
            }
            for outcome, known in zip(blocking, qualities, strict=True)
        ]

    def counts(self) -> dict[str, int]:
        """Return how many windows are in each half."""
        halves = [half for of_end in self._of_end for half in of_end.values()]
        return {half: halves.count(half) for half in HALVES}

    def share(
        self, bootstrap: Bootstrap, outcomes: Sequence[Outcome], half: str, above: str, below: str
    ) -> Drawn:
        """Return the quotient of two columns summed over the windows of a half."""
        sums = np.zeros((2, len(outcomes)))
        for place, (outcome, mask) in enumerate(self._masks(outcomes, half)):
            for row, name in enumerate((above, below)):
                sums[row, place] = np.nansum(outcome.column(name)[mask])
        return bootstrap.quotient(sums[0], sums[1])

    def quantile(
        self, bootstrap: Bootstrap, outcomes: Sequence[Outcome], half: str, column: str, q: float
    ) -> Drawn:
        """Return a quantile of a column over the windows of a half, in ms."""
        columns = [_MS * o.column(column)[mask] for o, mask in self._masks(outcomes, half)]
        return bootstrap.quantile(columns, q)

    def _masks(
        self, outcomes: Sequence[Outcome], half: str
    ) -> list[tuple[Outcome, np.ndarray[tuple[int], np.dtype[np.bool_]]]]:
        return [
            (outcome, np.array([of_end.get(end) == half for end in _ends(outcome)], np.bool_))
            for outcome, of_end in zip(outcomes, self._of_end, strict=True)
        ]


def _ends(outcome: Outcome) -> list[int]:
    return [round(_MS * end) for end in outcome.column('end').tolist()]


def _quality(outcome: Outcome) -> FloatArray:
    people, overlap = outcome.column('people'), outcome.column('overlap')
    with np.errstate(invalid='ignore', divide='ignore'):
        return np.where(people > 0.0, overlap / people, np.nan)
