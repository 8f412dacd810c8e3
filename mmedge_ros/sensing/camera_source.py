"""Makes a camera from its parameters."""

from __future__ import annotations

from functools import partial

from mmedge_ros.clock import Clock
from mmedge_ros.fusion.calibration import read_calibration
from mmedge_ros.fusion.errors import FusionError
from mmedge_ros.fusion.projection import CameraModel
from mmedge_ros.sensing.camera_device import (
    FILE,
    GSTREAMER,
    REALSENSE,
    CameraOpener,
    CameraParameters,
    Wait,
)
from mmedge_ros.sensing.camera_files import check_file, open_file
from mmedge_ros.sensing.camera_opencv import check_gstreamer, open_gstreamer, open_v4l2
from mmedge_ros.sensing.camera_realsense import load_pyrealsense2, open_realsense
from mmedge_ros.sensing.errors import SensingError


def camera_opener(p: CameraParameters, clock: Clock, wait: Wait) -> CameraOpener:
    """Return what opens the camera, now and after each loss.

    :param wait: waits seconds, or less when told to stop
    :raises SensingError: when it can never work: a library is missing, or a file is no film
    """
    if p.source == REALSENSE:
        return partial(open_realsense, load_pyrealsense2(), p, clock)
    if p.source == GSTREAMER:
        check_gstreamer(p.device)
        return partial(open_gstreamer, p, clock)
    if p.source == FILE:
        check_file(p.device)
        # A file that is no film now will not become one; that it may vanish is another matter.
        open_file(p, clock, wait).close()
        return partial(open_file, p, clock, wait)
    return partial(open_v4l2, p, clock)


def given_calibration(p: CameraParameters) -> CameraModel | None:
    """Read the calibration file, if one is given.

    :raises SensingError: when it cannot be used
    """
    if not p.calibration_file:
        return None
    try:
        camera = read_calibration(p.calibration_file).camera
    except FusionError as error:
        raise SensingError(str(error)) from error
    if camera is None:
        raise SensingError(f'{p.calibration_file} holds no camera; name a camera_info YAML')
    return camera
