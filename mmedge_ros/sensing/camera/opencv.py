"""Cameras through OpenCV: V4L2 devices and GStreamer pipelines."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import cv2
import numpy as np

from mmedge_ros.core.clock import Clock
from mmedge_ros.core.data_types import NS_PER_S
from mmedge_ros.core.untrusted_files import brief, shown
from mmedge_ros.geometry.projection import CameraModel
from mmedge_ros.sensing import SensingError
from mmedge_ros.sensing.camera.device import (
    BGR,
    JPEG,
    CameraFormat,
    CameraParameters,
    Exposure,
    Shot,
)

DEVICES = Path('/dev')
SYSFS = Path('/sys/class/video4linux')

_JPEG_BEGIN = b'\xff\xd8'
_JPEG_END = b'\xff\xd9'
# V4L2_EXPOSURE_MANUAL and V4L2_EXPOSURE_APERTURE_PRIORITY of linux/v4l2-controls.h.
_MANUAL, _AUTOMATIC = 1, 3
# V4L2_CID_EXPOSURE_ABSOLUTE counts in steps of 100 us.
_EXPOSURE_STEP = 1e-4
# A driver's buffer time that is farther away is on another clock.
_OLDEST_BUFFER_NS = NS_PER_S
# A rate from this share of the requested one on needs no note.
_NEAR = 0.95


class Capture(Protocol):
    """The part of cv2.VideoCapture that is used here."""

    # OpenCV's own name.
    def isOpened(self) -> bool: ...  # noqa: N802
    def set(self, propId: int, value: float) -> bool: ...  # noqa: N803
    def get(self, propId: int) -> float: ...  # noqa: N803
    def grab(self) -> bool: ...
    def retrieve(self) -> tuple[bool, Any]: ...
    def release(self) -> None: ...


OpenCapture = Callable[[str, int], Capture]


def open_capture(name: str, backend: int) -> Capture:
    """Open a capture of OpenCV; `isOpened` says whether it succeeded."""
    capture: Capture = cv2.VideoCapture(name, backend)
    return capture


class OpenCvCamera:
    """A device or pipeline that OpenCV reads; see CameraDevice.

    :param exposure: fixed exposure in seconds, 0 if it is not known
    :param delay: from mid-exposure to arrival in seconds, for captures without buffer times
    """

    def __init__(
        self,
        name: str,
        capture: Capture,
        clock: Clock,
        exposure: float = 0.0,
        delay: float = 0.0,
        notes: tuple[str, ...] = (),
    ) -> None:
        self.name = name
        self.calibration: CameraModel | None = None
        self.notes = notes
        self.format = agreed_format(capture)
        self._capture = capture
        self._clock = clock
        self._exposure_ns = round(exposure * NS_PER_S)
        self._delay_ns = round(delay * NS_PER_S)

    def grab(self) -> Exposure | None:
        try:
            grabbed = self._capture.grab()
        except cv2.error as error:
            raise SensingError(f'{self.name} cannot be read ({brief(error)})') from error
        if not grabbed:
            raise SensingError(f'{self.name} sends no more pictures; is it still plugged in?')
        available_ns = self._clock.now_ns()
        return Exposure(available_ns - self._age_ns(), available_ns)

    def retrieve(self) -> Shot:
        """Return the picture: BGR, or the device's own JPEG where it hands that over."""
        try:
            there, picture = self._capture.retrieve()
        except cv2.error as error:
            raise SensingError(f'{self.name}: damaged picture ({brief(error)})') from error
        if not there or picture is None or picture.dtype != np.uint8 or not picture.size:
            raise SensingError(f'{self.name}: damaged picture')
        if picture.ndim == 3 and picture.shape[2] == 3:
            return Shot(BGR, picture)
        data = picture.tobytes()
        end = data.rfind(_JPEG_END)
        if not data.startswith(_JPEG_BEGIN) or end < 0:
            raise SensingError(f'{self.name}: {len(data)} bytes that are no JPEG')
        # What follows is the unused rest of the driver's buffer.
        return Shot(JPEG, data[: end + len(_JPEG_END)])

    def close(self) -> None:
        self._capture.release()

    def _age_ns(self) -> int:
        """Nanoseconds since mid-exposure.

        V4L2 drivers note on the monotonic clock when exposure began (linux uvcvideo:
        V4L2_BUF_FLAG_TSTAMP_SRC_SOE), and OpenCV passes that on.
        """
        buffer_ns = round(self._capture.get(cv2.CAP_PROP_POS_MSEC) * 1e6)
        age_ns = self._clock.monotonic_ns() - buffer_ns
        if buffer_ns <= 0 or not 0 <= age_ns < _OLDEST_BUFFER_NS:
            return self._delay_ns
        return max(age_ns - self._exposure_ns // 2, 0)


def agreed_format(capture: Capture) -> CameraFormat:
    """Ask a capture what it has agreed to."""
    code = int(capture.get(cv2.CAP_PROP_FOURCC))
    letters = bytes((code >> shift) & 0xFF for shift in (0, 8, 16, 24))
    rate = capture.get(cv2.CAP_PROP_FPS)
    return CameraFormat(
        max(int(capture.get(cv2.CAP_PROP_FRAME_WIDTH)), 0),
        max(int(capture.get(cv2.CAP_PROP_FRAME_HEIGHT)), 0),
        rate if 0.0 < rate < 10_000.0 else 0.0,
        letters.decode('ascii') if letters.isalnum() else '',
    )


def open_v4l2(
    p: CameraParameters,
    clock: Clock,
    opened: OpenCapture = open_capture,
    devices: Path = DEVICES,
    sysfs: Path = SYSFS,
) -> OpenCvCamera:
    """Open a V4L2 device and negotiate format, size, rate and exposure.

    :raises SensingError: when it is not there or gives nothing
    """
    path = device_path(p.device, devices, sysfs)
    # A link such as /dev/v4l/by-id/... may lead elsewhere after each plugging in.
    capture = _open(str(path.resolve()), f'{path}', cv2.CAP_V4L2, opened)
    exposed = _set_exposure(capture, p.exposure)
    notes = _negotiate(capture, p)
    if p.exposure and not exposed:
        notes.append(f'it does not take an exposure of {p.exposure:g} s')
    exposure = p.exposure if exposed else 0.0
    return OpenCvCamera(str(path), capture, clock, exposure, p.delay, tuple(notes))


def _set_exposure(capture: Capture, exposure: float) -> bool:
    """Fix the exposure in seconds, or leave it to the device (0); says whether it is taken."""
    if not exposure:
        return capture.set(cv2.CAP_PROP_AUTO_EXPOSURE, float(_AUTOMATIC))
    steps = float(round(exposure / _EXPOSURE_STEP))
    manual = capture.set(cv2.CAP_PROP_AUTO_EXPOSURE, float(_MANUAL))
    return manual and capture.set(cv2.CAP_PROP_EXPOSURE, steps)


def _negotiate(capture: Capture, p: CameraParameters) -> list[str]:
    """Ask for what the parameters say, and say what was not granted."""
    if p.pixel_format:
        capture.set(cv2.CAP_PROP_FOURCC, float(fourcc(p.pixel_format)))
    capture.set(cv2.CAP_PROP_FRAME_WIDTH, float(p.width))
    capture.set(cv2.CAP_PROP_FRAME_HEIGHT, float(p.height))
    if p.rate:
        capture.set(cv2.CAP_PROP_FPS, p.rate)
    agreed = agreed_format(capture)
    if p.compressed and agreed.encoding == 'MJPG':
        capture.set(cv2.CAP_PROP_CONVERT_RGB, 0.0)
    notes = []
    if (agreed.width, agreed.height) != (p.width, p.height):
        notes.append(
            f'{p.width} x {p.height} px were asked for, it sends {agreed.width} x {agreed.height}'
        )
    if p.pixel_format and agreed.encoding != p.pixel_format:
        notes.append(f'{p.pixel_format} was asked for, it sends {agreed.encoding or "another"}')
    if p.rate and agreed.rate and agreed.rate < _NEAR * p.rate:
        notes.append(f'{p.rate:g} Hz were asked for, it offers {agreed.rate:g} Hz')
    return notes


def device_path(given: str, devices: Path = DEVICES, sysfs: Path = SYSFS) -> Path:
    """Return the path of a V4L2 device: the one given, or the first that takes pictures.

    :raises SensingError: when it is not there; names those that are
    """
    present = capture_devices(devices, sysfs)
    if not given:
        if not present:
            raise SensingError(f'no camera: there is no video device in {devices}')
        return present[0]
    path = devices / f'video{given}' if given.isdecimal() else Path(given)
    if not is_there(path):
        others = ', '.join(map(str, present)) or 'no video device'
        raise SensingError(
            f'{shown(given)} does not exist; is the camera plugged in? There is {others}'
        )
    return path


def is_there(path: Path) -> bool:
    """Whether a path exists; one that no file system can hold does not."""
    try:
        path.stat()
    except (OSError, ValueError):
        return False
    return True


def capture_devices(devices: Path = DEVICES, sysfs: Path = SYSFS) -> list[Path]:
    """List video devices that take pictures; the others of a camera carry metadata."""
    cameras = []
    for path in sorted(devices.glob('video*'), key=lambda path: (len(path.name), path.name)):
        try:
            index = (sysfs / path.name / 'index').read_text().strip()
        except OSError:
            index = '0'
        if index == '0':
            cameras.append(path)
    return cameras


def open_gstreamer(
    p: CameraParameters, clock: Clock, opened: OpenCapture = open_capture
) -> OpenCvCamera:
    """Open a GStreamer pipeline. Raises SensingError when it cannot run."""
    capture = _open(p.device, 'the GStreamer pipeline', cv2.CAP_GSTREAMER, opened)
    return OpenCvCamera('the GStreamer pipeline', capture, clock, delay=p.delay)


def check_gstreamer(pipeline: str, supported: bool | None = None) -> None:
    """Find out what can be known of a pipeline before it runs.

    :raises SensingError: with the remedy
    """
    if supported is None:
        supported = cv2.videoio_registry.hasBackend(cv2.CAP_GSTREAMER)
    if not supported:
        raise SensingError(
            'this OpenCV is built without GStreamer (the wheels from PyPI are); use the one of '
            'the system (apt: python3-opencv, or the one of JetPack), or source v4l2'
        )
    if 'appsink' not in pipeline:
        raise SensingError(
            f'the GStreamer pipeline {shown(pipeline)} has no appsink; let it end with '
            '"! videoconvert ! video/x-raw,format=BGR ! appsink drop=true max-buffers=1"'
        )


def fourcc(letters: str) -> int:
    """Return the code of a pixel format from its four letters."""
    return sum(ord(letter) << 8 * place for place, letter in enumerate(letters))


def _open(name: str, title: str, backend: int, opened: OpenCapture) -> Capture:
    try:
        capture = opened(name, backend)
    except cv2.error as error:
        raise SensingError(f'{title} cannot be opened ({brief(error)})') from error
    if not capture.isOpened():
        capture.release()
        raise SensingError(
            f'{title} cannot be opened; is another program using it, and may you read it '
            '(group video)?'
            if backend == cv2.CAP_V4L2
            else f'{title} cannot be started; try it with gst-launch-1.0'
        )
    return capture
