"""From detectors and flights to a bundle that flies, as small as it gets."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from painted_crossing import write_crossings

from mmedge_lab.training import TrainingError
from mmedge_lab.training.checkpoint import save_checkpoint
from mmedge_lab.training.detector_training import SCALES, DetectorSettings
from mmedge_lab.training.epoch_training import prepare_torch
from mmedge_lab.training.fusion_session import FusionRequest, train_fusion
from mmedge_lab.training.fusion_settings import FusionSettings
from mmedge_lab.training.picture_set import CLASSES
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
    return tmp_path_factory.mktemp('fusion')


@pytest.fixture(scope='module')
def request_of(place: Path) -> FusionRequest:
    """A training with detectors that have learned nothing."""
    prepare_torch(place, 1)
    torch.manual_seed(0)
    for width, scale in SCALES.items():
        network = new_network(CLASSES, scale)
        settings = DetectorSettings(width=width).plain()
        (place / width).mkdir()
        save_checkpoint(
            place / width / 'checkpoint.pt',
            {'settings': settings, 'average': network.state_dict(), 'epoch': 1},
        )
    flights = write_crossings(place / 'set', 1, seconds=0.5)
    return FusionRequest(
        flights,
        place / 'narrow',
        place / 'wide',
        place / 'out',
        settings=TINY,
        features=place / 'features',
        processes=1,
    )


@pytest.fixture(scope='module')
def trained(request_of: FusionRequest) -> tuple[FusionRequest, dict[str, object], list[float]]:
    progress: list[float] = []
    request = replace(request_of, judged={'validation': request_of.flights})
    metrics = train_fusion(request, lambda share, words: progress.append(share))
    return request, metrics, progress


def test_a_training_leaves_a_whole_bundle_and_the_features(
    trained: tuple[FusionRequest, dict[str, object], list[float]],
) -> None:
    request, metrics, progress = trained
    assert progress == sorted(progress)
    assert not request.work.exists()
    bundle = load_bundle(request.out)
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
    assert {path.name for path in request.out.iterdir()} == named
    assert sum(path.stat().st_size for path in request.out.iterdir()) < 25_000_000


@pytest.fixture
def no_encoding(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError('encoded again')

    monkeypatch.setattr('mmedge_lab.training.feature_cache._write_level', refuse)
    monkeypatch.setattr('mmedge_lab.training.fusion_features._camera', refuse)
    monkeypatch.setattr('mmedge_lab.training.fusion_features._radar', refuse)


def test_another_training_shares_the_features(
    trained: tuple[FusionRequest, dict[str, object], list[float]], no_encoding: None
) -> None:
    request, _, _ = trained
    other = replace(
        request,
        out=request.out.with_name('rival'),
        settings=replace(TINY, seed=1, without=('shift',)),
    )
    metrics = train_fusion(other, silent)
    bundle = load_bundle(other.out)
    assert bundle.has_fusion
    assert bundle.content['metrics'] == metrics


def test_features_of_other_detectors_are_refused(
    trained: tuple[FusionRequest, dict[str, object], list[float]], place: Path
) -> None:
    request, _, _ = trained
    flights = write_crossings(place / 'others', 1, seed=5, seconds=0.2)
    with pytest.raises(TrainingError, match='other detectors or flights'):
        train_fusion(replace(request, flights=flights, out=place / 'no'), silent)
    assert not (place / 'no').exists()
