"""`mmedge replay --pseudo-labels`: a run beside what another detector sees."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from bag_fixtures import recording, write_bag
from tiny_bundle import write_tiny_bundle
from tiny_detector import write_tiny_detector
from typer.testing import CliRunner, Result

from mmedge_ros.commands.main import app

pytestmark = pytest.mark.usefixtures('without_figures')


@pytest.fixture(scope='module')
def detector(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_detector(tmp_path_factory.mktemp('models') / 'tiny.onnx')


@pytest.fixture(scope='module')
def bag(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_bag(tmp_path_factory.mktemp('bags') / 'walk', messages=recording(1.0))


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, ['replay', *map(str, arguments)], env={'NO_COLOR': '1'})


def test_a_detector_agrees_with_itself_and_is_called_no_truth(
    tmp_path: Path, bag: Path, detector: Path
) -> None:
    options = ('--detector', detector, '--pseudo-labels', detector, '--frames', '10:19')
    result = run(bag, *options, '--out', tmp_path)
    assert result.exit_code == 0, result.output
    assert 'pseudo-labels of tiny.onnx, not ground truth' in result.stderr
    (found,) = json.loads((tmp_path / 'report.json').read_text())['pseudo_labels']
    assert (found['first_frame'], found['last_frame'], found['labels']) == (10, 19, 10)
    assert found['detector']['mean_iou'] == found['detector']['precision'] == 1.0
    # Decisions lag behind the pictures, and follow them.
    assert 0.5 < found['decisions']['mean_iou'] <= 1.0


def test_a_teacher_that_cannot_be_used_is_refused_before_the_replay(
    tmp_path: Path, bag: Path, detector: Path
) -> None:
    broken = write_tiny_bundle(tmp_path / 'broken')
    (broken / 'large.onnx').write_bytes(b'no network')
    options = ('--detector', detector, '--pseudo-labels', broken)
    result = run(bag, *options, '--out', tmp_path / 'out')
    assert result.exit_code == 1
    assert str(broken / 'large.onnx') in result.stderr.splitlines()[-1]
    assert not (tmp_path / 'out' / 'report.json').exists()


def test_frames_the_recording_lacks_leave_a_report_without_comparison(
    tmp_path: Path, bag: Path, detector: Path
) -> None:
    options = ('--detector', detector, '--pseudo-labels', detector, '--frames', '90:99')
    result = run(bag, *options, '--out', tmp_path)
    assert result.exit_code == 1
    assert 'holds 20 pictures' in result.stderr.splitlines()[-1]
    report = json.loads((tmp_path / 'report.json').read_text())
    assert report['pseudo_labels'] == []
    assert any('pseudo-labels' in problem for problem in report['problems'])


def test_frames_alone_are_refused(tmp_path: Path, bag: Path) -> None:
    result = run(bag, '--frames', '1:2', '--out', tmp_path)
    assert result.exit_code == 2
    assert '--pseudo-labels' in result.stderr
