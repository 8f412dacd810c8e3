"""What parameters say of where the sensors sit, for every node that needs to know."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mmedge_ros.geometry.calibration import read_calibration
from mmedge_ros.geometry.sensor_rig import SensorRig
from mmedge_ros.geometry.transforms import parse_static_transform
from mmedge_ros.parameter import parameter


def frame_prefix() -> Any:
    """Declare the prefix of frames, for every node that looks frames up."""
    return parameter(
        '',
        'before the name of every frame that does not begin with it, such as drone1/: for '
        'several drones in one tree of transforms',
    )


def set_up_rig(
    rig: SensorRig, transforms: Sequence[str], calibration_file: str, prefix: str = ''
) -> None:
    """Enter static transforms, and a calibration that takes the place of what is published.

    :param prefix: before the name of each frame
    :raises GeometryError: if a transform or the calibration cannot be read
    """
    rig.prefix = prefix
    rig.add_transforms([parse_static_transform(t) for t in transforms])
    if calibration_file:
        calibration = read_calibration(calibration_file)
        rig.add_transforms(calibration.transforms)
        if calibration.camera is not None:
            rig.set_camera(calibration.camera)
