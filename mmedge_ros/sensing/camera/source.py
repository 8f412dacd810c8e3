"""Makes a camera from its parameters, and runs it in a thread that keeps the newest picture."""

from __future__ import annotations

import threading
from functools import partial

from mmedge_ros.core.clock import Clock
from mmedge_ros.geometry import GeometryError
from mmedge_ros.geometry.calibration import read_calibration
from mmedge_ros.geometry.projection import CameraModel
from mmedge_ros.sensing import SensingError
from mmedge_ros.sensing.camera.device import (
    FILE,
    GSTREAMER,
    REALSENSE,
    CameraFrame,
    CameraOpener,
    CameraParameters,
    Wait,
)
from mmedge_ros.sensing.camera.files import check_file, open_file
from mmedge_ros.sensing.camera.opencv import check_gstreamer, open_gstreamer, open_v4l2
from mmedge_ros.sensing.camera.reader import CameraReader
from mmedge_ros.sensing.camera.realsense import RealSenseCamera, load_pyrealsense2
from mmedge_ros.sensing.capture_control import LatestQueue

_PATIENCE = 1.0


def camera_opener(p: CameraParameters, clock: Clock, wait: Wait) -> CameraOpener:
    """Return what opens the camera, now and after each loss.

    :param wait: waits seconds, or less when it is to stop
    :raises SensingError: when it can never work: a library is missing, or a file is no film
    """
    if p.source == REALSENSE:
        return partial(RealSenseCamera, load_pyrealsense2(), p, clock)
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
    """Read the calibration file, if one is given. Raises SensingError when it cannot be used."""
    if not p.calibration_file:
        return None
    try:
        camera = read_calibration(p.calibration_file).camera
    except GeometryError as error:
        raise SensingError(str(error)) from error
    if camera is None:
        raise SensingError(f'{p.calibration_file} holds no camera; name a camera_info YAML')
    return camera


class CameraStream:
    """Runs a CameraReader in a thread of its own.

    One picture waits at most: when the next one comes before it was taken, it is dropped and
    counted, because a fresh picture is worth more than an old one.

    :param ended: set to make waiting parts of the reader come back at once
    """

    def __init__(self, reader: CameraReader, ended: threading.Event) -> None:
        self.reader = reader
        self._ended = ended
        self._newest: LatestQueue[CameraFrame] = LatestQueue(1)
        self._thread = threading.Thread(target=self._run, name='camera', daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """End the thread; one that a driver holds up is left to end with the process."""
        self._ended.set()
        self._newest.close()
        if self._thread.is_alive():
            self._thread.join(_PATIENCE)

    def take(self, timeout: float) -> CameraFrame | None:
        """Return the newest picture and forget it; wait for one, but not longer than that."""
        frame = self._newest.take(timeout)
        self.reader.counts.transferred += frame is not None
        return frame

    def put(self, frame: CameraFrame) -> None:
        self._newest.put(frame)
        self.reader.counts.dropped = self._newest.dropped

    def _run(self) -> None:
        try:
            while not self._ended.is_set():
                step = self.reader.step()
                if step.frame is not None:
                    self.put(step.frame)
                elif step.pause:
                    self._ended.wait(step.pause)
        finally:
            self.reader.close()
