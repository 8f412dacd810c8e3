"""`mmedge lab judge-detector`: any detector, on flights or on pictures with labels."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from painted_flight import Seen, write_painted_flight, write_painted_pictures
from tiny_detector import write_tiny_detector
from typer.testing import CliRunner, Result

from mmedge_ros.commands.main import app

# The tiny detector calls what is bright in a channel a person; a painted person is red.
PERSON = Seen('person', (100.0, 50.0, 120.0, 110.0))
HIDDEN = Seen('person', (100.0, 50.0, 120.0, 110.0), 0.3)


@pytest.fixture
def detector(tmp_path: Path) -> Path:
    return write_tiny_detector(tmp_path / 'carried.onnx')


def run(*arguments: object) -> Result:
    command = ['lab', 'judge-detector', *map(str, arguments)]
    return CliRunner().invoke(app, command, env={'NO_COLOR': '1'})


def line_of(done: Result, words: str) -> list[str]:
    assert done.exit_code == 0, done.stderr
    (line,) = [line for line in done.stdout.splitlines() if words in line]
    return line.split()[-4:]


def test_a_detector_is_judged_on_flights(tmp_path: Path, detector: Path) -> None:
    write_painted_flight(tmp_path / 'set/flight', pictures=3, seen=[PERSON])
    done = run(detector, tmp_path / 'set', '--out', tmp_path / 'out')
    assert line_of(done, 'all of 20 px and more') == ['3', '1.000', '1.000', '1.000']
    content = json.loads((tmp_path / 'out/judge-detector.json').read_text())
    figures = content['detectors']['carried.onnx']
    assert (figures['map50_20px'], figures['boxes'], figures['on_nobody']) == (1.0, 3, 0)


def test_pictures_with_labels_are_judged_by_their_source(tmp_path: Path, detector: Path) -> None:
    write_painted_pictures(tmp_path / 'set', 4, seen=[PERSON])
    (tmp_path / 'set/sources.csv').write_text('file,source\n000000.jpg,lake\n000001.jpg,lake\n')
    done = run(detector, tmp_path / 'set', '--out', tmp_path / 'out')
    assert line_of(done, 'place lake, 8 px and more') == ['2', '1.000', '1.000', '1.000']
    assert line_of(done, 'place lake  ') == ['2', '1.000', '1.000', '1.000']
    assert line_of(done, 'all of 8 px and more') == ['4', '1.000', '1.000', '1.000']
    assert 'distance' not in done.stdout


def test_whom_nobody_need_see_is_no_error(tmp_path: Path, detector: Path) -> None:
    write_painted_pictures(tmp_path / 'set', 2, seen=[HIDDEN])
    done = run(detector, tmp_path / 'set', '--out', tmp_path / 'out')
    assert done.exit_code == 0, done.stderr
    assert '0 of 2 boxes touch nobody' in done.stderr


def test_boxes_on_nobody_are_counted_and_shown(tmp_path: Path, detector: Path) -> None:
    write_painted_pictures(tmp_path / 'set', 2, seen=[PERSON])
    for number in range(2):
        (tmp_path / f'set/labels/{number:06d}.txt').write_text('0 0.9 0.9 0.05 0.1\n')
    done = run(detector, tmp_path / 'set', '--out', tmp_path / 'out')
    assert line_of(done, 'all of 20 px and more') == ['2', '0.000', '0.000', '0.000']
    assert '2 of 2 boxes touch nobody' in done.stderr
    page = (tmp_path / 'out/judge-detector.html').read_text()
    assert 'The tallest people missed by carried' in page
    assert 'The surest boxes on nobody by carried' in page


def test_a_folder_without_pictures_or_flights_is_one_sentence(
    tmp_path: Path, detector: Path
) -> None:
    (tmp_path / 'set').mkdir()
    done = run(detector, tmp_path / 'set', '--out', tmp_path / 'out')
    assert (done.exit_code, done.stdout) == (1, '')
    assert 'holds no flights' in done.stderr.splitlines()[-1]
    assert 'or name pictures with labels' in done.stderr.splitlines()[-1]
