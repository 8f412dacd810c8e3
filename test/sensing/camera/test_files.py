"""Video files and folders of pictures as a camera, at their own pace."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import cv2
import numpy as np
import pytest
from camera_fakes import BEGIN_NS, MS, SECOND, FakeCapture, Waiting, picture
from hypothesis import given
from hypothesis import strategies as st
from mp4_files import write_mp4
from virtual_clock import VirtualClock

from mmedge_ros.sensing import SensingError
from mmedge_ros.sensing.camera.device import CameraDevice, CameraParameters, Shot
from mmedge_ros.sensing.camera.files import (
    Pacer,
    PictureFolder,
    VideoFile,
    check_file,
    open_file,
)
from mmedge_ros.sensing.camera.video_reader import picture_files


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock(BEGIN_NS)


@pytest.fixture
def wait(clock: VirtualClock) -> Waiting:
    return Waiting(clock)


@pytest.fixture(scope='module')
def video(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six pictures at 10 Hz, each brighter than the one before."""
    path = tmp_path_factory.mktemp('video') / 'six.avi'
    writer = cv2.VideoWriter(str(path), cv2.VideoWriter.fourcc(*'MJPG'), 10.0, (64, 48))
    for number in range(6):
        writer.write(picture(20 + 30 * number))
    writer.release()
    return path


@pytest.fixture(scope='module')
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pictures 1, 2 and 10, and a file that is none."""
    path = tmp_path_factory.mktemp('pictures')
    for number in (1, 2, 10):
        cv2.imwrite(str(path / f'{number}.png'), picture(20 * number))
    (path / 'notes.txt').touch()
    return path


def shades(device: CameraDevice, count: int) -> list[int]:
    """Brightness of the next pictures, divided by what the test's pictures differ in."""
    found = []
    for _ in range(count):
        if device.grab() is None:
            return found
        found.append(round(float(np.mean(device.retrieve().image))))
    return found


# ------------------------------------------------------------------------------ pace


def test_pictures_are_stamped_when_they_were_due(clock: VirtualClock, wait: Waiting) -> None:
    pacer, due = Pacer(20.0, clock, wait), iter(n * 50 * MS for n in range(5))
    exposures = []
    while (exposure := pacer.exposure(due)) is not None:
        exposures.append(exposure)
        clock.advance_to(clock.now_ns() + 7 * MS)
    assert [e.stamp_ns - BEGIN_NS for e in exposures] == [n * 50 * MS for n in range(5)]
    assert [e.missed for e in exposures] == [0] * 5
    assert wait.seconds == pytest.approx([0.0] + [0.043] * 4)


def test_overdue_pictures_are_missed_and_the_next_ones_are_not_hurried(
    clock: VirtualClock, wait: Waiting
) -> None:
    pacer, due = Pacer(20.0, clock, wait), iter(n * 50 * MS for n in range(9))
    pacer.exposure(due)
    clock.advance_to(BEGIN_NS + 230 * MS)
    late, then = pacer.exposure(due), pacer.exposure(due)
    assert late is not None
    assert then is not None
    assert (late.missed, late.stamp_ns - BEGIN_NS) == (3, 200 * MS)
    assert then.stamp_ns - BEGIN_NS == 250 * MS


# ------------------------------------------------------------------------------ videos


def test_a_video_plays_once_at_its_own_pace(
    video: Path, clock: VirtualClock, wait: Waiting
) -> None:
    camera = VideoFile(video, False, clock, wait)
    assert (camera.format.width, camera.format.height, camera.format.rate) == (64, 48, 10.0)
    seen = shades(camera, 99)
    assert seen == pytest.approx([20, 50, 80, 110, 140, 170], abs=3)
    assert clock.now_ns() - BEGIN_NS == 5 * SECOND // 10
    camera.close()


def test_a_video_starts_over_in_a_loop_without_a_gap(
    video: Path, clock: VirtualClock, wait: Waiting
) -> None:
    camera = VideoFile(video, True, clock, wait)
    exposures = [camera.grab() for _ in range(14)]
    stamps = [e.stamp_ns for e in exposures if e is not None]
    assert {b - a for a, b in pairwise(stamps)} == {100 * MS}
    assert shades(camera, 4) == pytest.approx([80, 110, 140, 170], abs=3)
    camera.close()


def test_pictures_of_a_video_that_are_overdue_are_passed_over(
    video: Path, clock: VirtualClock, wait: Waiting
) -> None:
    camera = VideoFile(video, False, clock, wait)
    camera.grab()
    clock.advance_to(BEGIN_NS + 310 * MS)
    exposure = camera.grab()
    assert exposure is not None
    assert exposure.missed == 2
    assert round(float(np.mean(camera.retrieve().image))) == pytest.approx(110, abs=3)


@pytest.mark.parametrize('content', [b'', b'no video', b'RIFF' + bytes(500)])
def test_a_file_that_is_no_video_is_refused(
    tmp_path: Path, clock: VirtualClock, wait: Waiting, content: bytes
) -> None:
    path = tmp_path / 'film.mp4'
    path.write_bytes(content)
    with pytest.raises(SensingError, match=r'film.mp4 cannot be read as a video'):
        VideoFile(path, False, clock, wait)


def test_a_video_that_is_taken_away_is_a_camera_that_is_unplugged(
    video: Path, tmp_path: Path, clock: VirtualClock, wait: Waiting
) -> None:
    path = tmp_path / 'film.avi'
    path.write_bytes(video.read_bytes())
    camera = VideoFile(path, False, clock, wait)
    camera.grab()
    path.unlink()
    with pytest.raises(SensingError, match=r'film.avi does not exist'):
        camera.grab()
    with pytest.raises(SensingError, match=r'film.avi does not exist'):
        VideoFile(path, False, clock, wait)
    camera.close()


def test_a_video_without_a_picture_is_refused(clock: VirtualClock, wait: Waiting) -> None:
    with pytest.raises(SensingError, match='holds no picture'):
        VideoFile(Path(__file__), True, clock, wait, lambda *_: FakeCapture())


def test_a_video_keeps_the_pace_of_its_own_times(
    tmp_path: Path, clock: VirtualClock, wait: Waiting
) -> None:
    path = tmp_path / 'phone.mp4'
    write_mp4(path, [picture(20 * n) for n in range(4)], [0.02, 0.1, 0.05, 0.03], turn=90)
    camera = VideoFile(path, False, clock, wait)
    exposures = [camera.grab() for _ in range(4)]
    assert [e.stamp_ns - BEGIN_NS for e in exposures if e] == [0, 20 * MS, 120 * MS, 170 * MS]
    assert camera.grab() is None
    camera.close()


# ------------------------------------------------------------------------------ folders


def test_pictures_of_a_folder_come_in_the_order_of_their_numbers(
    folder: Path, clock: VirtualClock, wait: Waiting
) -> None:
    assert [path.name for path in picture_files(folder)] == ['1.png', '2.png', '10.png']
    camera = PictureFolder(folder, 5.0, False, False, clock, wait)
    assert shades(camera, 9) == [20, 40, 200]
    assert clock.now_ns() - BEGIN_NS == 2 * SECOND // 5


def test_a_folder_starts_over_in_a_loop(folder: Path, clock: VirtualClock, wait: Waiting) -> None:
    camera = PictureFolder(folder, 5.0, True, False, clock, wait)
    assert shades(camera, 7) == [20, 40, 200, 20, 40, 200, 20]


def test_files_are_passed_through_where_compressed_pictures_are_wanted(
    folder: Path, clock: VirtualClock, wait: Waiting
) -> None:
    camera = PictureFolder(folder, 5.0, False, True, clock, wait)
    camera.grab()
    assert camera.retrieve() == Shot('png', (folder / '1.png').read_bytes())


def test_a_picture_that_vanishes_is_a_damaged_one(
    tmp_path: Path, clock: VirtualClock, wait: Waiting
) -> None:
    path = tmp_path / '1.jpg'
    cv2.imwrite(str(path), picture())
    camera = PictureFolder(tmp_path, 5.0, False, False, clock, wait)
    path.unlink()
    camera.grab()
    with pytest.raises(SensingError, match=r'1.jpg: No such file'):
        camera.retrieve()


@given(st.binary(max_size=200), st.booleans())
def test_whatever_a_file_holds_is_a_picture_or_a_damaged_one(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, compressed: bool
) -> None:
    folder = tmp_path_factory.mktemp('hostile')
    (folder / '1.jpg').write_bytes(b'\xff\xd8' + content)
    clock = VirtualClock(BEGIN_NS)
    camera = PictureFolder(folder, 5.0, False, compressed, clock, Waiting(clock))
    camera.grab()
    with pytest.raises(SensingError, match=r'1\.jpg: '):
        camera.retrieve()


def test_a_folder_without_pictures_is_refused(
    tmp_path: Path, clock: VirtualClock, wait: Waiting
) -> None:
    with pytest.raises(SensingError, match='holds no pictures'):
        PictureFolder(tmp_path, 5.0, False, False, clock, wait)
    with pytest.raises(SensingError, match='No such file'):
        picture_files(tmp_path / 'gone')


def test_a_file_or_a_folder_is_told_by_what_it_is(
    video: Path, folder: Path, clock: VirtualClock, wait: Waiting
) -> None:
    for path, kind in ((video, VideoFile), (folder, PictureFolder)):
        p = CameraParameters(source='file', device=str(path))
        device = open_file(p, clock, wait)
        assert isinstance(device, kind)
        device.close()


@pytest.mark.parametrize('device', ['', '/no/such/file', 'bad\0name', 'x' * 300])
def test_what_is_not_there_is_refused_before_anything_starts(device: str) -> None:
    with pytest.raises(SensingError, match='name a video file or a folder of pictures'):
        check_file(device)
