"""Units, receipts and encoders made by hand, for tests of everything that moves units."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mmedge_ros.core.data_types import (
    CAMERA,
    NS_PER_S,
    RADAR,
    Box,
    Detection,
    ModalityConfiguration,
    Unit,
    UnitFeatures,
    UnitOutcome,
    UnitReceipt,
)
from mmedge_ros.geometry.projection import CameraModel
from mmedge_ros.geometry.sensor_poses import OPTICAL_TO_BODY
from mmedge_ros.geometry.transforms import StampedTransform
from mmedge_ros.pipeline.unit_intake import acquisition_trail

MS = 1_000_000
# On the grid of every stride the tests use.
BEGIN_NS = 1_700_000_000 * NS_PER_S
FRAMES = {CAMERA: 'camera_optical', RADAR: 'radar_link'}
# A camera that looks forward, one metre up, and the radar below it.
LENS = CameraModel(
    640, 480, np.array([[450.0, 0, 320], [0, 450, 240], [0, 0, 1]]), np.zeros(0), 'none'
)
MOUNTS = (
    StampedTransform('base_link', FRAMES[CAMERA], np.array([0.1, 0.0, 1.0]), OPTICAL_TO_BODY),
    StampedTransform('base_link', FRAMES[RADAR], np.array([0.1, 0.0, 0.9]), np.eye(3)),
)


def at(ms: float) -> int:
    """Instant in nanoseconds, given in milliseconds since the beginning."""
    return BEGIN_NS + round(ms * MS)


def unit(
    available: float,
    modality: str = CAMERA,
    sequence: int = 0,
    delay: float = 5.0,
    payload: Any = None,
) -> Unit:
    """A unit received at ``available`` ms and measured ``delay`` ms before."""
    available_ns = at(available)
    stamp_ns = at(available - delay)
    return Unit(
        modality,
        sequence,
        stamp_ns,
        available_ns,
        FRAMES[modality],
        payload,
        acquisition_trail(stamp_ns, available_ns - MS, available_ns),
    )


def receipt(of: Unit | UnitFeatures, outcome: UnitOutcome = UnitOutcome.RECEIVED) -> UnitReceipt:
    return UnitReceipt(of.modality, of.sequence, of.stamp_ns, of.available_ns, outcome)


def features(of: Unit, **content: Any) -> UnitFeatures:
    """What an encoder makes of a unit."""
    return UnitFeatures(
        of.modality,
        of.sequence,
        of.stamp_ns,
        of.available_ns,
        of.frame_id,
        of.trail,
        **content,
    )


def person(x: float, y: float, width: float = 60.0, height: float = 150.0, score: float = 0.9):
    """A detection of a person whose box is centred there."""
    box = Box(x - width / 2, y - height / 2, x + width / 2, y + height / 2)
    return Detection(box, score, 'person')


def returns(*rows: Sequence[float]) -> np.ndarray:
    """Radar returns from (x, y, z, velocity)."""
    table = np.array(rows, np.float32).reshape(-1, 4)
    return np.column_stack([table, np.full(len(table), np.nan, np.float32)])


@dataclass
class ManualClock:
    """Stands still until a test moves it; from any thread."""

    ns: int = BEGIN_NS

    def now_ns(self) -> int:
        return self.ns

    def monotonic_ns(self) -> int:
        return self.ns


class FakeEncoder:
    """Encodes by calling ``work(unit)``; keeps what it was asked for."""

    levels: tuple[str, ...] = ()

    def __init__(self, modality: str = CAMERA, work: Callable[[Unit], Any] | None = None) -> None:
        self.modality = modality
        self.problems: Counter[str] = Counter()
        self.calls: list[tuple[Unit, ModalityConfiguration, int]] = []
        self._work = work

    def encode(
        self, unit: Unit, configuration: ModalityConfiguration, configuration_id: int
    ) -> UnitFeatures:
        self.calls.append((unit, configuration, configuration_id))
        content = self._work(unit) if self._work else None
        return features(unit, configuration_id=configuration_id, **(content or {}))

    def warm_up(self) -> None:
        pass


class Gate:
    """Work that does not end before a test lets it."""

    def __init__(self) -> None:
        self.entered = threading.Semaphore(0)
        self.opened = threading.Semaphore(0)

    def __call__(self, *_: object) -> None:
        self.entered.release()
        assert self.opened.acquire(timeout=10)

    def wait_until_entered(self) -> None:
        assert self.entered.acquire(timeout=10)


class Collected:
    """Appends from one thread, waited for in another."""

    def __init__(self) -> None:
        self.items: list[Any] = []
        self._changed = threading.Condition()

    def __call__(self, item: Any) -> None:
        with self._changed:
            self.items.append(item)
            self._changed.notify_all()

    def wait_for(self, count: int) -> list[Any]:
        """Return the items once there are ``count`` of them."""
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.items) >= count, 10.0), self.items
            return list(self.items)
