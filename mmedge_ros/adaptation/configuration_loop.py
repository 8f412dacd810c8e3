"""The loop that chooses configurations in flight: measure, predict, choose, announce.

Durations come from the units and decisions of the running pipeline, bounds from the state of the
system. Six objects do the work: the `ConfigurationSpace`, its `FactorisedLatency`, the
`Optimizer`, the `SensingBounds`, the `ChangeGuard` and the `ConfigurationMessages`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mmedge_ros.adaptation.accuracy_predictor import AccuracyPredictor, Indicators
from mmedge_ros.adaptation.caps_policy import CapsParameters
from mmedge_ros.adaptation.change_guard import ChangeGuard
from mmedge_ros.adaptation.configuration_message import ConfigurationMessages, reason_of
from mmedge_ros.adaptation.configuration_space import ConfigurationSpace
from mmedge_ros.adaptation.factorised_latency import FactorisedLatency
from mmedge_ros.adaptation.latency_budget import LatencyDemand
from mmedge_ros.adaptation.optimizer import Choice, Optimizer, OptimizerParameters
from mmedge_ros.adaptation.placement import Placement
from mmedge_ros.adaptation.power_policy import PowerParameters
from mmedge_ros.adaptation.predicted_latency import PredictedLatency
from mmedge_ros.adaptation.scene_indicators import SceneIndicators
from mmedge_ros.adaptation.sensing_bounds import SensingBounds, SensingLimits
from mmedge_ros.adaptation.unit_time_profile import UnitTimeProfile
from mmedge_ros.core.data_types import Configuration, Trail
from mmedge_ros.core.parameter import group, parameter
from mmedge_ros.monitoring.system_state import SystemState

_NS = 1e-9
# A longer gap between decisions (s, beyond the limit) counts as a late one.
_SILENCE = 0.3
_TOO_MUCH = 'late decisions: not more than the machine keeps up with'
# A configuration that replaces one that is too slow keeps this share of the limit, if any does.
_CAREFUL = 0.9

FloatArray = NDArray[np.float64]
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
    # A configuration is announced so much earlier than it holds (s): every node has it when the
    # first unit arrives that is taken under it.
    lead: float = 0.02
    caps: CapsParameters = group(CapsParameters)
    power: PowerParameters = group(PowerParameters)
    optimizer: OptimizerParameters = group(OptimizerParameters)


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
        p = parameters or ConfigurationLoopParameters()
        self._space, self._predictor = space, predictor
        self._latency = FactorisedLatency(space, profile, p.stride)
        self._optimizer = Optimizer(space.grid, p.optimizer)
        self.bounds = SensingBounds(p.caps, p.power, placement, p.latency_limit)
        self._guard = ChangeGuard()
        self._messages = ConfigurationMessages(p.lead, p.window)
        self._lead = p.lead
        self._has_levels = {o.modality: o.levels != ('',) for o in space.modalities}
        self.counts = LoopCounts()
        # Fed from outside with units and tracks; None where the predictor does not use it.
        self.scene = SceneIndicators() if predictor.uses_indicators else None
        self.reasons: tuple[str, ...] = ()
        self._limit = p.latency_limit
        self._decided_at = math.inf
        # What was chosen last, before bounds; its number in the space; why no more was allowed.
        self._wanted = Configuration()
        self._index: int | None = None
        self._limiting: tuple[str, ...] = ()

    @property
    def current(self) -> Configuration | None:
        """The configuration that was issued last."""
        return self._messages.current

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
        self._guard.decided(late, now, self._latency.proof.is_explained(self._limit))
        self._latency.proof.decided(latency, now)
        self._decided_at = now

    def system_state(self, state: SystemState, now: float) -> None:
        """Take the state of battery and computer."""
        self.counts.states += 1
        self.bounds.take(state, now)

    def demanded(self, demand: LatencyDemand, now: float) -> bool:
        """Take what a consumer of decisions announces; return whether it is used."""
        return self.bounds.budget.take(demand, now)

    def update(self, now_ns: int, now: float) -> Configuration | None:
        """Return a new configuration, or None while the present one stays.

        :param now_ns: on the ROS clock
        """
        self._count_silence(now)
        bounds = self.bounds.at(now)
        self._limit = bounds.latency
        self._guard.watch(self._latency.calibration.slowness, now)
        too_much = (_TOO_MUCH,) if (self._latency.load > self._guard.bound).any() else ()
        self.reasons = (*bounds.reasons, *too_much)
        if self._messages.may_change(now_ns):
            self._choose(bounds, now)
        issued = self._messages.issued(self._wanted, bounds, now_ns)
        self.counts.changes += issued is not None
        return issued

    def _choose(self, bounds: SensingLimits, now: float) -> None:
        """Choose what is wanted from now on."""
        predicted = self._latency.predict(now)
        accuracy = self._predictor.predict(self.scene.now if self.scene else Indicators())
        allowed = self._space.allowed(bounds.caps) & self._space.allowed(bounds.power)
        within = allowed & self._guard.within(self._latency.load)
        allowed = within if within.any() else allowed
        chosen, forced = self._chosen(predicted, accuracy, allowed, now)
        before, parts = self._wanted.modalities, self._space.parts(chosen.index)
        if parts == before and self.reasons == self._limiting:
            return
        self._limiting = self.reasons
        # Numbers that only put configurations in order are no accuracy.
        known = float(accuracy[chosen.index]) if self._predictor.is_measured else math.nan
        self._wanted = Configuration(
            modalities=parts,
            latency_limit=self._limit,
            predicted_latency=chosen.latency if math.isfinite(chosen.latency) else math.nan,
            predicted_accuracy=known,
            reason=reason_of(chosen, parts, before or parts, self._limit, self.reasons),
        )
        self._latency.proof.configured(chosen.index, now + self._lead)
        if parts != before:
            self._guard.changed(float(self._latency.load[chosen.index]), forced, now)
        self.bounds.configured(self._wanted, now)

    def _chosen(
        self, predicted: PredictedLatency, accuracy: FloatArray, allowed: BoolArray, now: float
    ) -> tuple[Choice, bool]:
        """Return the choice, and whether it is forced; a change that is not may have to wait."""
        before, limit = self._index, self._limit
        chosen = self._optimizer.best(predicted, accuracy, limit, allowed, before)
        forced = chosen.forced
        if before is None or chosen.index == before:
            self._guard.content()
        elif forced and chosen.feasible:
            # What is known of a machine that just got slower is not the worst of it.
            careful = self._optimizer.best(predicted, accuracy, _CAREFUL * limit, allowed, before)
            chosen = careful if careful.feasible else chosen
        elif not forced and not self._guard.allows(now):
            only = np.zeros_like(allowed)
            only[before] = True
            chosen = self._optimizer.best(predicted, accuracy, limit, only, before)
        self._index = chosen.index
        return chosen, forced

    def _count_silence(self, now: float) -> None:
        """Count decisions that fail to arrive as late ones, after the first."""
        if now - self._decided_at > self._limit + _SILENCE:
            self._guard.decided(True, now)
