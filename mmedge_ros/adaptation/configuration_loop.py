"""The loop that chooses configurations in flight: measure, predict, choose, change.

Durations come from the units and decisions of the running pipeline, caps from the state of the
system. From outside to inside: this loop, `change_rules`, `configuration_choice`, `optimizer`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mmedge_ros.adaptation.accuracy_predictor import AccuracyPredictor, Indicators
from mmedge_ros.adaptation.caps_policy import Caps, CapsParameters
from mmedge_ros.adaptation.change_rules import ChangeRules, ChangeRulesParameters
from mmedge_ros.adaptation.configuration_space import ConfigurationSpace
from mmedge_ros.adaptation.factorised_latency import FactorisedLatency
from mmedge_ros.adaptation.latency_budget import (
    LatencyBudget,
    LatencyBudgetParameters,
    LatencyDemand,
)
from mmedge_ros.adaptation.load_guard import LoadGuard, LoadGuardParameters
from mmedge_ros.adaptation.placement import Placement
from mmedge_ros.adaptation.power_policy import PowerParameters
from mmedge_ros.adaptation.predicted_latency import ProvenLatency
from mmedge_ros.adaptation.release_watch import ReleaseWatch
from mmedge_ros.adaptation.scene_indicators import SceneIndicators
from mmedge_ros.adaptation.sensing_bounds import ConfigurationIssue, SensingBounds
from mmedge_ros.adaptation.unit_time_profile import UnitTimeProfile
from mmedge_ros.core.data_types import Configuration, ModalityConfiguration, Trail
from mmedge_ros.core.parameter import group, parameter
from mmedge_ros.monitoring.system_state import SystemState

_NS = 1e-9
# A longer gap between decisions (s, beyond the limit) counts as a late one.
_SILENCE = 0.3
_TOO_MUCH = 'late decisions: not more than the machine keeps up with'

BoolArray = NDArray[np.bool_]


@dataclass(frozen=True)
class ConfigurationLoopParameters:
    """How configurations are chosen in flight."""

    latency_limit: float = parameter(
        0.05,
        'latency that decisions have to keep; not longer than the deadline of the fusion node, '
        'at which windows close without the units that are still being encoded',
        's',
        0.001,
        60.0,
    )
    stride: float = parameter(
        0.1,
        'time between the ends of windows, as fusion has it: units that come well before an end '
        'may take that much longer',
        's',
        0.01,
        10.0,
    )
    window: float = parameter(
        0.5,
        'length of a window, as fusion has it: a configuration holds for one at least',
        's',
        0.05,
        10.0,
    )
    budget: LatencyBudgetParameters = group(LatencyBudgetParameters)
    guard: LoadGuardParameters = group(LoadGuardParameters)
    caps: CapsParameters = group(CapsParameters)
    power: PowerParameters = group(PowerParameters)
    reconfiguration: ChangeRulesParameters = group(ChangeRulesParameters)


@dataclass
class LoopCounts:
    """How much was taken in."""

    units: int = 0
    decisions: int = 0
    late: int = 0
    states: int = 0
    changes: int = 0


class ConfigurationLoop:
    """Takes measurements, and returns a configuration when another one is due.

    Instants named ``now`` are seconds on the monotonic clock.

    :param placement: where levels run; None leaves them where they are set up
    :raises ConfigurationError: if the profile lacks a level of the space
    """

    def __init__(
        self,
        space: ConfigurationSpace,
        profile: UnitTimeProfile,
        predictor: AccuracyPredictor,
        parameters: ConfigurationLoopParameters | None = None,
        placement: Placement | None = None,
    ) -> None:
        self._parameters = p = parameters or ConfigurationLoopParameters()
        self._predictor = predictor
        self._latency = FactorisedLatency(space, profile, p.stride)
        self._proven = ProvenLatency(self._latency, self._latency.pace)
        self._rules = ChangeRules(space, self._proven, p.window, p.reconfiguration)
        self.bounds = SensingBounds(p.caps, p.power, placement)
        self._guard = LoadGuard(p.guard)
        self._release = ReleaseWatch()
        self._load = math.nan
        self._space = space
        self.budget = LatencyBudget(p.budget)
        self._has_levels = {o.modality: o.levels != ('',) for o in space.modalities}
        self.counts = LoopCounts()
        # Fed from outside with units and tracks; None where the predictor does not use it.
        self.scene = SceneIndicators() if predictor.uses_indicators else None
        self._issue = ConfigurationIssue(p.reconfiguration.lead)
        self.reasons: tuple[str, ...] = ()
        # That of the configuration in use.
        self._limit = p.latency_limit
        self._decided_at = math.inf
        self._running: tuple[ModalityConfiguration, ...] = ()

    @property
    def current(self) -> Configuration | None:
        """The configuration that was issued last."""
        return self._issue.current

    @property
    def rejected(self) -> int:
        """How many durations were impossible, or of an unknown level."""
        return self._latency.calibration.rejected

    def unit_encoded(self, modality: str, level: str, encode: float, now: float) -> None:
        """Learn from a unit that took ``encode`` seconds; costs some 20 microseconds."""
        self.counts.units += 1
        if not self._has_levels.get(modality, True):
            level = ''
        self._latency.observe_unit(modality, level, encode, now)

    def unit_followed(self, modality: str, follow: float, now: float) -> None:
        """Learn from a unit in which following what was seen before took ``follow`` seconds."""
        self.counts.units += 1
        self._latency.observe_followed(modality, follow, now)

    def unit_arrived(
        self, modality: str, now: float, stamp_ns: int = 0, available_ns: int = 0
    ) -> None:
        """Note that a unit reached its encoder, encoded or not.

        :param stamp_ns: when it was measured, on the clock of the windows; 0 if unknown
        :param available_ns: when its last byte came, on that clock
        """
        self._latency.unit_arrived(modality, stamp_ns, available_ns)
        self.bounds.unit_arrived(modality, now, stamp_ns)

    def resting(self, modality: str, until: float) -> None:
        """Note that a modality is not sensed until then (s, monotonic): a skip lease."""
        self.bounds.resting(modality, until)

    def decided(self, latency: float, trail: Trail, now: float) -> None:
        """Learn from a decision: its latency (s) and the trail of its critical unit."""
        self.counts.decisions += 1
        late = latency > self._limit
        self.counts.late += late
        spent = {t.stage: _NS * (t.end_ns - t.begin_ns) for t in trail}
        if 'transport_features' in spent:
            self._latency.observe_transport(spent['transport_features'], now)
        if 'fusion' in spent:
            self._latency.observe_fusion(spent['fusion'], now)
        self._guard.decided(late, now, self._proven.is_explained(self._limit))
        self._proven.decided(latency, now)
        self._decided_at = now

    def system_state(self, state: SystemState, now: float) -> None:
        """Take the state of battery and computer."""
        self.counts.states += 1
        self._load = state.mean_cpu / 100.0
        self.bounds.take(state, now)

    def demanded(self, demand: LatencyDemand, now: float) -> bool:
        """Take what a consumer of decisions announces; return whether it is used."""
        return self.budget.take(demand, now)

    def update(self, now_ns: int, now: float) -> Configuration | None:
        """Return a new configuration, or None while the present one stays.

        :param now_ns: on the ROS clock
        """
        self._count_silence(now)
        bounds = self.bounds.at(now)
        limit, shorter = self.budget.limit(self._parameters.latency_limit, now)
        caps = replace(bounds.caps, reasons=(*bounds.reasons, *shorter))
        caps, within = self._guarded(caps, now)
        self.reasons = caps.reasons
        self._limit = limit
        made = self._rules.step(
            now_ns,
            now,
            self._predictor.predict(self.scene.now if self.scene else Indicators()),
            limit,
            caps,
            within,
            bounds.power,
        )
        if made is not None:
            self._note_load(made, now)
            self.bounds.configured(made, now)
        wanted = self._rules.current
        if wanted is None:
            return None
        if not self._predictor.is_measured:
            # Numbers that only put configurations in order are no accuracy.
            wanted = replace(wanted, predicted_accuracy=math.nan)
        issued = self._issue.issued(wanted, bounds, now_ns)
        self.counts.changes += issued is not None
        return issued

    def _count_silence(self, now: float) -> None:
        """Count decisions that fail to arrive as late ones, after the first."""
        if now - self._decided_at > self._limit + _SILENCE:
            self._guard.decided(True, now)

    def _guarded(self, caps: Caps, now: float) -> tuple[Caps, BoolArray | None]:
        """Return the caps with one more reason, and (size,) what the load guard allows."""
        if self._release.update(self._latency.calibration.slowness, self._load, now):
            self._guard.lift(now)
            self._rules.steadiness.forget(now)
        load = self._latency.load
        within = self._guard.within(load, now)
        if (load > self._guard.bound).any():
            caps = replace(caps, reasons=(*caps.reasons, _TOO_MUCH))
        return caps, None if within.all() else within

    def _note_load(self, made: Configuration, now: float) -> None:
        index = self._space.index_of(made.modalities)
        explained = self._proven.is_explained(self._limit)
        self._proven.configured(index, now + self._parameters.reconfiguration.lead)
        if index is not None and made.modalities != self._running:
            self._running = made.modalities
            self._guard.configured(float(self._latency.load[index]), now, explained)
            self._release.configured(now)
