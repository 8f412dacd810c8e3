"""Files beside the recording that are not what they should be, and folders that take nothing."""

from __future__ import annotations

import hashlib
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import bag_fixtures as flight
import pytest
from replays import Outcome, refused, replay, reported

ROOT = Path(__file__).parents[2]
HUGE = '1' + '0' * 400
HUGE_IN_HEXADECIMAL = '0x' + 'f' * 5000
QUANTILES = 'probabilities: [0.05, 0.25, 0.5, 0.75, 0.95, 0.99]\n'

pytestmark = pytest.mark.usefixtures('without_figures')


@pytest.fixture(scope='module')
def bag(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return flight.write_bag(tmp_path_factory.mktemp('recording') / 'bag')


@pytest.fixture
def run(bag: Path, tmp_path: Path, detector: Path) -> Any:
    """Replay a sound recording with other options."""

    def replayed(**options: Any) -> Outcome:
        out = options.pop('out', tmp_path / 'report')
        return replay(bag, out, **{'detector': detector, **options})

    return replayed


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, str | bytes], Path]:
    """Write a file and return its path."""

    def written(name: str, content: str | bytes) -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return written


def of_the_fusion(pipeline: str) -> str:
    return f'fusion: {{ros__parameters: {{pipeline: {pipeline}}}}}'


@pytest.mark.parametrize(
    ('text', 'said'),
    [
        ('', 'holds nothing'),
        ('[1, 2]', 'holds a list'),
        ('a: [1', 'not plain YAML'),
        (b'\x80\x81\x00', 'not plain YAML'),
        ('a: &a [x]\nb: [*a, *a]', 'refers to an anchor'),
        ('[' * 5000, 'nested deeper'),
        ('fusion: 3', 'must hold "ros__parameters:"'),
        ('fusoin: {ros__parameters: {pipeline: {pairing: 0.2}}}', 'nothing in it concerns'),
        (of_the_fusion('{windos: {window: 1.0}}'), "nearest valid one is 'windows.window'"),
        (of_the_fusion('{windows: {window: 100.0}}'), '100.0 s; the limits are 0.05 to 10.0'),
        (of_the_fusion('{windows: {window: .nan}}'), 'must be a float, not nan'),
        (of_the_fusion(f'{{windows: {{window: {HUGE}}}}}'), 'must be a float, not a huge number'),
        (of_the_fusion(f'{{windows: {{window: {HUGE_IN_HEXADECIMAL}}}}}'), 'a huge number'),
        (of_the_fusion('{windows: {window: soon}}'), "must be a float, not 'soon'"),
        (of_the_fusion(f'{{{"x" * 900}: 1}}'), "unknown parameter 'xxx"),
        (
            'camera_encoder: {ros__parameters: {detection: {labels: [zebra]}}}',
            "knows no label 'zebra'; the nearest of its 1 is 'person'",
        ),
    ],
)
def test_a_parameter_file_that_is_none_is_refused(
    run: Any, write: Any, text: str | bytes, said: str
) -> None:
    outcome = run(params=write('params.yaml', text))
    refused(outcome, said)
    assert len(outcome.sentence) < 1000


def test_limits_that_let_nothing_through_are_told_of(run: Any, write: Any) -> None:
    limits = 'radar_encoder: {ros__parameters: {limits: {min_range: 50.0, max_range: 1.0}}}'
    outcome = run(params=write('params.yaml', limits))
    reported(outcome, 'radar: returns dropped as too near or too far: 100')


def test_files_without_an_end_are_refused(run: Any) -> None:
    endless = Path('/dev/zero')
    refused(run(params=endless), 'larger than 1000000 bytes')
    refused(run(profile=endless), 'larger than 200000 bytes')
    refused(run(calibration=endless), 'larger than 200000 bytes')
    refused(run(detector=endless), 'not a regular file')


@pytest.mark.parametrize(
    ('text', 'said'),
    [
        ('', 'holds nothing'),
        ('stages_ms: 3', '"stages_ms" is missing'),
        ('stages_ms: {}', '"probabilities" must be'),
        (QUANTILES + 'stages_ms: {}', "has no stage 'receipt.transport'; it has none"),
        (QUANTILES + 'stages_ms: {camera.encode: [1, 2]}', 'needs 6 ascending times'),
        (QUANTILES + 'stages_ms: {camera.encode: [1, 2, 3, 4, 5, .inf]}', 'needs 6 ascending'),
        (QUANTILES + 'stages_ms: {camera.encode: [6, 5, 4, 3, 2, 1]}', 'needs 6 ascending'),
        (QUANTILES + f'stages_ms: {{x: [1, 2, 3, 4, 5, {HUGE_IN_HEXADECIMAL}]}}', 'a huge number'),
    ],
)
def test_a_profile_that_is_none_is_refused(run: Any, write: Any, text: str, said: str) -> None:
    refused(run(profile=write('device.yaml', text)), said)


def test_weights_that_are_no_detector_are_refused(
    run: Any, write: Any, detector: Path, tmp_path: Path
) -> None:
    cut = detector.read_bytes()[: detector.stat().st_size // 2]
    for weights, said in (
        (write('text.onnx', 'hello'), 'cannot be opened .*complete ONNX file'),
        (write('cut.onnx', cut), 'cannot be opened .*complete ONNX file'),
        (write('empty.onnx', ''), 'are empty'),
        (write('notes.txt', 'hello'), "end in '.txt'"),
        (tmp_path / 'nowhere.onnx', 'do not exist'),
    ):
        refused(run(detector=weights), said)


def test_a_damaged_bundle_is_refused(run: Any, write: Any, detector: Path, tmp_path: Path) -> None:
    digest = hashlib.sha256(detector.read_bytes()).hexdigest()
    level = 'name: x\ncamera: {levels: {small: {weights: %s, sha256: "%s"}}}'
    refused(run(detector=tmp_path), 'has no manifest.yaml')
    for manifest, said in (
        ('a: [1', 'is not valid YAML'),
        ('name: x', 'holds no mapping .* for camera'),
        (level % ('small.onnx', digest), 'small.onnx do not exist'),
        (level % ('../../secret.onnx', digest), 'leaves the bundle'),
        (level % ('damaged.onnx', digest), 'damaged.onnx has SHA-256'),
    ):
        write('damaged.onnx', detector.read_bytes()[:-1] + b'?')
        write('manifest.yaml', manifest)
        refused(run(detector=tmp_path), said)


def test_a_folder_that_takes_nothing_is_found_out_before_the_replay(run: Any, write: Any) -> None:
    file = write('file', '')
    for out in (file, file / 'report', Path('/proc/report'), Path('\0')):
        outcome = run(out=out)
        assert outcome.code == 1
        assert 'nothing can be written to' in outcome.sentence
        assert 'starting' not in outcome.said


def test_a_profile_that_cannot_be_saved_does_not_cost_the_report(run: Any, tmp_path: Path) -> None:
    outcome = run(save_profile=tmp_path)
    assert outcome.code == 1
    assert 'Is a directory' in outcome.sentence
    assert outcome.report['decisions'] == 10


UNDRAWN = """
from mmedge_ros.report import figures
figures.draw_figures = lambda *_: []
from mmedge_ros.commands.main import app
app()
"""


def small_files() -> None:
    """A disk that is full after the first 20 kB of a file."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))


def test_a_disk_that_fills_leaves_the_earlier_report_whole(
    run: Any, bag: Path, detector: Path
) -> None:
    outcome = reported(run())
    before = {file.name: file.read_bytes() for file in outcome.folder.iterdir()}
    arguments = ['replay', bag, '--out', outcome.folder, '--detector', detector]
    done = subprocess.run(
        [sys.executable, '-c', UNDRAWN, *map(str, arguments)],
        check=False,
        env={**os.environ, 'PYTHONPATH': str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
        preexec_fn=small_files,
    )
    assert (done.returncode, done.stdout) == (1, '')
    assert 'cannot write the report' in done.stderr
    assert 'File too large' in done.stderr
    assert 'Traceback' not in done.stderr
    assert {file.name: file.read_bytes() for file in outcome.folder.iterdir()} == before
