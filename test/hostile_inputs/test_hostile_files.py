"""Files beside the recording that are not what they should be, and folders that take nothing."""

from __future__ import annotations

import resource
from collections.abc import Callable
from pathlib import Path
from typing import Any

import bag_fixtures as flight
import pytest
from replays import Outcome, refused, replay, reported


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


@pytest.mark.parametrize(
    ('option', 'name', 'content', 'said'),
    [
        ('params', 'params.yaml', 'a: [1', 'not plain YAML'),
        (
            'params',
            'params.yaml',
            'fusion: {ros__parameters: {pipeline: {windos: {window: 1.0}}}}',
            "nearest valid one is 'windows.window'",
        ),
        (
            'params',
            'params.yaml',
            'camera_encoder: {ros__parameters: {detection: {labels: [zebra]}}}',
            "knows no label 'zebra'; the nearest of its 1 is 'person'",
        ),
        (
            'profile',
            'device.yaml',
            'probabilities: [0.05, 0.25, 0.5, 0.75, 0.95, 0.99]\nstages_ms: {}',
            "has no stage 'receipt.transport'; it has none",
        ),
        ('calibration', 'rig.yaml', '', 'holds nothing'),
        ('detector', 'text.onnx', 'hello', 'cannot be opened .*complete ONNX file'),
    ],
)
def test_a_file_that_is_none_is_refused(
    run: Any, write: Any, option: str, name: str, content: str, said: str
) -> None:
    refused(run(**{option: write(name, content)}), said)


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


def test_a_disk_that_fills_leaves_the_earlier_report_whole(run: Any) -> None:
    outcome = reported(run())
    before = {file.name: file.read_bytes() for file in outcome.folder.iterdir()}
    usual, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, most))
    try:
        full = run()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (usual, most))
    assert full.code == 1
    assert 'cannot write the report' in full.sentence
    assert 'File too large' in full.sentence
    assert {file.name: file.read_bytes() for file in outcome.folder.iterdir()} == before
