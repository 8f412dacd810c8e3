"""Makes a camera from its parameters."""

from __future__ import annotations

from functools import partial

from mmedge_ros.clock import Clock
from mmedge_ros.geometry import GeometryError
from mmedge_ros.geometry.calibration import read_calibration
from mmedge_ros.geometry.projection import CameraModel
from mmedge_ros.sensing import SensingError
from mmedge_ros.sensing.camera.device import (
    FILE,
    GSTREAMER,
    REALSENSE,
    CameraOpener,
    CameraParameters,
    Wait,
)
from mmedge_ros.sensing.camera.files import check_file, open_file
from mmedge_ros.sensing.camera.opencv import check_gstreamer, open_gstreamer, open_v4l2
from mmedge_ros.sensing.camera.realsense import load_pyrealsense2, open_realsense


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
    except GeometryError as error:
        raise SensingError(str(error)) from error
    if camera is None:
        raise SensingError(f'{p.calibration_file} holds no camera; name a camera_info YAML')
    return camera
