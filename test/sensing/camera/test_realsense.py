"""A RealSense through a pyrealsense2 made by hand."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from camera_fakes import BEGIN_NS, MS, picture
from virtual_clock import VirtualClock

from mmedge_ros.sensing import SensingError
from mmedge_ros.sensing.camera.device import BGR, CameraParameters
from mmedge_ros.sensing.camera.realsense import RealSenseCamera, load_pyrealsense2

PARAMETERS = CameraParameters(source='realsense', device='0123', width=64, height=48, rate=30.0)


class Frame:
    """A colour frame; times in the units of librealsense: ms on the host, us on the device."""

    def __init__(self, number: int, domain: str = 'global_time', metadata: bool = True) -> None:
        self.data = picture(number)
        self._number = number
        self._domain = domain
        self._metadata = metadata
        self.timestamp_ms = (BEGIN_NS - 20 * MS) / 1e6

    def __bool__(self) -> bool:
        return True

    def get_color_frame(self) -> Frame:
        return self

    def get_frame_number(self) -> int:
        return self._number

    def get_frame_timestamp_domain(self) -> str:
        return self._domain

    def get_timestamp(self) -> float:
        return self.timestamp_ms

    def supports_frame_metadata(self, value: str) -> bool:
        return self._metadata

    def get_frame_metadata(self, value: str) -> int:
        return {'readout': 5_008_000, 'middle': 5_000_000}[value]

    def get_data(self) -> Any:
        return self.data


class FakeRealSense:
    """The module: as much of it as is used."""

    stream = SimpleNamespace(color='color')
    format = SimpleNamespace(bgr8='bgr8')
    timestamp_domain = SimpleNamespace(global_time='global_time', hardware_clock='hardware')
    frame_metadata_value = SimpleNamespace(frame_timestamp='readout', sensor_timestamp='middle')

    def __init__(self, frames: list[Any], is_plugged: bool = True) -> None:
        self.frames = frames
        self.is_plugged = is_plugged
        self.is_running = False
        self.asked: list[Any] = []
        self.intrinsics = SimpleNamespace(
            width=64,
            height=48,
            fx=50.0,
            fy=51.0,
            ppx=32.0,
            ppy=24.0,
            model='distortion.inverse_brown_conrady',
            coeffs=[0.0] * 5,
        )

    # rs.config and rs.pipeline
    def config(self) -> FakeRealSense:
        return self

    def pipeline(self) -> FakeRealSense:
        return self

    def enable_device(self, serial: str) -> None:
        self.asked.append(serial)

    def enable_stream(self, *asked: Any) -> None:
        self.asked.append(asked)

    def start(self, configuration: FakeRealSense) -> FakeRealSense:
        if not self.is_plugged:
            raise RuntimeError('No device connected')
        self.is_running = True
        return self

    def stop(self) -> None:
        if not self.is_running:
            raise RuntimeError('stop() cannot be called before start()')
        self.is_running = False

    def wait_for_frames(self, timeout_ms: int) -> Any:
        if not self.frames:
            raise RuntimeError("Frame didn't arrive within 1000")
        return self.frames.pop(0)

    # a stream's profile
    def get_stream(self, stream: str) -> FakeRealSense:
        return self

    def as_video_stream_profile(self) -> FakeRealSense:
        return self

    def width(self) -> int:
        return 64

    def height(self) -> int:
        return 48

    def fps(self) -> int:
        return 30

    def get_intrinsics(self) -> Any:
        return self.intrinsics


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock(BEGIN_NS)


def test_the_colour_stream_of_the_named_camera_is_asked_for(clock: VirtualClock) -> None:
    rs = FakeRealSense([])
    camera = RealSenseCamera(rs, PARAMETERS, clock)
    assert rs.asked == ['0123', ('color', 64, 48, 'bgr8', 30)]
    assert (str(camera.format), camera.name) == ('64 x 48 px at 30 Hz bgr8', 'RealSense 0123')


def test_a_picture_is_stamped_in_the_middle_of_its_exposure(clock: VirtualClock) -> None:
    camera = RealSenseCamera(FakeRealSense([Frame(1)]), PARAMETERS, clock)
    exposure = camera.grab()
    assert exposure is not None
    assert exposure.available_ns == BEGIN_NS
    # Readout began 20 ms ago, and the middle of exposure was 8 ms before that.
    assert exposure.stamp_ns == pytest.approx(BEGIN_NS - 28 * MS, abs=1000)


def test_without_metadata_the_stamp_is_the_begin_of_readout(clock: VirtualClock) -> None:
    camera = RealSenseCamera(FakeRealSense([Frame(1, metadata=False)]), PARAMETERS, clock)
    exposure = camera.grab()
    assert exposure is not None
    assert exposure.stamp_ns == pytest.approx(BEGIN_NS - 20 * MS, abs=1000)


def test_a_time_of_the_devices_own_clock_is_not_believed(clock: VirtualClock) -> None:
    absurd = Frame(2)
    absurd.timestamp_ms = 12_345.0
    rs = FakeRealSense([Frame(1, domain='hardware'), absurd])
    camera = RealSenseCamera(rs, PARAMETERS, clock)
    assert [camera.grab(), camera.grab()] == [(BEGIN_NS, BEGIN_NS, 0)] * 2


def test_the_picture_is_a_copy_because_the_library_uses_its_memory_again(
    clock: VirtualClock,
) -> None:
    frame = Frame(90)
    camera = RealSenseCamera(FakeRealSense([frame]), PARAMETERS, clock)
    camera.grab()
    shot = camera.retrieve()
    frame.data[:] = 0
    assert shot.encoding == BGR
    assert np.all(np.asarray(shot.image) == 90)


def test_gaps_in_the_frame_numbers_are_missed_pictures(clock: VirtualClock) -> None:
    camera = RealSenseCamera(FakeRealSense([Frame(7), Frame(8), Frame(12)]), PARAMETERS, clock)
    exposures = [camera.grab() for _ in range(3)]
    assert [e.missed for e in exposures if e is not None] == [0, 0, 3]


def test_a_camera_that_is_not_there_or_unplugged_says_so(clock: VirtualClock) -> None:
    with pytest.raises(SensingError, match='does not start: No device connected'):
        RealSenseCamera(FakeRealSense([], is_plugged=False), PARAMETERS, clock)
    rs = FakeRealSense([])
    camera = RealSenseCamera(rs, PARAMETERS, clock)
    with pytest.raises(SensingError, match='sends no more pictures'):
        camera.grab()
    camera.close()
    camera.close()
    assert not rs.is_running


def test_the_factorys_calibration_is_taken(clock: VirtualClock) -> None:
    camera = RealSenseCamera(FakeRealSense([]), PARAMETERS, clock)
    assert camera.calibration is not None
    assert camera.calibration.model == 'none'
    assert camera.calibration.k.tolist() == [[50, 0, 32], [0, 51, 24], [0, 0, 1]]


@pytest.mark.parametrize(
    ('name', 'model', 'count'),
    [('brown_conrady', 'plumb_bob', 5), ('kannala_brandt4', 'equidistant', 4)],
)
def test_distortion_keeps_its_meaning(
    clock: VirtualClock, name: str, model: str, count: int
) -> None:
    rs = FakeRealSense([])
    rs.intrinsics.model, rs.intrinsics.coeffs = f'distortion.{name}', [0.1, 0.0, 0.0, 0.0, 0.0]
    camera = RealSenseCamera(rs, PARAMETERS, clock)
    assert camera.calibration is not None
    assert (camera.calibration.model, len(camera.calibration.d)) == (model, count)


def test_a_distortion_that_ros_has_no_name_for_is_not_passed_off_as_another(
    clock: VirtualClock,
) -> None:
    rs = FakeRealSense([])
    rs.intrinsics.coeffs = [0.1, 0.0, 0.0, 0.0, 0.0]
    camera = RealSenseCamera(rs, PARAMETERS, clock)
    assert camera.calibration is None
    assert camera.notes == (
        'its own calibration cannot be used: its distortion model is inverse_brown_conrady',
    )


def test_where_the_library_is_missing_the_remedy_is_named() -> None:
    def missing(name: str) -> Any:
        raise ImportError(f'No module named {name!r}')

    with pytest.raises(SensingError, match='pip install pyrealsense2'):
        load_pyrealsense2(missing)
    assert load_pyrealsense2(lambda name: name) == 'pyrealsense2'
