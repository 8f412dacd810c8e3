"""The video of a run: every picture once, with what was known when it was there."""

from __future__ import annotations

import io
import resource
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from PIL import Image

from mmedge_ros.core.data_types import CAMERA, NS_PER_S, Box
from mmedge_ros.core.run_record import RunRecord
from mmedge_ros.report import ReportError, video
from mmedge_ros.report.timed_pictures import TimedPicture
from mmedge_ros.report.video import frame_rate, write_video
from mmedge_ros.viewing.drawing import BACKGROUND, colour_of

MS = 1_000_000
BAR = 24


def shots(record: RunRecord, width: int = 640, height: int = 480) -> list[TimedPicture]:
    picture = np.full((height, width, 3), 60, np.uint8)
    cameras = [unit for unit in record.features if unit.modality == CAMERA]
    return [TimedPicture(unit.stamp_ns, unit.available_ns, picture) for unit in cameras]


def frames_of(path: Path) -> list[Any]:
    reader = cv2.VideoCapture(str(path))
    frames = []
    while True:
        is_there, frame = reader.read()
        if not is_there:
            return frames
        frames.append(frame)


def shows(frame: Any, number: int) -> bool:
    """Whether the colour of a track is in the picture; the encoder is not exact."""
    colour = np.array([255 * c for c in colour_of(number)])[::-1]
    return bool((np.abs(frame[:-BAR] - colour).max(axis=2) < 40).sum() > 50)


def test_every_picture_is_a_frame_at_the_pace_of_the_camera(build_run, tmp_path):
    record = build_run(2.0)
    shares: list[float] = []
    path = tmp_path / 'new' / 'video.webm'
    assert write_video(record, shots(record), path, shares.append).frames == 40
    reader = cv2.VideoCapture(str(path))
    assert reader.get(cv2.CAP_PROP_FPS) == pytest.approx(20.0)
    assert [f.shape for f in frames_of(path)] == [(480 + BAR, 640, 3)] * 40
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    assert [file.name for file in path.parent.iterdir()] == ['video.webm']


def test_a_picture_shows_the_newest_decision_published_by_then(build_run, tmp_path):
    record = build_run(2.0)
    pictures = shots(record)
    first, second = record.decisions[0], record.decisions[5]
    box = Box(100, 100, 200, 300)
    known = [
        replace(d, tracks=(replace(d.tracks[0], id=number, box=box, box_velocity=(0.0, 0.0)),))
        for number, d in ((1, first), (2, second))
    ]
    # The second is published while the third decision's pictures come.
    known[1] = replace(known[1], published_ns=pictures[24].available_ns)
    write_video(replace(record, decisions=known), pictures, tmp_path / 'video.webm')
    frames = frames_of(tmp_path / 'video.webm')
    published = sum(p.available_ns < first.published_ns for p in pictures)
    assert 0 < published < 24
    assert [shows(f, 1) for f in frames[: published + 1]] == [False] * published + [True]
    assert (shows(frames[23], 1), shows(frames[23], 2)) == (True, False)
    assert (shows(frames[24], 1), shows(frames[24], 2)) == (False, True)


def test_a_box_moves_with_its_velocity_between_decisions(build_run, tmp_path):
    record = build_run(1.0)
    pictures = shots(record)
    decision = record.decisions[0]
    walker = replace(decision.tracks[0], box=Box(100, 100, 200, 300), box_velocity=(500.0, 0.0))
    only = replace(decision, tracks=(walker,))
    write_video(replace(record, decisions=[only]), pictures, tmp_path / 'video.webm')
    colour = np.array([255 * c for c in colour_of(walker.id)])[::-1]
    lefts = []
    for frame in frames_of(tmp_path / 'video.webm')[-5:]:
        close = np.abs(frame[150:250] - colour).max(axis=2) < 60
        lefts.append(int(np.flatnonzero(close.mean(axis=0) > 0.8)[0]))
    steps = np.diff(lefts)
    assert (np.abs(steps - 25) <= 2).all()  # 500 px/s over 50 ms


def test_a_silent_sensor_is_named_in_the_status_bar(build_run, tmp_path):
    record = build_run(1.0)
    silent = [replace(d, lost=('radar',)) for d in record.decisions]

    def orange(decisions: Any) -> int:
        path = tmp_path / 'video.webm'
        write_video(replace(record, decisions=decisions), shots(record), path)
        bar = frames_of(path)[-1][-BAR:].astype(int)
        assert (np.abs(bar - BACKGROUND).max(axis=2) > 100).any()  # there is text at all
        return int((bar[:, :, 2] - bar[:, :, 0] > 80).sum())

    assert orange(record.decisions) == 0
    assert orange(silent) > 50


def test_radar_returns_are_dots_where_the_calibration_puts_them(build_run, tmp_path):
    record = replace(build_run(1.0), decisions=[])
    path = tmp_path / 'video.webm'
    write_video(record, shots(record), path)
    with_radar = frames_of(path)[-1][:-BAR].astype(int)
    write_video(replace(record, radar_pose=None), shots(record), path)
    without = frames_of(path)[-1][:-BAR].astype(int)
    assert (np.abs(with_radar - 60).max(axis=2) > 60).sum() > 100
    assert (np.abs(without - 60).max(axis=2) > 60).sum() == 0


@pytest.mark.parametrize(
    ('size', 'shown'),
    [
        ((64, 48), (640, 480 + BAR)),
        ((63, 47), (640, 478 + BAR)),
        ((4000, 3000), (1280, 960 + 40)),
        ((20, 400), (64, 1280 + BAR)),
    ],
)
def test_pictures_of_any_size_become_a_video_that_can_be_watched(build_run, tmp_path, size, shown):
    record = build_run(0.6)
    path = tmp_path / 'video.webm'
    count = write_video(record, shots(record, *size)[:3], path).frames
    frames = frames_of(path)
    assert len(frames) == count == 3
    assert frames[0].shape == (shown[1], shown[0], 3)


def test_without_pictures_there_is_no_video(build_run, tmp_path):
    with pytest.raises(ReportError, match='leave out --video'):
        write_video(build_run(1.0), [], tmp_path / 'video.webm')
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_takes_no_file_is_an_error(build_run, tmp_path):
    record = build_run(0.6)
    (tmp_path / 'file').touch()
    for path in (tmp_path / 'file' / 'video.webm', Path('/proc/video.webm')):
        with pytest.raises(ReportError, match='cannot write the video'):
            write_video(record, shots(record), path)


def test_an_opencv_that_cannot_encode_is_told_of(build_run, tmp_path, monkeypatch):
    class Mute:
        fourcc = staticmethod(cv2.VideoWriter.fourcc)

        def __init__(self, *_: object) -> None:
            pass

        def isOpened(self) -> bool:  # noqa: N802
            return False

    monkeypatch.setattr(video.cv2, 'VideoWriter', Mute)
    record = build_run(0.6)
    with pytest.raises(ReportError, match=r'cannot encode VP80 video.*headless'):
        write_video(record, shots(record), tmp_path / 'video.webm')
    assert list(tmp_path.iterdir()) == []


FULL_DISK = """
import sys
from pathlib import Path
import numpy as np
from mmedge_ros.report import ReportError
from mmedge_ros.core.run_record import RunRecord
from mmedge_ros.report.timed_pictures import TimedPicture
from mmedge_ros.report.video import write_video
noise = np.random.default_rng(1).integers(0, 255, (480, 640, 3), np.uint8)
shots = [TimedPicture(i * 50_000_000, i * 50_000_000, noise) for i in range(40)]
try:
    write_video(RunRecord('bag', 'offline', 0.05, 0.5, 0.1), shots, Path(sys.argv[1]))
except ReportError as error:
    print(error)
"""


def test_a_disk_that_fills_leaves_the_earlier_video(tmp_path):
    path = tmp_path / 'video.webm'
    path.write_bytes(b'earlier')
    done = subprocess.run(
        [sys.executable, '-c', FULL_DISK, str(path)],
        capture_output=True,
        text=True,
        timeout=100,
        check=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000)),
    )
    assert 'is there room on its disk?' in done.stdout
    assert path.read_bytes() == b'earlier'
    assert [file.name for file in tmp_path.iterdir()] == ['video.webm']


def test_the_pace_is_the_cameras_whatever_gaps_and_copies_there_are():
    stamps = [NS_PER_S + round(n * 1e9 / 30) for n in range(60)]
    assert frame_rate(stamps) == pytest.approx(30.0, rel=1e-6)
    gaps = stamps[:20] + stamps[40:] + [stamps[-1]] * 10 + [stamps[0]]
    assert frame_rate(gaps) == pytest.approx(30.0, rel=1e-6)
    assert frame_rate([]) == frame_rate([7, 7]) == 20.0
    assert frame_rate([0, 3600 * NS_PER_S]) == 1.0
    assert frame_rate([0, 1]) == 240.0


def first_key_frame(webm: bytes) -> bytes:
    """The first frame of VP8: after the size of its SimpleBlock (A3), track, time and flags."""
    begin = webm.index(bytes.fromhex('9d012a')) - 3
    for digits in range(1, 9):
        size = int.from_bytes(webm[begin - 4 - digits : begin - 4], 'big')
        is_size = size >> 7 * digits == 1
        if is_size and webm[begin - 5 - digits] == 0xA3:
            return webm[begin : begin - 4 + size - (1 << 7 * digits)]
    raise AssertionError('no SimpleBlock')


def test_the_video_is_one_that_browsers_play(tmp_path: Path) -> None:
    """VP8 in WebM by its own bytes, at the camera's pace: OpenCV wrote it and may not judge."""
    picture = np.full((48, 64, 3), 90, np.uint8)
    period_ns = NS_PER_S // 20
    shots = [TimedPicture(n * period_ns, n * period_ns, picture) for n in range(20)]
    record = RunRecord(
        'by_hand', 'offline', 0.05, 0.5, 0.1, camera_stamps_ns=[s.stamp_ns for s in shots]
    )
    video = write_video(record, shots, tmp_path / 'video.webm')
    content = (tmp_path / 'video.webm').read_bytes()
    assert content[:4] == bytes.fromhex('1a45dfa3')  # EBML
    assert b'webm' in content[:64]
    assert b'V_VP8' in content
    # A key frame of VP8 is what a WebP holds: libwebp, which is no part of OpenCV, decodes it.
    key_frame = first_key_frame(content)
    chunk = b'WEBPVP8 ' + len(key_frame).to_bytes(4, 'little') + key_frame
    riff = b'RIFF' + len(chunk).to_bytes(4, 'little') + chunk
    shown = np.asarray(Image.open(io.BytesIO(riff)).convert('RGB')).astype(int)
    assert shown.shape == (504, 640, 3)
    assert np.abs(shown[:480] - 90).max() <= 4
    assert (video.frames, video.seconds, video.size) == (20, 1.0, len(content))
