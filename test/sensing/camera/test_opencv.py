"""Negotiating with V4L2 devices and GStreamer pipelines that are made by hand."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest
from camera_fakes import BEGIN_NS, MS, FakeCapture, picture
from virtual_clock import VirtualClock

from mmedge_ros.sensing import SensingError
from mmedge_ros.sensing.camera.device import BGR, JPEG, CameraParameters
from mmedge_ros.sensing.camera.opencv import (
    OpenCvCamera,
    capture_devices,
    check_gstreamer,
    device_path,
    fourcc,
    open_gstreamer,
    open_v4l2,
)

PIPELINE = 'videotestsrc ! appsink'


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock(BEGIN_NS)


@pytest.fixture
def machine(tmp_path: Path) -> tuple[Path, Path]:
    """Folders like /dev and /sys/class/video4linux with two cameras; every second node of a
    camera carries metadata."""
    devices, sysfs = tmp_path / 'dev', tmp_path / 'sys'
    devices.mkdir()
    for number, index in ((0, 0), (1, 1), (2, 0), (10, 0)):
        (devices / f'video{number}').touch()
        (sysfs / f'video{number}').mkdir(parents=True)
        (sysfs / f'video{number}/index').write_text(f'{index}\n')
    return devices, sysfs


def opened(
    capture: FakeCapture, machine: tuple[Path, Path], clock: VirtualClock, **parameters: object
) -> OpenCvCamera:
    p = CameraParameters(**parameters)  # type: ignore[arg-type]
    return open_v4l2(p, clock, lambda name, backend: capture, *machine)


def test_format_size_and_rate_are_asked_for(
    machine: tuple[Path, Path], clock: VirtualClock
) -> None:
    capture = FakeCapture()
    camera = opened(capture, machine, clock, width=800, height=600, rate=25.0)
    assert camera.notes == ()
    assert str(camera.format) == '800 x 600 px at 25 Hz MJPG'
    # The format first: it decides which sizes and rates there are.
    order = [
        cv2.CAP_PROP_FOURCC,
        cv2.CAP_PROP_FRAME_WIDTH,
        cv2.CAP_PROP_FRAME_HEIGHT,
        cv2.CAP_PROP_FPS,
    ]
    assert [prop for prop in capture.asked if prop in order] == order
    assert camera.name.endswith('/dev/video0')


def test_what_the_device_does_not_grant_is_said(
    machine: tuple[Path, Path], clock: VirtualClock
) -> None:
    granted = {
        cv2.CAP_PROP_FOURCC: float(fourcc('YUYV')),
        cv2.CAP_PROP_FRAME_WIDTH: 1280.0,
        cv2.CAP_PROP_FPS: 10.0,
    }
    camera = opened(FakeCapture(granted=granted), machine, clock)
    assert camera.notes == (
        '640 x 480 px were asked for, it sends 1280 x 480',
        'MJPG was asked for, it sends YUYV',
        '30 Hz were asked for, it offers 10 Hz',
    )


def test_a_rate_of_zero_leaves_the_device_its_own(
    machine: tuple[Path, Path], clock: VirtualClock
) -> None:
    capture = FakeCapture()
    opened(capture, machine, clock, rate=0.0, pixel_format='')
    assert cv2.CAP_PROP_FPS not in capture.asked
    assert cv2.CAP_PROP_FOURCC not in capture.asked


def test_a_device_that_cannot_be_opened_says_who_may_hold_it(
    machine: tuple[Path, Path], clock: VirtualClock
) -> None:
    capture = FakeCapture(is_open=False)
    with pytest.raises(SensingError, match=r'video0 cannot be opened; is another program'):
        opened(capture, machine, clock)
    assert capture.is_released


def test_the_first_device_that_takes_pictures_is_found(machine: tuple[Path, Path]) -> None:
    devices, sysfs = machine
    assert [path.name for path in capture_devices(devices, sysfs)] == [
        'video0',
        'video2',
        'video10',
    ]
    assert device_path('', devices, sysfs) == devices / 'video0'
    assert device_path('2', devices, sysfs) == devices / 'video2'
    link = devices / 'mmedge_camera'
    link.symlink_to(devices / 'video2')
    assert device_path(str(link), devices, sysfs) == link


@pytest.mark.parametrize('given', ['/dev/nothing here', '7', 'bad\0name', 'x' * 300])
def test_a_device_that_is_not_there_is_refused_and_those_that_are_named(
    machine: tuple[Path, Path], given: str
) -> None:
    with pytest.raises(SensingError, match='is the camera plugged in') as caught:
        device_path(given, *machine)
    assert 'video2' in str(caught.value)


def test_a_machine_without_cameras_says_so(tmp_path: Path) -> None:
    with pytest.raises(SensingError, match='no camera: there is no video device'):
        device_path('', tmp_path, tmp_path)


def test_a_link_is_followed_anew_at_each_opening(
    machine: tuple[Path, Path], clock: VirtualClock
) -> None:
    devices, _ = machine
    link = devices / 'mmedge_camera'
    names = []
    for target in ('video0', 'video2'):
        link.unlink(missing_ok=True)
        link.symlink_to(devices / target)
        p = CameraParameters(device=str(link))
        camera = open_v4l2(p, clock, lambda n, _: names.append(n) or FakeCapture(), *machine)
        assert camera.name == str(link)
    assert [Path(name).name for name in names] == ['video0', 'video2']


# ------------------------------------------------------------------------------ times


def test_without_buffer_times_a_picture_is_stamped_the_delay_before_its_arrival(
    clock: VirtualClock,
) -> None:
    camera = OpenCvCamera('x', FakeCapture([picture()]), clock, delay=0.03)
    exposure = camera.grab()
    assert exposure is not None
    assert exposure == (BEGIN_NS - 30 * MS, BEGIN_NS, 0)


def test_the_drivers_buffer_time_is_the_begin_of_exposure(clock: VirtualClock) -> None:
    capture = FakeCapture([picture()])
    capture.properties[cv2.CAP_PROP_POS_MSEC] = (BEGIN_NS - 40 * MS) / 1e6
    exposure = OpenCvCamera('x', capture, clock, exposure=0.01).grab()
    assert exposure is not None
    # A double of milliseconds since 1970 is good to a microsecond.
    assert exposure.stamp_ns == pytest.approx(BEGIN_NS - 35 * MS, abs=1000)


@pytest.mark.parametrize('buffer_ms', [-1.0, 0.0, BEGIN_NS / 1e6 + 5, BEGIN_NS / 1e6 - 5000])
def test_a_buffer_time_on_another_clock_is_not_believed(
    clock: VirtualClock, buffer_ms: float
) -> None:
    capture = FakeCapture([picture()])
    capture.properties[cv2.CAP_PROP_POS_MSEC] = buffer_ms
    assert OpenCvCamera('x', capture, clock).grab() == (BEGIN_NS, BEGIN_NS, 0)


def test_a_fixed_exposure_is_set_in_steps_of_a_tenth_of_a_millisecond(
    machine: tuple[Path, Path], clock: VirtualClock
) -> None:
    capture = FakeCapture([picture()])
    camera = opened(capture, machine, clock, exposure=0.01)
    assert capture.asked[cv2.CAP_PROP_AUTO_EXPOSURE] == 1.0
    assert capture.asked[cv2.CAP_PROP_EXPOSURE] == 100.0
    assert camera.notes == ()


def test_an_exposure_that_is_not_taken_is_said_and_not_reckoned_with(
    machine: tuple[Path, Path], clock: VirtualClock
) -> None:
    capture = FakeCapture([picture()], refused=[cv2.CAP_PROP_EXPOSURE])
    capture.properties[cv2.CAP_PROP_POS_MSEC] = (BEGIN_NS - 40 * MS) / 1e6
    camera = opened(capture, machine, clock, exposure=0.01)
    assert camera.notes == ('it does not take an exposure of 0.01 s',)
    exposure = camera.grab()
    assert exposure is not None
    assert exposure.stamp_ns == pytest.approx(BEGIN_NS - 40 * MS, abs=1000)


# ------------------------------------------------------------------------------ pictures


def test_a_device_that_is_gone_is_told_from_a_damaged_picture(clock: VirtualClock) -> None:
    camera = OpenCvCamera('/dev/video0', FakeCapture([np.zeros((0,), np.uint8)]), clock)
    camera.grab()
    with pytest.raises(SensingError, match='damaged'):
        camera.retrieve()
    with pytest.raises(SensingError, match=r'/dev/video0 sends no more pictures'):
        camera.grab()


def test_an_error_of_opencv_is_put_into_words(clock: VirtualClock) -> None:
    camera = OpenCvCamera('/dev/video0', FakeCapture([cv2.error('ioctl\nfailed')]), clock)
    with pytest.raises(SensingError, match=r'cannot be read \(ioctl failed\)'):
        camera.grab()


def test_the_devices_own_jpeg_is_handed_over_without_the_buffers_rest(
    machine: tuple[Path, Path], clock: VirtualClock
) -> None:
    _, data = cv2.imencode('.jpg', picture())
    buffer = np.concatenate([data.reshape(-1), np.zeros(500, np.uint8)]).reshape(1, -1)
    capture = FakeCapture([buffer])
    camera = opened(capture, machine, clock, image_transport='compressed')
    assert capture.asked[cv2.CAP_PROP_CONVERT_RGB] == 0.0
    camera.grab()
    assert camera.retrieve() == (JPEG, data.tobytes())


def test_only_a_device_that_sends_jpeg_is_asked_for_it(
    machine: tuple[Path, Path], clock: VirtualClock
) -> None:
    capture = FakeCapture([picture()], granted={cv2.CAP_PROP_FOURCC: float(fourcc('YUYV'))})
    camera = opened(capture, machine, clock, image_transport='compressed')
    assert cv2.CAP_PROP_CONVERT_RGB not in capture.asked
    camera.grab()
    assert camera.retrieve().encoding == BGR


def test_bytes_that_are_no_jpeg_are_a_damaged_picture(clock: VirtualClock) -> None:
    camera = OpenCvCamera('x', FakeCapture([np.arange(90, dtype=np.uint8)[None]]), clock)
    camera.grab()
    with pytest.raises(SensingError, match='90 bytes that are no JPEG'):
        camera.retrieve()


# ------------------------------------------------------------------------------ gstreamer


def test_a_pipeline_needs_support_and_an_appsink() -> None:
    with pytest.raises(SensingError, match='built without GStreamer'):
        check_gstreamer(PIPELINE, supported=False)
    with pytest.raises(SensingError, match='has no appsink; let it end with'):
        check_gstreamer('videotestsrc ! fakesink', supported=True)
    check_gstreamer(PIPELINE, supported=True)


def test_a_pipeline_runs(clock: VirtualClock) -> None:
    asked = []
    capture = FakeCapture([picture()])
    p = CameraParameters(source='gstreamer', device=PIPELINE, delay=0.02)
    camera = open_gstreamer(p, clock, lambda *a: asked.append(a) or capture)
    assert asked == [(PIPELINE, cv2.CAP_GSTREAMER)]
    exposure = camera.grab()
    assert exposure is not None
    assert exposure.stamp_ns == BEGIN_NS - 20 * MS


def test_a_pipeline_that_does_not_start_says_how_to_try_it(clock: VirtualClock) -> None:
    p = CameraParameters(source='gstreamer', device=PIPELINE)
    with pytest.raises(SensingError, match=r'cannot be started; try it with gst-launch'):
        open_gstreamer(p, clock, lambda *_: FakeCapture(is_open=False))
