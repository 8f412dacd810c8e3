"""Models and device profiles before a flight."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from tiny_bundle import write_tiny_bundle

from mmedge_ros.core.device_profile import DeviceProfile, write_profile
from mmedge_ros.preflight.finding import Finding, State
from mmedge_ros.preflight.model_checks import check_model, check_profile

MACHINE = {'model': 'Orin', 'processor': 'aarch64', 'cores': 6, 'memory_gb': 8}
STAGES = ('camera.small.encode', 'camera.large.encode', 'radar.encode')
DAY = 86_400.0


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    return write_tiny_bundle(tmp_path / 'tiny')


@pytest.fixture
def profile(tmp_path: Path, bundle: Path) -> Path:
    return written(tmp_path, MACHINE, *STAGES)


def written(folder: Path, machine: Any, *stages: str) -> Path:
    """Write a profile of these stages, newer than any bundle."""
    path = folder / 'profile.yaml'
    times = dict.fromkeys((*stages, 'features.transport', 'fusion'), (0.01,) * 6)
    write_profile(DeviceProfile('a flight', times, {'machine': machine}), path)
    os.utime(path, (2e9, 2e9))
    return path


def judged(profile: Path, bundle: Path, days: float = 1.0) -> Finding:
    (finding,) = check_profile(profile, bundle, MACHINE, 2e9 + days * DAY)
    return finding


def test_a_bundle_whose_files_are_as_described_is_good_and_its_domain_noted(bundle: Path) -> None:
    findings, path = check_model(str(bundle))
    assert path == bundle
    assert [f.state for f in findings] == [State.OK, State.NOTE]
    assert '2 files' in findings[0].words
    assert 'mmedge model fetch' in findings[1].remedy


def test_a_file_that_is_another_one_is_wrong(bundle: Path) -> None:
    with (bundle / 'small.onnx').open('ab') as file:
        file.write(b'\0')
    findings, path = check_model(str(bundle))
    assert path is None
    assert [f.state for f in findings] == [State.WRONG]
    assert 'small.onnx' in findings[0].words


def test_a_model_that_is_not_there_is_wrong_with_a_remedy() -> None:
    findings, _ = check_model('/no/such/model.onnx')
    assert findings[0].state is State.WRONG
    assert 'do not exist' in findings[0].words


def test_a_profile_of_this_machine_and_model_is_good(profile: Path, bundle: Path) -> None:
    assert judged(profile, bundle).state is State.OK
    assert '1 days old' in judged(profile, bundle).words


def test_without_a_profile_the_command_that_makes_one_is_named(tmp_path: Path) -> None:
    (finding,) = check_profile(tmp_path / 'p.yaml', None, MACHINE, 0.0)
    assert finding.state is State.NOTE
    assert 'mmedge profile --out' in finding.remedy


def test_profiles_of_other_machines_and_levels_are_noted(tmp_path: Path, bundle: Path) -> None:
    other = written(tmp_path, {**MACHINE, 'model': 'Xavier'}, *STAGES)
    assert 'was measured on Xavier' in judged(other, bundle).words
    assert 'does not name' in judged(written(tmp_path, ['junk'], *STAGES), bundle).words
    fewer = written(tmp_path, MACHINE, *STAGES[1:])
    assert "no stage 'camera.small.encode'" in judged(fewer, bundle).words


def test_an_old_profile_is_noted(profile: Path, bundle: Path) -> None:
    assert judged(profile, bundle, days=200.0).state is State.NOTE
    os.utime(bundle / 'manifest.yaml', (2.1e9, 2.1e9))
    assert 'older than' in judged(profile, bundle).words


@pytest.mark.parametrize('junk', [b'', b'\xff\xfe\0', b'stages_ms: [1]', b'a: &x [*x]'])
def test_a_file_that_is_no_profile_is_noted(profile: Path, bundle: Path, junk: bytes) -> None:
    profile.write_bytes(junk)
    assert judged(profile, bundle).state is State.NOTE
    profile.unlink()
    profile.mkdir()
    assert judged(profile, bundle).state is State.NOTE
