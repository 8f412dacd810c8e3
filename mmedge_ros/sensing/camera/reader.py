"""Reads a camera picture by picture; opens it again when it is lost. No thread, no clock."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import NamedTuple

import cv2

from mmedge_ros.core.clock import Clock
from mmedge_ros.core.data_types import NS_PER_S
from mmedge_ros.geometry.projection import CameraModel
from mmedge_ros.sensing import SensingError
from mmedge_ros.sensing.camera.device import (
    BGR,
    JPEG,
    CameraDevice,
    CameraFrame,
    CameraOpener,
    CameraParameters,
    Exposure,
    Shot,
)
from mmedge_ros.sensing.camera.image import decode_image, quick_format
from mmedge_ros.sensing.capture_control import Admission, CaptureControl

# Seconds between attempts to open a camera: soon, because most losses are short; then less
# often, because each attempt may keep the bus busy.
_FIRST_PAUSE = 0.2
_LONGEST_PAUSE = 1.0
# So many damaged pictures in a row are no bad luck any more.
_MOST_DAMAGED = 10
# A rate is judged over this long, and too low below this share of what was agreed.
_RATE_SPAN_NS = 2 * NS_PER_S
_SHORT = 0.9
# Periods of a slow camera that belong to its pace and are no silence.
_PATIENCE_PERIODS = 3.0
# A picture is decoded and handed to its encoder in about this time (ns).
_HANDED_OVER_NS = 15_000_000


@dataclass
class CaptureCounts:
    """What became of the pictures, and how often the camera was lost.

    ``missed`` ones were lost before they could be read, ``dropped`` ones because they were not
    taken in time.
    """

    captured: int = 0
    transferred: int = 0
    thinned: int = 0
    skipped: int = 0
    missed: int = 0
    damaged: int = 0
    dropped: int = 0
    losses: int = 0


class RateMeter:
    """The rate of what arrived during the last two seconds."""

    def __init__(self) -> None:
        self._arrivals: deque[int] = deque()
        self._since_ns: int | None = None

    def reset(self) -> None:
        self._arrivals.clear()
        self._since_ns = None

    def add(self, now_ns: int) -> None:
        """Note an arrival on the monotonic clock."""
        if self._since_ns is None:
            self._since_ns = now_ns
        self._arrivals.append(now_ns)
        while self._arrivals[0] < now_ns - _RATE_SPAN_NS:
            self._arrivals.popleft()

    @property
    def rate(self) -> float:
        """Hz; 0 until two have arrived."""
        arrivals = self._arrivals
        if len(arrivals) < 2:
            return 0.0
        return (len(arrivals) - 1) * NS_PER_S / max(arrivals[-1] - arrivals[0], 1)

    @property
    def is_settled(self) -> bool:
        arrivals, since_ns = self._arrivals, self._since_ns
        return (
            bool(arrivals) and since_ns is not None and (arrivals[-1] - since_ns >= _RATE_SPAN_NS)
        )


class ReaderStep(NamedTuple):
    """Result of one step: a picture to be published, or how long to pause before the next one."""

    frame: CameraFrame | None = None
    pause: float = 0.0


class CameraReader:
    """One camera from opening to loss and back; see `step`.

    :param control: decides which pictures are wanted; the others are not even decoded
    :param calibration: takes the place of what the device knows
    :param say: called with a sentence when the camera is opened and when it is lost
    """

    def __init__(
        self,
        opener: CameraOpener,
        parameters: CameraParameters,
        control: CaptureControl,
        clock: Clock,
        calibration: CameraModel | None = None,
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.counts = CaptureCounts()
        self.control = control
        self.device: CameraDevice | None = None
        self.has_ended = False
        self.calibration: CameraModel | None = None
        self._opener = opener
        self._parameters = parameters
        self._clock = clock
        self._given_calibration = calibration
        self._say = say
        self._rate = RateMeter()
        self._pause = _FIRST_PAUSE
        self._loss = 'the camera is not open yet'
        self._reported: set[str] = set()
        self._unsuited = ''
        self._damaged_in_a_row = 0
        self._arrived_ns = clock.monotonic_ns()
        self._size: tuple[int, int] | None = None

    @property
    def rate(self) -> float:
        """Pictures per second that the camera really takes."""
        return self._rate.rate

    def step(self) -> ReaderStep:
        """Open the camera, or wait for its next picture and take it in."""
        if self.has_ended:
            return ReaderStep(pause=_LONGEST_PAUSE)
        device = self.device
        if device is None:
            return self._open()
        try:
            exposure = device.grab()
        except SensingError as error:
            return self._lose(str(error))
        if exposure is None:
            self.has_ended = True
            self._say(f'{device.name} has ended')
            return ReaderStep()
        self._note(exposure)
        handed_over_ns = exposure.available_ns + _HANDED_OVER_NS
        verdict = self.control.admit(exposure.stamp_ns, handed_over_ns)
        self.counts.thinned += verdict is Admission.THINNED
        self.counts.skipped += verdict is Admission.SKIPPED
        return self._take(device, exposure) if verdict is Admission.TAKE else ReaderStep()

    def close(self) -> None:
        device, self.device = self.device, None
        if device is not None:
            device.close()

    def is_failing(self) -> bool:
        return self.device is None or self._silence() > 0.0

    def problems(self) -> list[str]:
        """Say what is wrong at present; may be called from another thread."""
        device = self.device
        if device is None:
            return [self._loss]
        if self.has_ended:
            return [f'{device.name} has ended']
        silence = self._silence()
        if silence:
            return [f'{device.name} has sent no picture for {silence:.1f} s']
        problems = [f'{device.name}: {note}' for note in device.notes]
        nominal = device.format.rate
        if self._rate.is_settled and self.rate < _SHORT * nominal:
            problems.append(
                f'{device.name} delivers {self.rate:.1f} Hz instead of {nominal:.1f}: in dim '
                'light automatic exposure slows a camera down, and so does a full USB bus'
            )
        return [*problems, self._unsuited] if self._unsuited else problems

    def _silence(self) -> float:
        """Seconds without a picture, 0 while that is no longer than a camera may take."""
        device = self.device
        if device is None or self.has_ended:
            return 0.0
        period = 1.0 / device.format.rate if device.format.rate else 0.0
        allowed = max(self._parameters.silence, _PATIENCE_PERIODS * period)
        silence = (self._clock.monotonic_ns() - self._arrived_ns) / NS_PER_S
        return silence if silence > allowed else 0.0

    def _open(self) -> ReaderStep:
        try:
            device = self._opener()
        except SensingError as error:
            self._loss = str(error)
            self._report(f'{error}; trying again until it is there')
            return self._back_off()
        self._rate.reset()
        self._size = None
        self._damaged_in_a_row = 0
        self._arrived_ns = self._clock.monotonic_ns()
        self.device = device
        self._report(f'{device.name} is open: {device.format}')
        return ReaderStep()

    def _lose(self, reason: str) -> ReaderStep:
        self.close()
        self.counts.losses += 1
        self._loss = reason
        self._report(reason)
        return self._back_off()

    def _back_off(self) -> ReaderStep:
        pause, self._pause = self._pause, min(2.0 * self._pause, _LONGEST_PAUSE)
        return ReaderStep(pause=pause)

    def _report(self, text: str) -> None:
        """Say something, but not again until a picture has come."""
        if text not in self._reported:
            self._reported.add(text)
            self._say(text)

    def _note(self, exposure: Exposure) -> None:
        self.counts.captured += 1 + exposure.missed
        self.counts.missed += exposure.missed
        self._arrived_ns = self._clock.monotonic_ns()
        self._rate.add(self._arrived_ns)
        # Only now: a camera that opens but sends nothing is tried ever less often.
        self._pause = _FIRST_PAUSE
        self._reported.clear()

    def _take(self, device: CameraDevice, exposure: Exposure) -> ReaderStep:
        try:
            shot = self._as_wanted(device.retrieve())
            size = _size_of(shot)
        except SensingError as error:
            self.counts.damaged += 1
            self._damaged_in_a_row += 1
            if self._damaged_in_a_row < _MOST_DAMAGED:
                return ReaderStep()
            return self._lose(f'{_MOST_DAMAGED} pictures in a row: {error}')
        self._damaged_in_a_row = 0
        if size != self._size:
            self._size = size
            self._choose_calibration(device, size)
        return ReaderStep(
            CameraFrame(
                exposure.stamp_ns, exposure.available_ns, *shot, width=size[0], height=size[1]
            )
        )

    def _as_wanted(self, shot: Shot) -> Shot:
        """Encode or decode, where the device does not give what is to be published."""
        if isinstance(shot.image, bytes):
            if self._parameters.compressed:
                return shot
            message = SimpleNamespace(data=shot.image, format=shot.encoding)
            return Shot(BGR, decode_image(message))
        if not self._parameters.compressed:
            return shot
        quality = [cv2.IMWRITE_JPEG_QUALITY, self._parameters.jpeg_quality]
        done, data = cv2.imencode('.jpg', shot.image, quality)
        if not done:
            raise SensingError(f'a picture of {shot.image.shape} cannot be compressed')
        return Shot(JPEG, data.tobytes())

    def _choose_calibration(self, device: CameraDevice, size: tuple[int, int]) -> None:
        """Take the given calibration, or the device's own, if it is for pictures of this size."""
        chosen = self._given_calibration or device.calibration
        self._unsuited = ''
        if chosen is not None and (chosen.width, chosen.height) != size:
            self._unsuited = (
                f'the calibration is for {chosen.width} x {chosen.height} px, the pictures have '
                f'{size[0]} x {size[1]}: it is not published; calibrate at this size, or set '
                'width and height'
            )
            chosen = None
        self.calibration = chosen


def _size_of(shot: Shot) -> tuple[int, int]:
    """Return width and height."""
    if isinstance(shot.image, bytes):
        problems = quick_format(SimpleNamespace(data=shot.image, format=shot.encoding))
        return problems.width, problems.height
    height, width = shot.image.shape[:2]
    return width, height
