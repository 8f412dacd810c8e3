"""A thread that reads a camera and keeps the newest picture."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from camera_fakes import BEGIN_NS, FakeDevice, picture

from mmedge_ros.clock import VirtualClock
from mmedge_ros.data_types import CAMERA
from mmedge_ros.sensing import SensingError
from mmedge_ros.sensing.camera.device import BGR, CameraFrame, CameraParameters
from mmedge_ros.sensing.camera.reader import CameraReader
from mmedge_ros.sensing.camera.stream import CameraStream
from mmedge_ros.sensing.capture_control import CaptureControl

PATIENCE = 10.0


class Gated(FakeDevice):
    """Waits before each picture until it is let go."""

    def __init__(self, clock: VirtualClock) -> None:
        super().__init__(clock)
        self.gate = threading.Semaphore(0)
        self.taken = threading.Semaphore(0)

    def grab(self):  # type: ignore[no-untyped-def]
        self.taken.release()
        self.gate.acquire(timeout=PATIENCE)
        return super().grab()


class Rig:
    """A stream with a device that sends pictures when it is told to."""

    def __init__(self) -> None:
        self.clock = VirtualClock(BEGIN_NS)
        self.device = Gated(self.clock)
        self.ended = threading.Event()
        reader = CameraReader(
            lambda: self.device, CameraParameters(), CaptureControl(CAMERA), self.clock
        )
        self.stream = CameraStream(reader, self.ended)

    def send(self, count: int) -> None:
        """Let go of pictures, and wait until all have been handed over."""
        for _ in range(count):
            assert self.device.taken.acquire(timeout=PATIENCE)
            self.device.gate.release()
        assert self.device.taken.acquire(timeout=PATIENCE)
        self.device.taken.release()


@pytest.fixture
def rig() -> Iterator[Rig]:
    found = Rig()
    yield found
    found.ended.set()
    found.device.gate.release(100)
    found.stream.stop()


def test_only_the_newest_picture_waits_and_the_others_are_counted(rig: Rig) -> None:
    rig.stream.start()
    rig.send(3)
    frame = rig.stream.take(PATIENCE)
    assert frame is not None
    assert frame.available_ns == rig.clock.now_ns()
    assert rig.stream.take(0.0) is None
    counts = rig.stream.reader.counts
    assert (counts.captured, counts.dropped, counts.transferred) == (3, 2, 1)


def test_who_waits_is_told_of_a_picture_and_of_the_end(rig: Rig) -> None:
    seen: list[CameraFrame | None] = []

    def consume() -> None:
        seen.append(rig.stream.take(PATIENCE))
        seen.append(rig.stream.take(PATIENCE))

    consumer = threading.Thread(target=consume)
    consumer.start()
    rig.stream.put(CameraFrame(1, 2, BGR, picture(), 64, 48))
    while not seen:
        consumer.join(0.01)
    rig.stream.stop()
    consumer.join(PATIENCE)
    assert [frame is None for frame in seen] == [False, True]


def test_the_camera_is_let_go_of_at_the_end(rig: Rig) -> None:
    rig.stream.start()
    rig.send(1)
    rig.ended.set()
    rig.device.gate.release()
    rig.stream.stop()
    assert rig.device.is_closed


def test_stopping_does_not_wait_for_the_next_attempt() -> None:
    attempts = threading.Event()

    def refuse() -> FakeDevice:
        attempts.set()
        raise SensingError('nobody there')

    ended = threading.Event()
    clock = VirtualClock(BEGIN_NS)
    reader = CameraReader(refuse, CameraParameters(), CaptureControl(CAMERA), clock)
    stream = CameraStream(reader, ended)
    stream.start()
    assert attempts.wait(PATIENCE)
    stream.stop()
    assert not any(thread.name == 'camera' for thread in threading.enumerate())
