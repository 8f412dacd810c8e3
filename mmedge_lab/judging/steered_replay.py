"""Offline replay in which configurations change in flight, as an optimiser's node changes them.

The steering receives units, features, leases and decisions when its node would, and is queried
for a configuration on a timer; its answer reaches the encoders as fast as a receipt.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from mmedge_ros.adaptation.configuration_loop import ConfigurationLoop
from mmedge_ros.core.data_types import (
    NS_PER_S,
    Configuration,
    Decision,
    SkipDecision,
    Track,
    Trail,
    Unit,
    UnitFeatures,
    UnitOutcome,
    UnitReceipt,
)
from mmedge_ros.core.device_profile import DeviceProfile
from mmedge_ros.core.run_record import RunRecord
from mmedge_ros.encoding.unit_encoder import UnitEncoder
from mmedge_ros.geometry.sensor_rig import RigReport
from mmedge_ros.pipeline.perception_pipeline import PerceptionPipeline
from mmedge_ros.replay import ReplayError
from mmedge_ros.replay.offline_replay import OfflineReplay
from mmedge_ros.sensing.capture_control import ConfigurationSchedule

# The optimiser runs before the first unit comes, or a stamp of that is older than anybody's.
_HEAD_START_NS = 3 * NS_PER_S


class Steering:
    """Chooses configurations by the events of a replay; instants in ns on the recording's clock.

    Events whose method is not overridden make no difference to the choice.
    """

    def unit_arrived(
        self, modality: str, now_ns: int, stamp_ns: int = 0, available_ns: int = 0
    ) -> None:
        """Note that a unit reached its encoder, whatever becomes of it there.

        :param stamp_ns: when it was measured; 0 where that says nothing about later units
        """

    def features_ready(self, features: UnitFeatures, now_ns: int) -> None:
        """Note that features arrived; their trail says how long encoding took."""

    def resting(self, skip: SkipDecision, now_ns: int) -> None:
        """Note a skip lease."""

    def decided(self, latency: float, trail: Trail, now_ns: int) -> None:
        """Note that a decision was published: its latency (s), its critical unit's trail."""

    def tracked(self, tracks: Sequence[Track], now_ns: int) -> None:
        """Note the tracks of a decision that was published."""

    def update(self, now_ns: int) -> Configuration | None:
        """Return a configuration when another one is due."""
        raise NotImplementedError


class OptimiserSteering(Steering):
    """The configuration loop of the package, with the inputs of its node.

    :param learns: whether measured durations and latencies reach it; if not, its profile stands
    """

    def __init__(self, loop: ConfigurationLoop, learns: bool = True) -> None:
        self.loop = loop
        self._learns = learns

    def unit_arrived(
        self, modality: str, now_ns: int, stamp_ns: int = 0, available_ns: int = 0
    ) -> None:
        self.loop.unit_arrived(modality, now_ns / NS_PER_S, stamp_ns, available_ns)

    def features_ready(self, features: UnitFeatures, now_ns: int) -> None:
        if self.loop.scene is not None:
            self.loop.scene.encoded(features)
        if self._learns:
            now = now_ns / NS_PER_S
            if features.followed:
                taken = stage_seconds(features.trail, 'follow')
                self.loop.unit_followed(features.modality, taken, now)
            else:
                taken = stage_seconds(features.trail, 'encode')
                self.loop.unit_encoded(features.modality, features.level, taken, now)

    def resting(self, skip: SkipDecision, now_ns: int) -> None:
        self.loop.resting(skip.modality, max(skip.skip_until_ns, now_ns) / NS_PER_S)

    def decided(self, latency: float, trail: Trail, now_ns: int) -> None:
        if self._learns:
            self.loop.decided(latency, trail, now_ns / NS_PER_S)

    def tracked(self, tracks: Sequence[Track], now_ns: int) -> None:  # noqa: ARG002
        if self.loop.scene is not None:
            self.loop.scene.decided(tracks)

    def update(self, now_ns: int) -> Configuration | None:
        return self.loop.update(now_ns, now_ns / NS_PER_S)


class SteeredReplay(OfflineReplay):
    """Runs a pipeline whose configuration is chosen while it runs.

    ``configurations`` are those that were chosen, in order.

    :param rate: how often the steering is queried, Hz
    :raises ReplayError: when run, if the steering has no answer before the first unit
    """

    def __init__(
        self,
        pipeline: PerceptionPipeline,
        encoders: Mapping[str, UnitEncoder],
        profile: DeviceProfile,
        steering: Steering,
        native_periods_ns: Mapping[str, int] | None = None,
        rate: float = 10.0,
    ) -> None:
        super().__init__(pipeline, encoders, profile, native_periods_ns, self._publish)
        self.configurations: list[Configuration] = []
        self._steering = steering
        self._period_ns = round(NS_PER_S / rate)

    def _arrive(
        self,
        now_ns: int,
        arrival: Unit | RigReport,
        received: Iterator[Unit | RigReport],
    ) -> None:
        if not self.configurations:
            self._begin(now_ns)
        super()._arrive(now_ns, arrival, received)

    def _begin(self, now_ns: int) -> None:
        first = self._steering.update(now_ns - _HEAD_START_NS)
        if first is None:
            raise ReplayError('the steering has no configuration to begin with')
        self.configurations.append(first)
        for server in self.servers.values():
            server.intake.control.schedule = ConfigurationSchedule(first)
        self._at(now_ns + self._period_ns, self._ask)

    def _ask(self, now_ns: int) -> None:
        made = self._steering.update(now_ns)
        if made is not None:
            self.configurations.append(made)
            delay_ns = self._profiled('receipt.transport', 'configuration', made.id)
            self._at(now_ns + delay_ns, self._reconfigure, made)
        if not self._exhausted:
            self._at(now_ns + self._period_ns, self._ask)

    def _reconfigure(self, _: int, made: Configuration) -> None:
        for server in self.servers.values():
            server.intake.control.schedule.add(made)
        self.pipeline.configure(made)

    def _take_receipt(self, now_ns: int, receipt: UnitReceipt) -> None:
        super()._take_receipt(now_ns, receipt)
        if receipt.outcome not in (UnitOutcome.DROPPED, UnitOutcome.FAILED):  # reported before
            self._steering.unit_arrived(
                receipt.modality, now_ns, receipt.stamp_ns, receipt.available_ns
            )

    def _take_features(self, now_ns: int, features: UnitFeatures) -> None:
        super()._take_features(now_ns, features)
        self._steering.features_ready(features, now_ns)

    def _take_lease(self, now_ns: int, skip: SkipDecision) -> None:
        super()._take_lease(now_ns, skip)
        self._steering.resting(skip, now_ns)

    def _publish(self, decision: Decision) -> None:
        self._at(decision.published_ns, self._published, decision)

    def _published(self, now_ns: int, decision: Decision) -> None:
        self._steering.decided(decision.latency, decision.trail, now_ns)
        self._steering.tracked(decision.tracks, now_ns)

    def fill(self, record: RunRecord) -> None:
        super().fill(record)
        record.configurations = list(self.configurations)


def stage_seconds(trail: Trail, name: str) -> float:
    """Return how long a stage of a unit took by its trail; NaN where that does not tell."""
    for stage in reversed(trail):
        if stage.stage == name:
            return (stage.end_ns - stage.begin_ns) / NS_PER_S
    return math.nan
