"""All that decides on configurations in flight: calibration, caps, prediction and choice.

Durations come from the units and decisions of the running pipeline, caps from the state of the
system. Nothing here asks for the time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from mmedge_ros.configuration.accuracy_predictor import AccuracyPredictor, Indicators
from mmedge_ros.configuration.caps_policy import CapsParameters, CapsPolicy
from mmedge_ros.configuration.configuration_space import ConfigurationSpace
from mmedge_ros.configuration.factorised_latency import (
    FactorisedLatency,
    FactorisedLatencyParameters,
)
from mmedge_ros.configuration.reconfiguration import Reconfiguration, ReconfigurationParameters
from mmedge_ros.configuration.scan_share import ScanShare
from mmedge_ros.configuration.unit_time_calibration import CalibrationParameters
from mmedge_ros.configuration.unit_time_profile import StageTime, UnitTimeProfile
from mmedge_ros.data_types import RADAR, Configuration, Trail
from mmedge_ros.monitoring.system_state import SystemState
from mmedge_ros.parameter import group, parameter

# Taken for granted until units were measured, s: the cheapest level of a network, and how much
# more each further one takes. Wide scatter, so that little is promised.
_ASSUMED_UNIT, _ASSUMED_STEP, _ASSUMED_SCATTER = 0.015, 2.0, 0.2
_ASSUMED_TRANSPORT, _ASSUMED_FUSION = 0.002, 0.002
_NS = 1e-9


@dataclass(frozen=True)
class AdaptationParameters:
    """How configurations are chosen in flight."""

    latency_limit: float = parameter(
        0.05,
        'latency that decisions have to keep; not longer than the deadline of the fusion node, '
        'at which windows close without the units that are still in work',
        's',
        0.001,
        60.0,
    )
    caps: CapsParameters = group(CapsParameters)
    reconfiguration: ReconfigurationParameters = group(ReconfigurationParameters)
    latency: FactorisedLatencyParameters = group(FactorisedLatencyParameters)
    calibration: CalibrationParameters = group(CalibrationParameters)


@dataclass
class AdaptationCounts:
    """What was taken in."""

    units: int = 0
    decisions: int = 0
    late: int = 0
    states: int = 0
    changes: int = 0


class Adaptation:
    """Takes in what was measured; answers with a configuration when another one is due.

    Instants named ``now`` are seconds on the monotonic clock.

    :raises ConfigurationError: if the profile lacks a level of the space
    """

    def __init__(
        self,
        space: ConfigurationSpace,
        profile: UnitTimeProfile,
        predictor: AccuracyPredictor,
        parameters: AdaptationParameters | None = None,
    ) -> None:
        self._parameters = p = parameters or AdaptationParameters()
        self._predictor = predictor
        self._latency = FactorisedLatency(space, profile, p.latency, p.calibration)
        self._control = Reconfiguration(space, self._latency, p.reconfiguration)
        self._policy = CapsPolicy(p.caps)
        self._scans = ScanShare()
        self._has_levels = {o.modality: o.levels != ('',) for o in space.modalities}
        self.counts = AdaptationCounts()
        self.indicators = Indicators()
        self.current: Configuration | None = None
        self.reasons: tuple[str, ...] = ()

    @property
    def rejected(self) -> int:
        """How many durations could not be true, or were of a level nobody knows."""
        return self._latency.calibration.rejected

    def unit_encoded(self, modality: str, level: str, encode: float, now: float) -> None:
        """Learn from a unit that took ``encode`` seconds; costs some 20 microseconds."""
        self.counts.units += 1
        if not self._has_levels.get(modality, True):
            level = ''
        self._latency.observe_unit(modality, level, encode, math.nan, now)

    def unit_arrived(self, modality: str, now: float) -> None:
        """Note that a unit reached its encoder, whatever became of it there."""
        if modality == RADAR:
            self._scans.arrived(now)

    def resting(self, modality: str, until: float) -> None:
        """Note that a modality is not sensed until then (s, monotonic): a skip lease."""
        if modality == RADAR:
            self._scans.excuse(until)

    def decided(self, latency: float, trail: Trail, now: float) -> None:
        """Learn from a decision: its latency (s) and the trail of its critical unit."""
        self.counts.decisions += 1
        late = latency > self._parameters.latency_limit
        self.counts.late += late
        spent = {t.stage: _NS * (t.end_ns - t.begin_ns) for t in trail}
        if 'transport_features' in spent:
            self._latency.observe_transport(spent['transport_features'], now)
        if 'fusion' in spent:
            self._latency.observe_fusion(spent['fusion'], now)
        self._control.learned(late)

    def system_state(self, state: SystemState, now: float) -> None:
        """Take the state of battery and computer."""
        self.counts.states += 1
        self._policy.take(state, now)

    def update(self, now_ns: int, now: float) -> Configuration | None:
        """Return a new configuration, or None while the present one stays.

        :param now_ns: on the ROS clock
        """
        caps = self._policy.caps(now, self._scans.share(now))
        self.reasons = caps.reasons
        made = self._control.step(
            now_ns,
            now,
            self._predictor.predict(self.indicators),
            self._parameters.latency_limit,
            caps,
        )
        if made is None:
            return None
        self.counts.changes += 1
        self._scans.configure(made.of(RADAR).rate, now)
        if not self._predictor.is_measured:
            # Numbers that only put configurations in order are nobody's accuracy.
            made = replace(made, predicted_accuracy=math.nan)
        self.current = made
        return made


def assumed_unit_times(space: ConfigurationSpace) -> UnitTimeProfile:
    """Return unit times to begin with where no profile was measured; the first units correct it.

    15 ms for the cheapest level of a modality and twice as much for each further one.
    """
    units = {
        (options.modality, level): StageTime(_ASSUMED_UNIT * _ASSUMED_STEP**step, _ASSUMED_SCATTER)
        for options in space.modalities
        for step, level in enumerate(options.levels)
    }
    return UnitTimeProfile(
        units,
        StageTime(_ASSUMED_TRANSPORT, _ASSUMED_SCATTER),
        StageTime(_ASSUMED_FUSION, _ASSUMED_SCATTER),
    )
