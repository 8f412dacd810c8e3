"""`mmedge replay VIDEO`: one's own video gives tracks, a report and a video by one command."""

from __future__ import annotations

import json
from collections import Counter
from itertools import islice
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from camera_fakes import picture
from mp4_files import write_mp4
from typer.testing import CliRunner, Result

from mmedge_ros.commands import replay_run
from mmedge_ros.commands.main import app
from mmedge_ros.geometry.box_overlap import overlap
from mmedge_ros.replay.recording import Recording
from mmedge_ros.report.report import decision_lines
from mmedge_ros.report.timed_pictures import recorded_pictures

ROOT = Path(__file__).resolve().parents[2]
PROFILE = ROOT / 'config/profiles/default.yaml'
SHIPPED = ROOT / 'models/flight_people'
RATE = 20.0


def run(*arguments: object) -> Result:
    words = ['replay', *map(str, arguments), '--profile', str(PROFILE)]
    return CliRunner().invoke(app, words, env={'NO_COLOR': '1'})


def decisions_in(log: str) -> dict[int, dict[str, Any]]:
    return {d['window_end_ns']: d for d in map(json.loads, log.splitlines())}


def decisions_of(out: Path) -> dict[int, dict[str, Any]]:
    return decisions_in((out / 'decisions.jsonl').read_text())


def plays(video: Path) -> bool:
    reader = cv2.VideoCapture(str(video))
    try:
        return bool(reader.read()[0])
    finally:
        reader.release()


@pytest.fixture(scope='module')
def pictures(street_flight: Path) -> list[Any]:
    """Pictures of simulated people, at RATE."""
    with Recording(street_flight) as recording:
        return [shot.picture for shot in islice(recorded_pictures(recording), 54)]


@pytest.mark.usefixtures('undrawn')
def test_a_turned_video_of_variable_rate_gives_the_tracks_of_the_plain_pictures(
    tmp_path: Path, pictures: list[Any]
) -> None:
    folder, video = tmp_path / 'plain', tmp_path / 'phone.mp4'
    folder.mkdir()
    for number, shot in enumerate(pictures):
        cv2.imwrite(str(folder / f'{number}.jpg'), shot, [cv2.IMWRITE_JPEG_QUALITY, 95])
    # A phone in the dark: it leaves out two of five pictures, and shows the others longer.
    kept = [n for n in range(len(pictures)) if n % 5 not in (1, 3)]
    steps = np.diff([*kept, len(pictures)]) / RATE
    write_mp4(video, [pictures[n] for n in kept], steps.tolist(), turn=90)

    out = tmp_path / 'out'
    done = run(video, '--detector', SHIPPED, '--video', '--out', out)
    assert done.exit_code == 0, done.output
    assert done.stdout.splitlines() == [str(out / 'report.html'), str(out / 'video.webm')]
    assert 'camera only' in done.stderr
    assert '70 degrees across the longer side is assumed' in done.stderr
    assert 'has seen few real people at eye level' in done.stderr
    assert 'mmedge model fetch yolox_nano' in done.stderr
    request = replay_run.ReplayRequest(
        bag=str(folder), out=out, detector=str(SHIPPED), profile=str(PROFILE), fps=RATE
    )
    record = replay_run.offline_record(request)

    turned, plain = decisions_of(out), decisions_in(decision_lines(record.decisions))
    settled = sorted(turned.keys() & plain.keys())[-12:]
    boxes = [
        [[t['box'] for t in run_of[end]['tracks'] if t['box']] for run_of in (turned, plain)]
        for end in settled
    ]
    assert sum(len(seen) for _, seen in boxes) >= 12
    shares = [
        max((overlap(box, other) for other in others), default=0.0)
        for others, seen in boxes
        for box in seen
    ]
    assert np.median(shares) > 0.8
    assert np.mean(np.array(shares) > 0.5) > 0.9

    assert plays(out / 'video.webm')
    report = json.loads((out / 'report.json').read_text())
    assert report['units']['camera']['encoded'] == len(kept)


def standing(x: int, width: int, height: int) -> Any:
    """A white person of half the picture's height."""
    shot = picture(40, width, height)
    shot[height // 4 : 3 * height // 4, x : x + height // 8] = 255
    return shot


@pytest.mark.usefixtures('undrawn')
def test_boxes_of_a_large_video_are_in_its_own_pixels(tmp_path: Path, detector: Path) -> None:
    video, width, height = tmp_path / 'uhd.mp4', 2560, 1920
    write_mp4(video, [standing(1000, width, height)] * 12, [0.1] * 12)
    done = run(video, '--detector', detector, '--out', tmp_path / 'out')
    assert done.exit_code == 0, done.output
    assert '2560 x 1920 px, replayed at 1280 x 960' in done.stderr
    last = list(decisions_of(tmp_path / 'out').values())[-1]
    assert last['tracks'][0]['box'] == pytest.approx([1000, 480, 1240, 1440], abs=16)


def test_options_of_videos_are_refused_for_other_recordings(tmp_path: Path) -> None:
    bag = tmp_path / 'flight.mcap'
    bag.touch()
    done = run(bag, '--fov', 60, '--out', tmp_path / 'out')
    assert done.exit_code == 2
    assert '--fov belongs to a video' in ' '.join(done.stderr.split())


@pytest.mark.usefixtures('undrawn')
def test_a_street_at_night_gives_the_people_in_it(data_folder: Path, tmp_path: Path) -> None:
    source = data_folder / 'millieye'
    detector = data_folder / 'models' / 'yolox_nano.onnx'
    reader = cv2.VideoCapture(str(source / '20200729-213410_video.mp4'))
    beginning = [reader.read()[1] for _ in range(140)]
    write_mp4(tmp_path / 'night.mp4', beginning, [1 / RATE] * len(beginning))
    done = run(tmp_path / 'night.mp4', '--detector', detector, '--out', tmp_path / 'out')
    assert done.exit_code == 0, done.output
    people = Counter(len(d['tracks']) for d in decisions_of(tmp_path / 'out').values())
    assert people.most_common(1)[0][0] == 3
