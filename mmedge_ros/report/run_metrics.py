"""Statistics of a run: latency, age and stages, and what it took of the battery.

Latency is publication minus window end; age is publication minus the stamp of the newest unit
used. They are computed over the same decisions, those after the warm-up, because either one
alone can be gamed. Energy is by part: as it was measured, else by a stated model.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from mmedge_ros.core.data_types import (
    CAMERA,
    NS_PER_S,
    RADAR,
    Decision,
    FloatArray,
    Trail,
    UnitFeatures,
)
from mmedge_ros.core.run_record import RunRecord
from mmedge_ros.monitoring.system_state import SystemState

FUSION, IDLE = 'fusion', 'idle'
# A gap between states is filled up to this long, s.
_LONGEST_GAP = 5.0
# A longer flight is not drawn second by second: its clock is wrong.
_MOST_SECONDS = 86_400
# Stages of a unit in which its encoder is at work.
_WORK = ('encode', 'follow')
MS_PER_S = 1e3


@dataclass(frozen=True, slots=True)
class Quantiles:
    """Quantiles (linear interpolation), mean and maximum in ms; NaN where nothing was measured."""

    p50: float = math.nan
    p95: float = math.nan
    p99: float = math.nan
    mean: float = math.nan
    max: float = math.nan


@dataclass(frozen=True, slots=True)
class LatencyMetrics:
    """Latency figures of the decisions after the warm-up.

    ``age_ms`` has an entry for every modality, NaN for one that was never used.
    ``critical_age_ms`` is the length of the decisions' trails. ``stages_ms`` lists the stages of
    the critical path in their order, then each modality's own as ``<modality>.<stage>``.
    ``deadline_miss_rate`` is the share of these decisions published later than the deadline.
    """

    decisions: int
    latency_ms: Quantiles
    age_ms: dict[str, Quantiles]
    critical_age_ms: Quantiles
    stages_ms: dict[str, Quantiles]
    deadline_miss_rate: float


def modalities_of(record: RunRecord) -> list[str]:
    """List camera and radar, then any other modality of the run by name."""
    modalities = set(record.units) | {unit.modality for unit in record.features}
    for decision in record.decisions:
        modalities.update(decision.newest_ns)
    return [CAMERA, RADAR, *sorted(modalities - {CAMERA, RADAR})]


def measured_decisions(record: RunRecord) -> list[Decision]:
    """Return the decisions that count: those after the warm-up."""
    return record.decisions[max(record.warmup, 0) :]


def measured_features(record: RunRecord) -> list[UnitFeatures]:
    """Return the encoded units that arrived after the last window of the warm-up."""
    warmup = record.decisions[: max(record.warmup, 0)]
    if not warmup:
        return list(record.features)
    begin_ns = warmup[-1].window_end_ns
    return [unit for unit in record.features if unit.available_ns > begin_ns]


def quantiles_of(values_ms: Sequence[float]) -> Quantiles:
    """Summarise durations in ms; values that are not finite are left out."""
    values = np.asarray(values_ms, np.float64)
    values = values[np.isfinite(values)]
    if not len(values):
        return Quantiles()
    p50, p95, p99 = (float(q) for q in np.quantile(values, (0.5, 0.95, 0.99)))
    return Quantiles(p50, p95, p99, float(values.mean()), float(values.max()))


def stage_quantiles(trails: Iterable[Trail]) -> dict[str, Quantiles]:
    """Summarise each stage over the trails that have it, in the order of the path.

    A stage that occurs twice in a trail counts with its sum, so that the stages of a trail
    always sum to its length.
    """
    durations: dict[str, list[float]] = defaultdict(list)
    # Its number in the trail first: of two stages that are in no trail together, as encode and
    # follow, one may begin earlier only because all that is before it was quicker.
    places: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for trail in trails:
        total: dict[str, int] = defaultdict(int)
        for number, stage in enumerate(trail):
            if stage.stage not in total:
                places[stage.stage].append((number, stage.begin_ns - trail[0].begin_ns))
            total[stage.stage] += stage.end_ns - stage.begin_ns
        for name, duration_ns in total.items():
            durations[name].append(_ms(duration_ns))
    order = sorted(places, key=lambda name: np.median(places[name], axis=0).tolist())
    return {name: quantiles_of(durations[name]) for name in order}


def latency_metrics(record: RunRecord) -> LatencyMetrics:
    """Compute every latency figure of a run."""
    decisions = measured_decisions(record)
    latencies = [decision.latency * MS_PER_S for decision in decisions]
    ages = [decision.ages for decision in decisions]
    modalities = modalities_of(record)
    stages = stage_quantiles(decision.trail for decision in decisions if decision.trail)
    features = measured_features(record)
    for modality in modalities:
        trails = [unit.trail for unit in features if unit.modality == modality and unit.trail]
        stages |= {f'{modality}.{name}': q for name, q in stage_quantiles(trails).items()}
    late = sum(decision.latency > record.deadline for decision in decisions)
    return LatencyMetrics(
        decisions=len(decisions),
        latency_ms=quantiles_of(latencies),
        age_ms={m: quantiles_of([_age_ms(a, m) for a in ages]) for m in modalities},
        critical_age_ms=quantiles_of([critical_age_ms(decision) for decision in decisions]),
        stages_ms=stages,
        deadline_miss_rate=late / len(decisions) if decisions else math.nan,
    )


def critical_age_ms(decision: Decision) -> float:
    """Return the length of a decision's trail in ms, NaN without one."""
    trail = decision.trail
    return _ms(trail[-1].end_ns - trail[0].begin_ns) if trail else math.nan


def _age_ms(ages: Mapping[str, float], modality: str) -> float:
    return ages.get(modality, math.nan) * MS_PER_S


def _ms(duration_ns: int) -> float:
    return duration_ns * MS_PER_S / NS_PER_S


@dataclass(frozen=True)
class EnergyModel:
    """Power in W: ``idle`` all the time, ``busy`` more for each processor second of work.

    An assumption, no measurement: the Jetson Orin Nano has power modes of 7 and 15 W. A waiting
    graph takes the lower, two encoders at work all the time the higher. So joules compare
    policies; they predict no battery.
    """

    idle: float = 7.0
    busy: float = 4.0

    def joules(self, processor_seconds: float, duration: float) -> float:
        """Return the energy of a flight of that duration, s, for all work of the processor."""
        return self.idle * duration + self.busy * processor_seconds

    @property
    def words(self) -> str:
        """What is assumed."""
        return (
            f'a model, not measured: {self.idle:g} W all the time and {self.busy:g} W more for '
            'each processor second of work'
        )


class _Work(NamedTuple):
    part: str
    end_ns: int
    seconds: float


def energy_report(record: RunRecord) -> dict[str, Any]:
    """Return joules by part by the model, and those of each rail that was measured."""
    model = EnergyModel()
    parts: dict[str, float] = {}
    for work in _works(record):
        parts[work.part] = parts.get(work.part, 0.0) + model.busy * work.seconds
    return {
        'model': model.words,
        'model_j': parts | {IDLE: model.idle * record.duration},
        'measured_j': {
            'computer': _joules(record, computer_watts),
            'battery': _joules(record, _battery_watts),
        },
    }


def watts_over_time(record: RunRecord, zero_ns: int) -> tuple[FloatArray, dict[str, FloatArray]]:
    """Return the middles of seconds (N,) and what each part took in them beside idling, W."""
    works = list(_works(record))
    last = max(((work.end_ns - zero_ns) / NS_PER_S for work in works), default=0.0)
    edges = np.arange(0.0, min(max(math.ceil(last), 1), _MOST_SECONDS) + 1.0)
    watts = {}
    for part in dict.fromkeys(work.part for work in works):
        own = [work for work in works if work.part == part]
        ends = [(work.end_ns - zero_ns) / NS_PER_S for work in own]
        seconds = np.histogram(ends, edges, weights=[work.seconds for work in own])[0]
        watts[part] = EnergyModel().busy * seconds
    return edges[:-1] + 0.5, watts


def computer_watts(state: SystemState) -> float:
    """Return what the computer draws, W; NaN where only that of the whole drone is known."""
    # Without a flight battery the power that is told is the module's own.
    known = math.isfinite(state.module_power) or math.isfinite(state.voltage)
    return state.module_power if known else state.power


def _works(record: RunRecord) -> Iterator[_Work]:
    for unit in record.features:
        for stage in unit.trail:
            if stage.stage in _WORK:
                seconds = (stage.end_ns - stage.begin_ns) / NS_PER_S
                yield _Work(f'{unit.modality} encoder', stage.end_ns, seconds)
    for decision in record.decisions:
        if decision.trail and decision.trail[-1].stage == FUSION:
            stage = decision.trail[-1]
            yield _Work(FUSION, stage.end_ns, (stage.end_ns - stage.begin_ns) / NS_PER_S)


def _battery_watts(state: SystemState) -> float:
    return state.power if math.isfinite(state.voltage) else math.nan


def _joules(record: RunRecord, watts_of: Callable[[SystemState], float]) -> float:
    """Integrate a rail over the states; NaN where it was never measured."""
    states = [(stamp_ns / NS_PER_S, watts_of(state)) for stamp_ns, state in record.states]
    known = [(second, watts) for second, watts in states if math.isfinite(watts)]
    if len(known) < 2:
        return math.nan
    return sum(
        watts * min(max(later - earlier, 0.0), _LONGEST_GAP)
        for (earlier, watts), (later, _) in pairwise(known)
    )
