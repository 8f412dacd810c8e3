"""`mmedge replay --video`: the video beside the report, and never in it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import bag_fixtures as flight
import cv2
import numpy as np
import pytest
import typer
from tiny_detector import write_tiny_detector

from mmedge_ros.commands.errors import plain_errors
from mmedge_ros.commands.replay_run import ReplayRequest, run_replay

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope='module')
def detector(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_detector(tmp_path_factory.mktemp('model') / 'tiny.onnx')


def write_recording(tmp_path: Path, topics: tuple[str, ...] = ()) -> Path:
    messages = [m for m in flight.recording(1.0) if not topics or m[0] in topics]
    return flight.write_bag(tmp_path / 'bag', messages=messages)


def frames_of(path: Path) -> list[Any]:
    reader = cv2.VideoCapture(str(path))
    frames = []
    while True:
        is_there, frame = reader.read()
        if not is_there:
            return frames
        frames.append(frame)


def test_the_command_prints_report_and_video(tmp_path: Path, detector: Path) -> None:
    out = tmp_path / 'report'
    bag = write_recording(tmp_path)
    command = [sys.executable, '-m', 'mmedge_ros.commands.main', 'replay', bag, '--out', out]
    done = subprocess.run(
        [*map(str, command), '--detector', str(detector), '--video'],
        env={**os.environ, 'PYTHONPATH': str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert done.stdout == f'{out}/report.html\n{out}/video.mp4\n'
    assert 'video' in done.stderr  # it says what takes the time
    assert len(frames_of(out / 'video.mp4')) == 20


def test_the_video_shows_the_pictures_and_the_tracks(tmp_path: Path, detector: Path) -> None:
    out = tmp_path / 'report'
    run_replay(ReplayRequest(write_recording(tmp_path), out, detector=detector, video=True))
    frames = frames_of(out / 'video.mp4')
    # The white box of the recording, ten times as large as recorded, moves to the right.
    begin, later = (
        float(np.median(np.flatnonzero((frame[300] > 200).all(axis=1))))
        for frame in (frames[0], frames[9])
    )
    assert 80 <= later - begin <= 100
    coloured = [int((np.ptp(f[:480].astype(int), axis=2) > 100).sum()) for f in frames]
    assert max(coloured[:3]) < 600 < coloured[-1]  # dots alone, then dots and a box


def test_the_page_holds_no_picture_of_the_video(tmp_path: Path, detector: Path) -> None:
    bag, out = write_recording(tmp_path), tmp_path / 'report'
    run_replay(ReplayRequest(bag, out, detector=detector, video=True))
    with_video = {file.name for file in out.iterdir()}
    page = (out / 'report.html').read_text()
    assert 'video' not in page
    assert '.mp4' not in page
    run_replay(ReplayRequest(bag, out, detector=detector))
    # A video of an earlier run does not belong to this one.
    assert {file.name for file in out.iterdir()} == with_video - {'video.mp4'}


def test_without_a_camera_there_is_a_report_and_a_sentence(
    tmp_path: Path, detector: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bag, out = write_recording(tmp_path, (flight.RADAR, flight.TF_STATIC)), tmp_path / 'report'
    with pytest.raises(typer.Exit) as end, plain_errors():
        run_replay(ReplayRequest(bag, out, detector=detector, video=True))
    assert end.value.exit_code == 1
    assert 'no picture that can be decoded' in capsys.readouterr().err
    assert (out / 'report.json').exists()
    assert not (out / 'video.mp4').exists()


def test_pictures_that_cannot_be_decoded_are_not_in_the_video(
    tmp_path: Path, detector: Path
) -> None:
    messages = flight.recording(1.0)
    pictures = [m for topic, _, m in messages if topic == flight.CAMERA_COMPRESSED]
    for message in pictures[5:9]:
        message.data = message.data[:100]
    bag, out = flight.write_bag(tmp_path / 'bag', messages=messages), tmp_path / 'report'
    run_replay(ReplayRequest(bag, out, detector=detector, video=True))
    assert len(frames_of(out / 'video.mp4')) == 16


def test_the_night_walk_becomes_a_video(data_folder: Path, tmp_path: Path, detector: Path) -> None:
    bag = data_folder / 'millieye' / 'night_walk'
    run_replay(ReplayRequest(bag, tmp_path, detector=detector, video=True))
    frames = frames_of(tmp_path / 'video.mp4')
    assert len(frames) == 401
    assert frames[0].shape == (504, 640, 3)
