"""The parts of the perception pipeline that can be replaced: measurements and early decisions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias

from mmedge_ros.core.data_types import Decision, Measurement, SkipDecision, UnitFeatures
from mmedge_ros.geometry.sensor_rig import SensorRig
from mmedge_ros.tracking.decision_fusion import DecisionFusionParameters, fuse_detections
from mmedge_ros.tracking.pairing import PairedUnits
from mmedge_ros.windows.early_decision import DecidingPipeline


class EarlyDecision(Protocol):
    """The part of a pipeline that may decide a window before all of it has arrived."""

    def attach(self, pipeline: DecidingPipeline) -> None:
        """Work with this pipeline from now on."""

    def unit_added(self, unit: UnitFeatures, now_ns: int) -> None:
        """Enter a unit that was taken in."""

    def decide(self, now_ns: int) -> list[Decision]:
        """Decide the windows that need not be waited for, in order."""

    def window_decided(self, decision: Decision) -> Decision:
        """Finish with a window that was decided in full; return the decision to publish."""

    def take_skips(self) -> Sequence[SkipDecision]:
        """Return the leases since the last call, in order; a later one replaces an earlier."""

    def reset(self) -> None:
        """Forget windows, units and tracks."""


# Where measurements come from: units that belong together, and where the sensors are.
MeasurementSource: TypeAlias = Callable[[PairedUnits, SensorRig], list[Measurement]]


def decision_fusion_source(parameters: DecisionFusionParameters) -> MeasurementSource:
    """Return decision fusion as a source of measurements."""

    def measure(units: PairedUnits, rig: SensorRig) -> list[Measurement]:
        return fuse_detections(
            units.camera,
            units.scans,
            rig.geometry_at(units.stamp_ns),
            parameters,
            [rig.geometry_at(scan.stamp_ns) for scan in units.scans],
        )

    return measure
