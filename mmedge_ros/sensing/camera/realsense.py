"""Intel RealSense cameras through pyrealsense2, where it is installed.

Times: librealsense, "Frame metadata" (rs_frame.h): the frame timestamp marks the begin of
readout, the sensor timestamp the middle of exposure, both on the device's clock; in the domain
``global_time`` get_timestamp() carries the former over to the host's.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

from mmedge_ros.core.clock import Clock
from mmedge_ros.core.data_types import NS_PER_S
from mmedge_ros.geometry import GeometryError
from mmedge_ros.geometry.projection import CameraModel
from mmedge_ros.sensing import SensingError
from mmedge_ros.sensing.camera.device import BGR, CameraFormat, CameraParameters, Exposure, Shot

_TIMEOUT_MS = 1000
# A picture whose time lies farther off is on a clock that is not ours.
_OLDEST_NS = NS_PER_S

# Names of rs.distortion in sensor_msgs' words; others have no word there.
_MODELS = {
    'none': ('none', 0),
    'brown_conrady': ('plumb_bob', 5),
    'modified_brown_conrady': ('plumb_bob', 5),
    'kannala_brandt4': ('equidistant', 4),
}


def load_pyrealsense2(imported: Callable[[str], Any] = import_module) -> Any:
    """Return the module. Raises SensingError when it is not installed."""
    try:
        return imported('pyrealsense2')
    except ImportError as error:
        raise SensingError(
            f'pyrealsense2 cannot be imported ({error}); pip install pyrealsense2 (on a Jetson '
            "build it with librealsense), or use source v4l2, or Intel's ROS driver"
        ) from error


class RealSenseCamera:
    """The colour stream of a RealSense; see CameraDevice.

    :param rs: the module pyrealsense2
    :raises SensingError: when the camera is not there or does not offer the format
    """

    def __init__(self, rs: Any, p: CameraParameters, clock: Clock) -> None:
        self.name = f'RealSense {p.device}'.strip()
        self.notes: tuple[str, ...] = ()
        self._rs = rs
        self._clock = clock
        self._delay_ns = round(p.delay * NS_PER_S)
        self._frame: Any = None
        self._number: int | None = None
        configuration = rs.config()
        if p.device:
            configuration.enable_device(p.device)
        configuration.enable_stream(
            rs.stream.color, p.width, p.height, rs.format.bgr8, round(p.rate)
        )
        self._pipeline = rs.pipeline()
        try:
            profile = self._pipeline.start(configuration)
            stream = profile.get_stream(rs.stream.color).as_video_stream_profile()
            self.format = CameraFormat(stream.width(), stream.height(), float(stream.fps()), BGR)
            self.calibration = self._calibration(stream.get_intrinsics())
        # The library raises RuntimeError for all that can happen.
        except RuntimeError as error:
            raise SensingError(
                f'{self.name} does not start: {error}; is it plugged into USB 3, and does it '
                f'offer {p.width} x {p.height} px at {p.rate:g} Hz?'
            ) from error

    def grab(self) -> Exposure | None:
        try:
            frame = self._pipeline.wait_for_frames(_TIMEOUT_MS).get_color_frame()
        except RuntimeError as error:
            raise SensingError(f'{self.name} sends no more pictures: {error}') from error
        if not frame:
            raise SensingError(f'{self.name} sends frames without colour')
        available_ns = self._clock.now_ns()
        self._frame = frame
        number = int(frame.get_frame_number())
        missed = 0 if self._number is None else max(number - self._number - 1, 0)
        self._number = number
        return Exposure(self._stamp_ns(frame, available_ns), available_ns, missed)

    def retrieve(self) -> Shot:
        """Return the picture; it is copied, because the library uses its memory again."""
        return Shot(BGR, np.array(self._frame.get_data(), np.uint8))

    def close(self) -> None:
        self._frame = None
        try:
            self._pipeline.stop()
        except RuntimeError:
            return  # it was not running any more

    def _stamp_ns(self, frame: Any, available_ns: int) -> int:
        """Return mid-exposure on the host's clock."""
        domain = frame.get_frame_timestamp_domain()
        if domain != self._rs.timestamp_domain.global_time:
            return available_ns - self._delay_ns
        stamp_ns = round(frame.get_timestamp() * 1e6) - self._since_mid_exposure_ns(frame)
        plausible = 0 <= available_ns - stamp_ns < _OLDEST_NS
        return stamp_ns if plausible else available_ns - self._delay_ns

    def _since_mid_exposure_ns(self, frame: Any) -> int:
        """Nanoseconds from mid-exposure to readout, 0 where the firmware does not say."""
        values = self._rs.frame_metadata_value
        readout, middle = values.frame_timestamp, values.sensor_timestamp
        if not all(frame.supports_frame_metadata(value) for value in (readout, middle)):
            return 0
        microseconds = frame.get_frame_metadata(readout) - frame.get_frame_metadata(middle)
        return max(int(microseconds), 0) * 1000

    def _calibration(self, intrinsics: Any) -> CameraModel | None:
        """Return what the factory measured; None, with a note, where it has no ROS name."""
        coefficients = np.array(intrinsics.coeffs, np.float64)
        name = str(intrinsics.model).rpartition('.')[2]
        model, count = _MODELS['none'] if not coefficients.any() else _MODELS.get(name, ('', 0))
        k = np.array(
            [[intrinsics.fx, 0, intrinsics.ppx], [0, intrinsics.fy, intrinsics.ppy], [0, 0, 1]],
            np.float64,
        )
        reason = f'its distortion model is {name}'
        try:
            if model:
                d = coefficients[:count]
                return CameraModel(intrinsics.width, intrinsics.height, k, d, model)
        except GeometryError as error:
            reason = str(error)
        self.notes = (*self.notes, f'its own calibration cannot be used: {reason}')
        return None
