"""Whether a detector suits the pictures of a recording, and what the report says if not."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from bag_fixtures import write_bag
from painted_flight import write_painted_flight
from tiny_detector import write_tiny_detector

from mmedge_ros.encoding.bundle import default_model
from mmedge_ros.encoding.bundle.weights import sha256_of
from mmedge_ros.replay.offline_session import (
    OfflineOptions,
    detector_problems,
    replay_detector,
    replay_offline,
)
from mmedge_ros.replay.recording import Recording


@pytest.fixture(autouse=True)
def models(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The folder of shipped bundles on a machine that has no others."""
    monkeypatch.setattr(default_model, '_SHIPPED', (tmp_path / 'models',))
    monkeypatch.setenv('XDG_DATA_HOME', str(tmp_path / 'home'))
    for name in ('MMEDGE_DATA', 'AMENT_PREFIX_PATH'):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / 'models'


def write_bundle(folder: Path, domain: str) -> Path:
    folder.mkdir(parents=True)
    weights = write_tiny_detector(folder / 'small.onnx')
    (folder / 'manifest.yaml').write_text(
        f'name: {folder.name}\ndomain: {domain}\ncamera: {{levels: {{small: {{weights: '
        f'small.onnx, sha256: "{sha256_of(weights)}"}}}}}}\n'
    )
    return folder


@pytest.fixture
def shipped(models: Path) -> Path:
    return write_bundle(models / 'walkers', 'simulated')


def test_a_real_recording_with_the_simulated_detector_is_warned_of_first(
    shipped: Path, tmp_path: Path
) -> None:
    record = replay_offline(OfflineOptions(str(write_bag(tmp_path / 'real'))))
    assert record.software['bundle'] == 'walkers'
    assert "'walkers' has only ever seen simulated people" in record.problems[0]


def test_each_kind_of_recording_gets_the_detector_made_for_it(
    shipped: Path, tmp_path: Path
) -> None:
    real = write_bundle(tmp_path / 'home/mmedge_ros/models/yolox_nano', 'real')
    with Recording(write_bag(tmp_path / 'real')) as recording:
        assert not recording.is_simulated
        assert replay_detector(recording, '') == real
        assert replay_detector(recording, 'walkers') == shipped
        assert detector_problems(real, recording) == []
    with Recording(write_painted_flight(tmp_path / 'flight', pictures=2)) as recording:
        assert recording.is_simulated
        assert replay_detector(recording, '') == shipped
        assert detector_problems(real, recording) == []


def test_a_damaged_bundle_is_told_and_not_replaced_by_another(
    shipped: Path, tmp_path: Path
) -> None:
    broken = tmp_path / 'home/mmedge_ros/models/broken'
    shutil.copytree(shipped, broken)
    (broken / 'manifest.yaml').write_text('name: [')
    with (
        Recording(write_bag(tmp_path / 'real')) as opened,
        pytest.raises(ValueError, match=r'broken/manifest\.yaml is not valid YAML'),
    ):
        detector_problems(replay_detector(opened, ''), opened)
