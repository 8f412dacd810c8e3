"""What a language model at work costs decisions, and what a demand for its time changes.

The limit of a decision is what sentences leave of the limit of a user. The oracle says which
limits some fixed configuration keeps with the same model at work; decisions under shorter ones do
not count.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mmedge_lab.rivals.mmedge.cpu_step_report import SETTLING, WANTED
from mmedge_ros.configuration.latency_budget import LatencyBudget, LatencyDemand
from mmedge_ros.configuration.profiling import Phase, PhaseSamples
from mmedge_ros.data_types import NS_PER_S, FloatArray
from mmedge_ros.questions.describing import NEWEST, TAKES
from mmedge_ros.records.run_record import RunRecord
from mmedge_ros.report.accuracy import accuracy_of
from mmedge_ros.report.trajectories import configurations_in_order

_MOST_CONFIGURATIONS = 3
# So long after the start nothing counts (s): a model is loaded, and its time gets known.
_STARTING = 7.0


@dataclass(frozen=True)
class DescribedFlight:
    """A live flight, and what the node that describes its decisions said of itself.

    ``statuses`` are its figures by instant of the recording (ns); none without a model.
    """

    record: RunRecord
    statuses: Sequence[tuple[int, Mapping[str, str]]] = ()

    @property
    def newest(self) -> Mapping[str, str]:
        """The figures that were said last."""
        return self.statuses[-1][1] if self.statuses else {}


def upper_of(figures: Mapping[str, str]) -> float:
    """Return what the slowest kind of sentence takes (s, upper quantile); NaN where unknown."""
    times = [float(text) for key, text in figures.items() if key.endswith(TAKES)]
    return 1e-3 * max((t for t in times if math.isfinite(t)), default=math.nan)


def least_feasible(measured: Iterable[tuple[Phase, PhaseSamples]]) -> float:
    """Return the shortest limit (s) that a fixed configuration keeps in 97 % of its decisions."""
    return min(
        (
            float(np.quantile(samples.latencies, WANTED))
            for phase, samples in measured
            if phase.is_check and samples.latencies
        ),
        default=math.inf,
    )


def limits_at(
    flight: DescribedFlight, ends_ns: Sequence[int], total: float, usual: float
) -> FloatArray:
    """Return the limit (s) of the decision at each window's end.

    A shorter one holds from 2 s after it began, as a step of the processor does.
    """
    stamps = [stamp_ns for stamp_ns, _ in flight.statuses]
    left = [_left(upper_of(figures), total, usual) for _, figures in flight.statuses]
    limits = []
    for end_ns in ends_ns:
        last = int(np.searchsorted(stamps, end_ns, 'right'))
        first = int(np.searchsorted(stamps, end_ns - round(SETTLING * NS_PER_S), 'right'))
        limits.append(max(left[max(first - 1, 0) : last], default=usual) if first else usual)
    return np.array(limits)


def flight_figures(
    flight: DescribedFlight, total: float, usual: float, least: float
) -> dict[str, Any]:
    """Return figures of a flight after its start; a window without a decision is late.

    :param total: limit of the user, for decision and sentence (s)
    :param usual: limit of decisions that nothing is made of (s)
    :param least: what `least_feasible` returns
    """
    record = flight.record
    decided = {d.window_end_ns: d.latency for d in record.decisions[record.warmup :]}
    stride_ns = round(record.stride * NS_PER_S)
    first_ns = min(decided, default=0) + round(_STARTING * NS_PER_S)
    ends = range(first_ns, max(decided, default=0) + 1, stride_ns)
    latency = np.array([decided.get(end, math.inf) for end in ends])
    limits = limits_at(flight, ends, total, usual)
    counts = limits >= least
    kept = latency <= limits
    accuracy = accuracy_of(record, record.truth, at_once=False) if record.truth else None
    known = latency[np.isfinite(latency)]
    return {
        'windows': len(latency),
        'feasible': int(counts.sum()),
        'in_time': _share(kept[counts]),
        'shortened': _share(limits < usual),
        'in_time_shortened': _share(kept[counts & (limits < usual)]),
        'limit_ms': _ms(float(np.median(limits))) if len(limits) else None,
        'p50_ms': _ms(float(np.quantile(known, 0.5))) if len(known) else None,
        'p95_ms': _ms(float(np.quantile(known, 0.95))) if len(known) else None,
        'sentence_ms': _ms(upper_of(flight.newest)),
        'sentences': int(flight.newest.get('sentences', 0)),
        'sentences_in_time': _share(_sentences(flight) <= total),
        'streaming_mean_iou': round(accuracy.stream.mean_iou, 4) if accuracy else None,
        **_configurations(record, ends),
    }


def _sentences(flight: DescribedFlight) -> FloatArray:
    """Return how long after the end of its window each sentence came (s).

    Of sentences that are made faster than the node says its figures, once a second, some lack.
    """
    last = {f['sentences']: 1e-3 * float(f[NEWEST]) for _, f in flight.statuses}
    return np.array([seconds for seconds in last.values() if math.isfinite(seconds)])


def _left(upper: float, total: float, usual: float) -> float:
    budget = LatencyBudget()
    if math.isfinite(upper):
        budget.take(LatencyDemand('sentences', upper, total, 1.0), 0.0)
    return budget.limit(usual, 0.0)[0]


def _configurations(record: RunRecord, ends_ns: Sequence[int]) -> dict[str, Any]:
    """Return the configurations that held most, with their shares, and the accuracy promised."""
    issued = configurations_in_order(record)
    begins = [c.effective_from_ns for c in issued]
    held = Counter(int(np.searchsorted(begins, end, 'right')) - 1 for end in ends_ns)
    shares: Counter[str] = Counter()
    promised = 0.0
    for place, count in held.items():
        if place >= 0:
            words = ', '.join(part.words() for part in issued[place].modalities)
            shares[words] += count
            promised += count * issued[place].predicted_accuracy
    number = sum(shares.values())
    return {
        'configurations': [
            {'configuration': words, 'share': round(count / number, 3)}
            for words, count in shares.most_common(_MOST_CONFIGURATIONS)
        ],
        'predicted_accuracy': round(promised / number, 4)
        if number and math.isfinite(promised)
        else None,
    }


def _share(values: Any) -> float | None:
    return round(float(np.mean(values)), 4) if len(values) else None


def _ms(seconds: float) -> float | None:
    return round(1e3 * seconds, 1) if math.isfinite(seconds) else None
