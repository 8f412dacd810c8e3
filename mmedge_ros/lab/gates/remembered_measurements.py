"""Measurements of one flight that is replayed many times: each is worked out once.

What a picture and the scans paired with it say of people does not depend on the tracks, and is
more than half of the work of decision fusion.
"""

from __future__ import annotations

from typing import TypeAlias

from mmedge_ros.data_types import Measurement, UnitKey
from mmedge_ros.fusion.decision_fusion import DecisionFusionParameters
from mmedge_ros.fusion.pairing import PairedUnits
from mmedge_ros.geometry.sensor_rig import SensorRig
from mmedge_ros.pipeline.perception_pipeline import MeasurementSource, decision_fusion_source

# By units, frame, and the newest odometry where the units are newer still.
_Key: TypeAlias = tuple[UnitKey | None, tuple[UnitKey, ...], str, int | None]
Measured: TypeAlias = dict[_Key, list[Measurement]]


def remembered_source(parameters: DecisionFusionParameters, memory: Measured) -> MeasurementSource:
    """Return decision fusion that looks into ``memory`` first.

    The memory is shared by pipelines that replay one flight in one configuration. Feature fusion
    makes something else of a picture in each window: it must not be given one.
    """
    source = decision_fusion_source(parameters)

    def measure(units: PairedUnits, rig: SensorRig) -> list[Measurement]:
        ego_ns = rig.newest_ego_ns
        members = [*units.scans, *([units.camera] if units.camera is not None else [])]
        is_settled = ego_ns is None or ego_ns >= max(unit.stamp_ns for unit in members)
        key = (
            None if units.camera is None else units.camera.key,
            tuple(scan.key for scan in units.scans),
            rig.frame_id,
            None if is_settled else ego_ns,
        )
        found = memory.get(key)
        if found is None:
            found = memory[key] = source(units, rig)
        return found

    return measure
