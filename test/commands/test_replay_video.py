"""`mmedge replay --video`: the video beside the report."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import bag_fixtures as flight
import cv2
import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from mmedge_ros.commands.errors import plain_errors
from mmedge_ros.commands.main import app
from mmedge_ros.commands.replay_run import ReplayRequest, run_replay


@pytest.fixture(autouse=True)
def _without_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr('mmedge_ros.report.figures.draw_figures', lambda *_: [])


def frames_of(path: Path) -> list[Any]:
    reader = cv2.VideoCapture(str(path))
    frames = []
    while True:
        is_there, frame = reader.read()
        if not is_there:
            return frames
        frames.append(frame)


def test_the_command_prints_report_and_video_which_shows_pictures_and_tracks(
    tmp_path: Path, detector: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    messages, out = flight.recording(1.0), tmp_path / 'report'
    pictures = [m for topic, _, m in messages if topic == flight.CAMERA_COMPRESSED]
    for message in pictures[5:9]:  # cannot be decoded, and are left out
        message.data = message.data[:100]
    bag = flight.write_bag(tmp_path / 'bag', messages=messages)
    words = ('replay', bag, '--out', out, '--detector', detector, '--video')
    done = CliRunner().invoke(app, [*map(str, words)], env={'NO_COLOR': '1', 'COLUMNS': '200'})
    assert done.exit_code == 0, done.stderr
    assert done.stdout == f'{out}/report.html\n{out}/video.webm\n'
    assert 'the video: 0.' in done.stderr
    assert 'OpenCV' not in capfd.readouterr().err
    frames = frames_of(out / 'video.webm')
    assert len(frames) == 16
    # The white box of the recording, ten times as large as recorded, moves to the right.
    begin, later = (
        float(np.median(np.flatnonzero((frame[300] > 200).all(axis=1))))
        for frame in (frames[0], frames[5])  # those of the pictures 0 and 9
    )
    assert 80 <= later - begin <= 100
    coloured = [int((np.ptp(f[:480].astype(int), axis=2) > 100).sum()) for f in frames]
    assert max(coloured[:2]) < 600 < coloured[-1]  # dots alone, then dots and a box
    with_video = {file.name for file in out.iterdir()}
    assert '<a href="video.webm">' in (out / 'report.html').read_text()
    run_replay(ReplayRequest(bag=str(bag), out=out, detector=detector, show_pictures=False))
    page = (out / 'report.html').read_text()
    assert 'video.webm' not in page
    assert 'image/webp' not in page
    # A video and pictures of an earlier run do not belong to this one.
    left = {name for name in with_video if not name.endswith(('.webm', '.webp'))}
    assert {file.name for file in out.iterdir()} == left


def test_without_a_camera_there_is_a_report_and_a_sentence(
    tmp_path: Path, detector: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    messages = [m for m in flight.recording(1.0) if m[0] in (flight.RADAR, flight.TF_STATIC)]
    bag, out = flight.write_bag(tmp_path / 'bag', messages=messages), tmp_path / 'report'
    with pytest.raises(typer.Exit) as end, plain_errors():
        run_replay(ReplayRequest(bag=str(bag), out=out, detector=detector, video=True))
    assert end.value.exit_code == 1
    assert 'no picture that can be decoded' in capsys.readouterr().err
    assert (out / 'report.json').exists()
    assert not (out / 'video.webm').exists()
