"""Video files and folders of pictures with their own times, upright and with square pixels."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import cv2
import numpy as np
import pytest
from camera_fakes import MS, SECOND, FakeCapture, picture
from hypothesis import given
from hypothesis import strategies as st
from mp4_files import write_mp4

from mmedge_ros.sensing import SensingError
from mmedge_ros.sensing.camera.image import Picture
from mmedge_ros.sensing.camera.video_reader import (
    FolderReader,
    TimedPictures,
    VideoReader,
    open_pictures,
)

ROOT = Path(__file__).resolve().parents[3]
SECONDS = (0.02, 0.05, 0.1, 0.033, 0.04, 0.02)
TIMES_MS = (0, 20, 70, 170, 203, 243)


def marked(number: int, width: int = 64, height: int = 96) -> Picture:
    """A picture that stands upright, with a red mark in its upper left corner."""
    shot = picture(20 + 30 * number, width, height)
    shot[: height // 4, : width // 4] = (0, 0, 255)
    return shot


def played(reader: TimedPictures) -> list[tuple[int, Picture]]:
    shots = []
    while (time_ns := reader.grab()) is not None:
        shots.append((time_ns, reader.retrieve()))
    return shots


# ------------------------------------------------------------------------------ videos


@pytest.mark.parametrize('turn', [0, 90, 180, 270])
def test_a_turned_video_of_variable_rate_comes_upright_and_with_its_own_times(
    tmp_path: Path, turn: int
) -> None:
    path = tmp_path / 'phone.mp4'
    write_mp4(path, [marked(n) for n in range(6)], SECONDS, turn)
    reader = VideoReader(path)
    assert (reader.size, reader.shown_size) == ((64, 96), (64, 96))
    shots = played(reader)
    assert [time_ns for time_ns, _ in shots] == [ms * MS for ms in TIMES_MS]
    for number, (_, shot) in enumerate(shots):
        assert shot.shape == (96, 64, 3)
        assert shot[80, 40] == pytest.approx([20 + 30 * number] * 3, abs=4)
        assert shot[8, 6] == pytest.approx([0, 0, 255], abs=8)
    assert not reader.problems


@pytest.mark.parametrize(
    ('version', 'turn', 'is_mended'),
    [('4.6.0', 90.0, True), ('4.6.0', 180.0, False), ('4.7.0', 90.0, False)],
)
def test_what_opencv_4_6_turns_the_wrong_way_is_turned_back(
    monkeypatch: pytest.MonkeyPatch, version: str, turn: float, is_mended: bool
) -> None:
    monkeypatch.setattr(cv2, '__version__', version)
    fake = FakeCapture([marked(0)])
    fake.properties[cv2.CAP_PROP_ORIENTATION_META] = turn
    ((_, shot),) = played(VideoReader(Path(__file__), opened=lambda *_: fake))
    assert np.array_equal(shot[::-1, ::-1] if is_mended else shot, marked(0))


@pytest.mark.parametrize(('turn', 'size'), [(0, (128, 96)), (90, (64, 192))])
def test_oblong_pixels_are_made_square(tmp_path: Path, turn: int, size: tuple[int, int]) -> None:
    path = tmp_path / 'wide.mp4'
    write_mp4(path, [marked(0)], [0.1], turn, pixel_shape=(2, 1))
    reader = VideoReader(path)
    assert reader.shown_size == size
    assert played(reader)[0][1].shape == (*size[::-1], 3)


def test_large_pictures_are_scaled_down(tmp_path: Path) -> None:
    path = tmp_path / 'large.mp4'
    write_mp4(path, [marked(0, 300, 200)], [0.1])
    reader = VideoReader(path, longest_side=150)
    assert (reader.shown_size, reader.size) == ((300, 200), (150, 100))
    assert played(reader)[0][1].shape == (100, 150, 3)


def test_a_cut_video_is_read_up_to_the_break_and_says_so(tmp_path: Path) -> None:
    path = tmp_path / 'cut.mp4'
    write_mp4(path, [marked(n) for n in range(6)], [0.2] * 6, promised=20)
    reader = VideoReader(path)
    assert len(played(reader)) == 6
    assert len(reader.problems) == 1
    assert (
        'ends after 6 pictures and 1.0 s, though its header promises 4.0 s' in (reader.problems[0])
    )


def capture(times_ms: list[float], rate: float = 25.0) -> FakeCapture:
    """A capture whose container gives these times."""

    class Timed(FakeCapture):
        def __init__(self) -> None:
            super().__init__([picture()] * len(times_ms))
            self._times = iter(times_ms)
            self.properties[cv2.CAP_PROP_FPS] = rate

        def grab(self) -> bool:
            self.properties[cv2.CAP_PROP_POS_MSEC] = next(self._times, 0.0)
            return super().grab()

    return Timed()


def times_of(fake: FakeCapture) -> tuple[list[int], list[str]]:
    reader = VideoReader(Path(__file__), opened=lambda *_: fake)
    return [time_ns for time_ns, _ in played(reader)], reader.problems


def test_a_stream_without_times_runs_at_its_rate() -> None:
    times_ns, problems = times_of(capture([0.0] * 4))
    assert times_ns == [0, 40 * MS, 80 * MS, 120 * MS]
    assert len(problems) == 1
    assert 'stand still or jump' in problems[0]


@given(st.lists(st.floats(allow_nan=True, allow_infinity=True), min_size=1, max_size=20))
def test_whatever_times_a_container_gives_they_rise_by_at_most_an_hour(
    times_ms: list[float],
) -> None:
    times_ns, _ = times_of(capture([0.0, *times_ms]))
    assert len(times_ns) == 1 + len(times_ms)
    assert all(0 < b - a <= 3600 * SECOND for a, b in pairwise(times_ns))


@pytest.mark.parametrize('rate', [0.0, -1.0, 90_000.0, float('nan')])
def test_a_rate_that_no_camera_has_is_not_used(rate: float) -> None:
    assert times_of(capture([0.0] * 3, rate))[0] == [0, 50 * MS, 100 * MS]


@pytest.mark.parametrize('content', [b'', b'no video', b'RIFF' + bytes(500), b'#EXTM3U\nhttp://x'])
def test_a_file_that_is_no_video_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / 'film.mp4'
    path.write_bytes(content)
    with pytest.raises(SensingError, match=r'film.mp4 cannot be read as a video'):
        VideoReader(path)


def test_the_decoder_adds_no_words_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / 'film.mp4'
    path.write_bytes(b'no video')
    script = (
        'import sys; from pathlib import Path\n'
        'from mmedge_ros.sensing import SensingError\n'
        'from mmedge_ros.sensing.camera.video_reader import VideoReader\n'
        'try: VideoReader(Path(sys.argv[1]))\n'
        'except SensingError as error: print(error)'
    )
    # In a process of its own: FFmpeg reads its setting once.
    done = subprocess.run(
        [sys.executable, '-c', script, str(path)],
        env={**os.environ, 'PYTHONPATH': str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stderr == ''
    assert done.stdout.count('\n') == 1


def test_a_video_whose_pictures_cannot_be_decoded_is_refused_with_a_remedy() -> None:
    with pytest.raises(SensingError, match=r'holds no picture that can be read.*libx264 new\.mp4'):
        VideoReader(Path(__file__), opened=lambda *_: FakeCapture())


def test_pictures_beyond_any_screen_are_refused_before_they_are_decoded() -> None:
    huge = FakeCapture([picture()])
    huge.properties[cv2.CAP_PROP_FRAME_WIDTH] = 1e6
    with pytest.raises(SensingError, match='1000000 x 240 px; the limit is'):
        VideoReader(Path(__file__), opened=lambda *_: huge)
    assert huge.is_released


# ------------------------------------------------------------------------------ folders


def write_pictures(folder: Path, names: list[str]) -> None:
    for number, name in enumerate(names):
        cv2.imwrite(str(folder / name), marked(number))


def test_pictures_of_a_folder_come_at_the_rate_in_the_order_of_their_numbers(
    tmp_path: Path,
) -> None:
    write_pictures(tmp_path, ['frame1.png', 'frame2.jpg', 'frame10.png'])
    (tmp_path / 'notes.txt').touch()
    reader = open_pictures(tmp_path, rate=10.0)
    shots = played(reader)
    assert [time_ns for time_ns, _ in shots] == [0, 100 * MS, 200 * MS]
    assert [int(shot[80, 40, 0]) for _, shot in shots] == pytest.approx([20, 50, 80], abs=2)


def test_a_damaged_picture_leaves_its_instant_empty(tmp_path: Path) -> None:
    write_pictures(tmp_path, ['1.png', '2.png', '3.png'])
    (tmp_path / '2.png').write_bytes((tmp_path / '2.png').read_bytes()[:100])
    reader = FolderReader(tmp_path, 10.0)
    reader.grab(), reader.grab()
    with pytest.raises(SensingError, match=r'2.png: truncated png'):
        reader.retrieve()
    assert reader.grab() == 200 * MS
    assert reader.retrieve().shape == (96, 64, 3)


def test_pictures_of_another_shape_are_refused_and_of_another_size_scaled(
    tmp_path: Path,
) -> None:
    for number, size in enumerate(((64, 96), (128, 192), (96, 64))):
        cv2.imwrite(str(tmp_path / f'{number}.png'), marked(number, *size))
    reader = FolderReader(tmp_path, 10.0)
    reader.grab(), reader.grab()
    assert reader.retrieve().shape == (96, 64, 3)
    reader.grab()
    with pytest.raises(SensingError, match='96 x 64 px, another shape than the first'):
        reader.retrieve()


def test_a_folder_whose_pictures_are_all_damaged_is_refused(tmp_path: Path) -> None:
    for name in ('1.jpg', '2.jpg'):
        (tmp_path / name).write_bytes(b'\xff\xd8 no picture')
    with pytest.raises(SensingError, match=r'not one of its 2 pictures can be read \(1\.jpg: '):
        FolderReader(tmp_path, 10.0)


@pytest.mark.timeout(10)
def test_a_pipe_among_the_pictures_holds_up_nothing(tmp_path: Path) -> None:
    write_pictures(tmp_path, ['1.png', '3.png'])
    os.mkfifo(tmp_path / '2.png')
    (tmp_path / '4.png').mkdir()
    assert len(played(FolderReader(tmp_path, 10.0))) == 2


def test_a_photograph_is_turned_as_its_tag_says(tmp_path: Path) -> None:
    lying = cv2.rotate(marked(3), cv2.ROTATE_90_COUNTERCLOCKWISE)
    jpeg = cv2.imencode('.jpg', lying)[1].tobytes()
    # EXIF with the one tag 0x0112 (orientation) = 6: to be turned clockwise by 90 degrees.
    tag = b'II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0'
    exif = b'Exif\0\0' + tag
    head = b'\xff\xe1' + (len(exif) + 2).to_bytes(2, 'big') + exif
    (tmp_path / '1.jpg').write_bytes(jpeg[:2] + head + jpeg[2:])
    reader = FolderReader(tmp_path, 10.0)
    assert reader.shown_size == (64, 96)
    reader.grab()
    assert reader.retrieve()[8, 6] == pytest.approx([0, 0, 255], abs=8)


@given(content=st.binary(max_size=300))
def test_whatever_a_file_holds_is_a_video_or_refused(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    path = tmp_path_factory.mktemp('hostile') / 'film.mp4'
    path.write_bytes(b'\0\0\0\x14ftypisom' + content)
    with pytest.raises(SensingError):
        VideoReader(path)
