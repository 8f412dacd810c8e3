"""What a camera is to this package, whatever it is made of: parameters, frames, the protocol."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeAlias

from mmedge_ros.core.parameter import parameter
from mmedge_ros.geometry.projection import CameraModel
from mmedge_ros.geometry.sensor_poses import CAMERA_FRAME
from mmedge_ros.sensing.camera.image import Picture

V4L2 = 'v4l2'
REALSENSE = 'realsense'
GSTREAMER = 'gstreamer'
FILE = 'file'

BGR = 'bgr8'
JPEG = 'jpeg'


@dataclass(frozen=True)
class CameraParameters:
    """A camera: which one, what is requested of it, and how its pictures are published."""

    source: str = parameter(
        V4L2,
        'what the camera is: a V4L2 device, a RealSense (needs pyrealsense2), a GStreamer '
        'pipeline, or a video file or folder of pictures',
        choices=(V4L2, REALSENSE, GSTREAMER, FILE),
    )
    device: str = parameter(
        '',
        'path of the V4L2 device (/dev/mmedge_camera, /dev/v4l/by-id/...), serial number of the '
        'RealSense, text of the GStreamer pipeline, or path of the file or folder; empty takes '
        'the first V4L2 device or RealSense',
    )
    width: int = parameter(640, 'width requested of the device', 'px', 16, 16384)
    height: int = parameter(480, 'height requested of the device', 'px', 16, 16384)
    rate: float = parameter(
        30.0,
        'pictures per second requested of the device, and the pace of a folder; a video file '
        'has its own; 0 leaves a device its own',
        'Hz',
        0.0,
        1000.0,
    )
    pixel_format: str = parameter(
        'MJPG',
        'format requested of a V4L2 device; MJPG, because uncompressed pictures fill a USB 2 '
        'line at 640 x 480 and 30 Hz',
        choices=('MJPG', 'YUYV', ''),
    )
    exposure: float = parameter(
        0.0,
        'fixed exposure of a V4L2 device, so that stamps are exactly mid-exposure and the rate '
        'holds in the dark; 0 leaves it automatic',
        's',
        0.0,
        1.0,
    )
    delay: float = parameter(
        0.0,
        'from mid-exposure to arrival, taken off the stamp where the device has no time of '
        'its own',
        's',
        0.0,
        1.0,
    )
    loop: bool = parameter(False, 'a file or folder starts over at its end')
    image_transport: str = parameter(
        'raw',
        'publish bgr8 on camera/image, or jpeg on camera/image/compressed (as the device sends '
        'it, where it does)',
        choices=('raw', 'compressed'),
    )
    # Of pictures that have to be compressed here; below 80 small people suffer.
    jpeg_quality: int = 90
    calibration_file: str = parameter(
        '', 'camera_info YAML; empty takes what the device knows of itself, if anything'
    )
    frame_id: str = parameter(CAMERA_FRAME, 'frame of the pictures')
    # The camera is reported silent after this long without a picture (s).
    silence: float = 0.5

    @property
    def compressed(self) -> bool:
        """Whether pictures are handed over compressed."""
        return self.image_transport == 'compressed'


class CameraFormat(NamedTuple):
    """What a device has agreed to; 0 and '' where it does not say."""

    width: int = 0
    height: int = 0
    rate: float = 0.0
    encoding: str = ''

    def __str__(self) -> str:
        rate = f' at {self.rate:g} Hz' if self.rate else ''
        encoding = f' {self.encoding}' if self.encoding else ''
        return f'{self.width} x {self.height} px{rate}{encoding}'


class Exposure(NamedTuple):
    """A picture that waits in the device: mid-exposure where known, and when it had arrived.

    ``missed`` pictures were lost between this one and the one before.
    """

    stamp_ns: int
    available_ns: int
    missed: int = 0


class Shot(NamedTuple):
    """A picture out of a device: (H, W, 3) uint8 BGR, or the bytes of a JPEG or PNG."""

    encoding: str
    image: Picture | bytes


@dataclass(frozen=True, slots=True, eq=False)
class CameraFrame:
    """A picture ready to be published; ``encoding`` is ``bgr8``, ``jpeg`` or ``png``."""

    stamp_ns: int
    available_ns: int
    encoding: str
    image: Picture | bytes
    width: int
    height: int


class CameraDevice(Protocol):
    """An open camera. Every method may raise SensingError, which says what happened.

    ``name`` is what a person calls it, ``calibration`` what it knows of itself, ``notes`` say
    how the agreed format differs from the requested one.
    """

    name: str
    format: CameraFormat
    calibration: CameraModel | None
    notes: tuple[str, ...]

    def grab(self) -> Exposure | None:
        """Wait for the next picture and leave it in the device; None at the end of a file.

        :raises SensingError: when the device is gone
        """

    def retrieve(self) -> Shot:
        """Return the picture that was grabbed last; unwanted pictures are not decoded.

        :raises SensingError: when this one picture is damaged
        """

    def close(self) -> None:
        """Let go of the device; closing twice does no harm."""


# Opens the camera, anew after each loss. Waits a number of seconds, or less when it is to stop.
CameraOpener: TypeAlias = Callable[[], CameraDevice]
Wait: TypeAlias = Callable[[float], bool]
