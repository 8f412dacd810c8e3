"""Latency, age and stage statistics of a run.

Latency is publication minus window end; age is publication minus the stamp of the newest unit
used. They are computed over the same decisions, those after the warm-up, because either one
alone can be gamed.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mmedge_ros.core.data_types import CAMERA, NS_PER_S, RADAR, Decision, Trail, UnitFeatures
from mmedge_ros.core.run_record import RunRecord

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
