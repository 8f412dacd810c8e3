"""Cameras made by hand: a clock that waiting moves, devices and captures that do as told."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray
from virtual_clock import VirtualClock

from mmedge_ros.geometry.projection import CameraModel
from mmedge_ros.sensing import SensingError
from mmedge_ros.sensing.camera.device import BGR, CameraFormat, Exposure, Shot

MS = 1_000_000
SECOND = 1000 * MS
BEGIN_NS = 1_700_000_000 * SECOND
WIDTH, HEIGHT = 64, 48


def picture(shade: int = 40, width: int = WIDTH, height: int = HEIGHT) -> NDArray[np.uint8]:
    return np.full((height, width, 3), shade, np.uint8)


def calibration(width: int = WIDTH, height: int = HEIGHT) -> CameraModel:
    k = np.array([[50.0, 0, width / 2], [0, 50.0, height / 2], [0, 0, 1]])
    return CameraModel(width, height, k, np.zeros(5))


class Waiting:
    """Waits by moving the clock, and remembers for how long."""

    def __init__(self, clock: VirtualClock) -> None:
        self._clock = clock
        self.seconds: list[float] = []

    def __call__(self, seconds: float) -> bool:
        self.seconds.append(seconds)
        self._clock.advance_to(self._clock.now_ns() + round(seconds * SECOND))
        return False


class FakeDevice:
    """Sends a picture every 50 ms until unplugged; an error among ``shots`` is raised."""

    def __init__(
        self,
        clock: VirtualClock,
        shots: Sequence[Shot | SensingError] = (),
        period_ms: float = 50.0,
        calibration: CameraModel | None = None,
        rate: float = 20.0,
    ) -> None:
        self.name = 'the fake'
        self.format = CameraFormat(WIDTH, HEIGHT, rate, 'MJPG')
        self.calibration = calibration
        self.notes: tuple[str, ...] = ()
        self.is_plugged = True
        self.has_ended = False
        self.is_closed = False
        self.retrieved = 0
        self.missed = 0
        self._clock = clock
        self._shots = list(shots)
        self._period_ns = round(period_ms * MS)

    def grab(self) -> Exposure | None:
        if not self.is_plugged:
            raise SensingError('the fake sends no more pictures')
        if self.has_ended:
            return None
        self._clock.advance_to(self._clock.now_ns() + self._period_ns)
        now_ns = self._clock.now_ns()
        return Exposure(now_ns - 10 * MS, now_ns, self.missed)

    def retrieve(self) -> Shot:
        self.retrieved += 1
        shot = self._shots.pop(0) if self._shots else Shot(BGR, picture())
        if isinstance(shot, SensingError):
            raise shot
        return shot

    def close(self) -> None:
        self.is_closed = True


class FakeCapture:
    """cv2.VideoCapture of a device that grants what ``granted`` says.

    ``frames`` are what retrieve returns; grab fails when there are none left.
    """

    def __init__(
        self,
        frames: Sequence[Any] = (),
        granted: dict[int, float] | None = None,
        refused: Sequence[int] = (),
        is_open: bool = True,
    ) -> None:
        self.asked: dict[int, float] = {}
        self.is_released = False
        self.properties = {
            cv2.CAP_PROP_FRAME_WIDTH: 320.0,
            cv2.CAP_PROP_FRAME_HEIGHT: 240.0,
            cv2.CAP_PROP_FPS: 30.0,
        }
        self._granted = granted or {}
        self._refused = refused
        self._frames = list(frames)
        self._present: Any = None
        self._is_open = is_open

    def isOpened(self) -> bool:  # noqa: N802
        return self._is_open

    def set(self, propId: int, value: float) -> bool:  # noqa: N803
        self.asked[propId] = value
        if propId in self._refused:
            return False
        self.properties[propId] = self._granted.get(propId, value)
        return True

    def get(self, propId: int) -> float:  # noqa: N803
        return self.properties.get(propId, 0.0)

    def grab(self) -> bool:
        if not self._frames:
            return False
        self._present = self._frames.pop(0)
        if isinstance(self._present, cv2.error):
            raise self._present
        return True

    def retrieve(self) -> tuple[bool, Any]:
        return self._present is not None, self._present

    def release(self) -> None:
        self.is_released = True
