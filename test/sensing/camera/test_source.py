"""What can never work is refused at once; what may come later is not."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from camera_fakes import BEGIN_NS, FakeDevice, Waiting, picture
from virtual_clock import VirtualClock

from mmedge_ros.core.data_types import CAMERA
from mmedge_ros.sensing import SensingError
from mmedge_ros.sensing.camera.device import BGR, CameraFrame, CameraOpener, CameraParameters
from mmedge_ros.sensing.camera.reader import CameraReader
from mmedge_ros.sensing.camera.source import CameraStream, camera_opener, given_calibration
from mmedge_ros.sensing.capture_control import CaptureControl

CAMERA_INFO = """
image_width: 64
image_height: 48
camera_matrix: {rows: 3, cols: 3, data: [50, 0, 32, 0, 50, 24, 0, 0, 1]}
"""


def opener(**parameters: object) -> CameraOpener:
    clock = VirtualClock(BEGIN_NS)
    p = CameraParameters(**parameters)  # type: ignore[arg-type]
    return camera_opener(p, clock, Waiting(clock))


@pytest.mark.parametrize(
    ('parameters', 'words'),
    [
        ({'source': 'file', 'device': '/no/such'}, 'name a video file'),
        ({'source': 'gstreamer', 'device': 'videotestsrc'}, 'GStreamer'),
    ],
    ids=['file', 'gstreamer'],
)
def test_what_can_never_work_is_refused_at_once(parameters: dict[str, object], words: str) -> None:
    with pytest.raises(SensingError, match=words):
        opener(**parameters)


def test_a_file_that_is_no_film_is_refused_at_once(tmp_path: Path) -> None:
    path = tmp_path / 'film.mp4'
    path.write_bytes(b'no film' * 1000)
    with pytest.raises(SensingError, match='cannot be read as a video'):
        opener(source='file', device=str(path))
    with pytest.raises(SensingError, match='holds no pictures'):
        opener(source='file', device=str(tmp_path))


def test_a_device_that_is_not_there_yet_is_no_reason_to_give_up() -> None:
    open_camera = opener(device='/dev/not plugged in yet')
    with pytest.raises(SensingError, match='is the camera plugged in'):
        open_camera()


def test_a_calibration_file_must_hold_a_camera(tmp_path: Path) -> None:
    path = tmp_path / 'camera.yaml'
    assert given_calibration(CameraParameters()) is None
    path.write_text(CAMERA_INFO)
    camera = given_calibration(CameraParameters(calibration_file=str(path)))
    assert camera is not None
    assert (camera.width, camera.height) == (64, 48)
    path.write_text(
        'transforms: [{parent: a, child: b, translation: [0, 0, 0], rotation: [0, 0, 0, 1]}]'
    )
    with pytest.raises(SensingError, match='holds no camera'):
        given_calibration(CameraParameters(calibration_file=str(path)))
    with pytest.raises(SensingError, match='No such file'):
        given_calibration(CameraParameters(calibration_file=str(tmp_path / 'gone.yaml')))


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
