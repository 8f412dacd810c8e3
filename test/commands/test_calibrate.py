"""What `mmedge calibrate` prints and writes."""

from __future__ import annotations

import csv
import os
import re
from pathlib import Path

import pytest
import yaml
from bag_fixtures import recording, write_bag
from hand_made_walk import walked
from typer.testing import CliRunner, Result

from mmedge_ros.commands.main import app
from mmedge_ros.core.data_types import Box, Detection
from mmedge_ros.encoding.detector import DetectorOutput
from mmedge_ros.encoding.unit_encoder import CameraEncoder
from mmedge_ros.geometry.calibration import read_calibration
from mmedge_ros.replay.extrinsics import sightings
from mmedge_ros.replay.extrinsics.sightings import Sightings


@pytest.fixture(scope='module')
def bag(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_bag(tmp_path_factory.mktemp('bags') / 'flight', messages=recording(1.0))


def run(bag: Path, out: Path, *words: str) -> Result:
    environment = {'NO_COLOR': '1', 'COLUMNS': '120', 'TERM': 'dumb'}
    return CliRunner().invoke(
        app, ['calibrate', str(bag), '--out', str(out), *words], env=environment
    )


def run_with(
    seen: Sightings, monkeypatch: pytest.MonkeyPatch, bag: Path, out: Path
) -> tuple[str, str]:
    """The words on standard output, and those on standard error as one line."""
    monkeypatch.setattr(sightings, 'observe', lambda *_: seen)
    result = CliRunner().invoke(app, ['calibrate', str(bag), '--out', str(out)])
    assert result.exit_code == 0, result.output
    return ' '.join(result.stdout.split()), ' '.join(result.stderr.split())


def test_changes_agreement_and_file_are_reported(
    bag: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / 'rig.yaml'
    words, said = run_with(walked((6.0, 0.0, 0.0), 0.08, shakes=True), monkeypatch, bag, out)
    assert 'yaw +5.' in words or 'yaw +6.' in words
    assert re.search(r'time \+(7[6-9]|8[0-4]) ms', words), words
    assert 'boxes of people that hold moving returns' in words
    assert words.endswith('rig.yaml')
    assert 'pipeline.time_offset: 0.0' in said
    assert len(read_calibration(out).transforms) == 2
    assert set(yaml.safe_load(out.read_text())) == {'transforms', 'calibrated'}


def test_a_right_start_is_left_alone(
    bag: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, said = run_with(walked(), monkeypatch, bag, tmp_path / 'rig.yaml')
    assert 'nothing has to be changed' in said


class _SeesOnePerson:
    labels = ('person',)
    input_size = (64, 48)

    def detect(self, image: object) -> DetectorOutput:
        return DetectorOutput((Detection(Box(20.0, 5.0, 40.0, 40.0), 0.9, 'person'),))

    def warm_up(self) -> None:
        pass


def test_a_recording_of_a_second_is_refused_with_what_to_record(
    bag: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    camera = CameraEncoder(lambda *_: _SeesOnePerson())
    monkeypatch.setattr(CameraEncoder, 'from_path', lambda *_: camera)
    result = run(bag, tmp_path / 'rig.yaml', '--detector', __file__)
    assert result.exit_code == 1
    words = ' '.join(result.stderr.split())
    assert 'mmedge: only' in words
    assert 'walk across' in words
    assert not (tmp_path / 'rig.yaml').exists()


def test_a_recording_without_radar_is_refused(tmp_path: Path) -> None:
    pictures = [m for m in recording(0.5) if 'radar' not in m[0]]
    bag = write_bag(tmp_path / 'bag', messages=pictures)
    result = run(bag, tmp_path / 'rig.yaml', '--detector', __file__)
    assert result.exit_code == 1
    assert 'there is no radar in the recording' in ' '.join(result.stderr.split())


class _PseudoLabels:
    """Sees in each picture what another detector saw in it."""

    labels = ('person',)
    input_size = (640, 480)

    def __init__(self, path: Path) -> None:
        self._seen: dict[int, list[Detection]] = {}
        for row in csv.reader(path.read_text().splitlines()[1:]):
            frame, *box, score = map(float, row)
            self._seen.setdefault(int(frame), []).append(Detection(Box(*box), score, 'person'))
        self._number = -1

    def detect(self, image: object) -> DetectorOutput:
        self._number += 1
        return DetectorOutput(tuple(self._seen.get(self._number, ())))

    def warm_up(self) -> None:
        pass


@pytest.mark.skipif('MMEDGE_DATA' not in os.environ, reason='MMEDGE_DATA is not set')
def test_a_real_recording_with_a_wrong_lens_ends_as_well_as_with_the_right_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = Path(os.environ['MMEDGE_DATA']) / 'millieye'
    labels = _PseudoLabels(data / '20200729-213410_auto_person_boxes_yoloxnano.csv')
    monkeypatch.setattr(CameraEncoder, 'from_path', lambda *_: CameraEncoder(lambda *_: labels))
    wrong = str(data / 'calib2_FOV110.yaml')
    result = run(data / 'night_walk', tmp_path / 'rig.yaml', '--calibration', wrong)
    assert result.exit_code == 0, result.output
    words = ' '.join(result.stdout.split())
    before, after = map(int, re.findall(r'hold moving returns (\d+) % (\d+) %', words)[0])
    assert before < 70 < 90 < after
    before, after = map(int, re.findall(r'box of a person (\d+) % (\d+) %', words)[0])
    assert before < 35 < 75 < after
