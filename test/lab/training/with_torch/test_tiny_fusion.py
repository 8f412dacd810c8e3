"""From detectors and flights to a bundle that flies, as small as it gets."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from painted_crossing import write_crossings

from mmedge_lab.training import Report, TrainingError
from mmedge_lab.training.checkpoint import save_checkpoint
from mmedge_lab.training.detector_training import SCALES, DetectorSettings
from mmedge_lab.training.epoch_training import prepare_torch
from mmedge_lab.training.feature_cache import read_flight
from mmedge_lab.training.fusion_session import cached_folders, train_fusion
from mmedge_lab.training.fusion_settings import FusionSettings
from mmedge_lab.training.picture_sources import CLASSES
from mmedge_ros.core.data_types import CAMERA
from mmedge_ros.encoding.bundle.model_bundle import load_bundle
from mmedge_ros.encoding.ultralytics_network import new_network

TINY = FusionSettings(
    epochs=1,
    batch=2,
    threads=1,
    thinning=1,
    projection_pictures=5,
    radar_epochs=1,
    radar_step=2,
    embedding_steps=2,
    judged_windows=2,
)


def silent(share: float, words: str) -> None: ...


@pytest.fixture(scope='module')
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with detectors that have learned nothing, and flights."""
    place = tmp_path_factory.mktemp('fusion')
    prepare_torch(place, 1)
    torch.manual_seed(0)
    for width, scale in SCALES.items():
        network = new_network(CLASSES, scale)
        settings = DetectorSettings(width=width).plain()
        (place / width).mkdir()
        save_checkpoint(
            place / width / f'{width}.pt',
            {'settings': settings, 'average': network.state_dict(), 'epoch': 1},
        )
    write_crossings(place / 'set', 1, seconds=0.5)
    write_crossings(place / 'judged', 1, seed=3, seconds=0.4)
    return place


def train(
    place: Path,
    out: str,
    flights: str = 'set',
    settings: FusionSettings = TINY,
    report: Report = silent,
) -> dict[str, Any]:
    return train_fusion(
        place / flights,
        place / 'narrow',
        place / 'wide',
        place / out,
        report,
        validation=place / 'judged',
        settings=settings,
        features=place / 'features',
        jobs=1,
    )


@pytest.fixture(scope='module')
def metrics(place: Path) -> dict[str, Any]:
    progress: list[float] = []
    figures = train(place, 'out', report=lambda share, words: progress.append(share))
    assert progress == sorted(progress)
    return figures


def test_a_training_leaves_a_whole_bundle_and_the_features(
    place: Path, metrics: dict[str, Any]
) -> None:
    out = place / 'out'
    assert not (place / '.out.training').exists()
    bundle = load_bundle(out)
    assert bundle.levels == bundle.radar_levels == ('small', 'medium', 'large')
    assert bundle.has_fusion
    assert bundle.domain == 'simulated'
    assert 0.0 < bundle.fusion_threshold < 1.0
    assert bundle.content['metrics'] == metrics
    assert bundle.content['training']['data']['seeds'] == [0]
    assert bundle.content['licence']
    for entry in bundle.files():
        entry.verified()
    named = {entry.path.name for entry in bundle.files()} | {'manifest.yaml'}
    assert {path.name for path in out.iterdir()} == named
    assert sum(path.stat().st_size for path in out.iterdir()) < 25_000_000


@pytest.fixture
def no_encoding(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError('encoded again')

    for name in ('fusion_arrays', '_camera', '_radar'):
        monkeypatch.setattr(f'mmedge_lab.training.fusion_session.{name}', refuse)


@pytest.mark.usefixtures('metrics', 'no_encoding')
def test_another_training_shares_the_features_and_both_are_judged(place: Path) -> None:
    other = train(place, 'rival', settings=replace(TINY, seed=1, without=('shift',)))
    bundle = load_bundle(place / 'rival')
    assert bundle.has_fusion
    assert bundle.content['metrics'] == other
    (judged,) = cached_folders(place / 'features', 'validation')
    assert read_flight(judged).levels(CAMERA) == ('large', 'small')


@pytest.mark.usefixtures('metrics')
def test_features_of_other_detectors_are_refused(place: Path) -> None:
    write_crossings(place / 'others', 1, seed=5, seconds=0.2)
    with pytest.raises(TrainingError, match='other detectors or flights'):
        train(place, 'no', 'others')
    assert not (place / 'no').exists()
