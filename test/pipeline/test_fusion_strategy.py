"""The bundle decides how the sensors are fused, unless a parameter does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml
from hand_made_gates import gate
from hand_made_pictures import usual_pictures

from mmedge_lab.training.certificate import Certificate, FlightLoss
from mmedge_lab.training.gate_training import write_bundle_gate
from mmedge_ros.core.data_types import CAMERA, RADAR
from mmedge_ros.encoding import EncodingError
from mmedge_ros.encoding.bundle.model_bundle import FUSION_PARTS
from mmedge_ros.encoding.picture_drift import PICTURES_FILE, usual_pictures_text
from mmedge_ros.pipeline.fusion_strategy import (
    fusion_strategy,
    model_of_encoders,
    open_pipeline,
)
from mmedge_ros.pipeline.pipeline_parameters import PipelineParameters
from mmedge_ros.pipeline.window_assembler import WindowParameters
from mmedge_ros.tracking.noise_scale import NOISE_FILE, USUAL_SCALE
from mmedge_ros.windows.early_decision import GatedDecision, SceneChangeParameters
from mmedge_ros.windows.skip_control import SkipParameters

ENTRY = {'weights': 'network.onnx', 'sha256': '0' * 64}
CAMERA_PART = {'default': 'small', 'levels': {'small': ENTRY}}


def bundle(folder: Path, **more: object) -> Path:
    folder.mkdir()
    manifest = {'name': 'hand_made', 'camera': CAMERA_PART, **more}
    (folder / 'manifest.yaml').write_text(yaml.safe_dump(manifest))
    return folder


def fusing(folder: Path) -> Path:
    parts = {'format': 2, **dict.fromkeys(FUSION_PARTS, ENTRY)}
    return bundle(folder, grid={'format': 1}, fusion={**parts, 'threshold': 0.2})


def parameters(strategy: str = 'auto', **more: object) -> PipelineParameters:
    return PipelineParameters(strategy=strategy, **more)


def test_a_bundle_with_fusion_networks_fuses_features(tmp_path: Path) -> None:
    model = fusing(tmp_path / 'm')
    assert fusion_strategy(model, parameters()) == 'feature'
    assert fusion_strategy(model, parameters('feature')) == 'feature'
    assert fusion_strategy(model, parameters('decision')) == 'decision'


def test_without_such_networks_decisions_are_fused(tmp_path: Path) -> None:
    for model in (bundle(tmp_path / 'm'), tmp_path / 'yolox.onnx', None):
        assert fusion_strategy(model, parameters()) == 'decision'
        assert open_pipeline(model, parameters()).feature_fusion is None


@pytest.mark.parametrize('name', ['bundle', 'file', 'nothing'])
def test_feature_fusion_without_its_networks_is_an_error(tmp_path: Path, name: str) -> None:
    model = {'bundle': bundle(tmp_path / 'm'), 'file': tmp_path / 'x.onnx', 'nothing': None}[name]
    with pytest.raises(EncodingError, match='strategy is feature'):
        open_pipeline(model, parameters('feature'))
    with pytest.raises(EncodingError, match='no camera'):
        open_pipeline(model, parameters('feature', modalities=(RADAR,)))


def test_a_bundle_whose_fusion_networks_are_broken_is_an_error_at_the_start(
    tmp_path: Path,
) -> None:
    with pytest.raises(EncodingError, match=r'network\.onnx'):
        open_pipeline(fusing(tmp_path / 'missing'), parameters())
    model = fusing(tmp_path / 'changed')
    (model / 'network.onnx').write_bytes(b'no network')
    with pytest.raises(EncodingError, match='SHA-256'):
        open_pipeline(model, parameters())
    assert open_pipeline(model, parameters('decision')).feature_fusion is None


def with_gate(folder: Path, strategy: str = 'decision') -> Path:
    """Enter a gate that is certified to lose a point from a confidence of 0.9 on."""
    loss = FlightLoss(10_000, 20.0, 4_000, 3, 500, 50.0)
    certificate = Certificate(0.01, 0.9, 0.9, 30, loss)
    write_bundle_gate(folder, gate(), strategy, [CAMERA], [certificate])
    return folder


def test_the_gate_of_a_bundle_is_evaluated_with_what_it_was_certified_for(tmp_path: Path) -> None:
    model = with_gate(bundle(tmp_path / 'm'))
    changes = SceneChangeParameters(hits=7)
    windows = WindowParameters(window=0.4, stride=0.2)
    opened = open_pipeline(model, parameters(windows=windows, scene_change=changes))
    assert isinstance(opened.early_decision, GatedDecision)
    assert opened.early_decision.control.threshold == pytest.approx(0.9)
    assert opened.early_decision.gating.changes == changes


@pytest.mark.parametrize(
    ('given', 'reason'),
    [
        ({'skipping': SkipParameters(delta=0.0)}, ''),
        ({'modalities': (RADAR,)}, ''),
        ({'skipping': SkipParameters(delta=0.005)}, r'no threshold.*0\.005'),
    ],
)
def test_a_gate_that_keeps_no_such_promise_is_not_evaluated(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, given: dict, reason: str
) -> None:
    opened = open_pipeline(with_gate(bundle(tmp_path / 'm')), parameters(**given))
    assert not isinstance(opened.early_decision, GatedDecision)
    assert bool(caplog.text) == bool(reason)
    assert re.search(reason, caplog.text)


def test_a_gate_of_the_other_fusion_is_not_evaluated(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    opened = open_pipeline(with_gate(bundle(tmp_path / 'm'), 'feature'), parameters())
    assert not isinstance(opened.early_decision, GatedDecision)
    assert 'trained with feature fusion, and this is decision fusion' in caplog.text


def test_the_noise_scale_is_the_bundles_where_it_has_one(tmp_path: Path) -> None:
    model = with_gate(bundle(tmp_path / 'm'))
    gated, ungated = parameters(), parameters(skipping=SkipParameters(delta=0.0))
    for chosen in (gated, ungated):
        assert open_pipeline(model, chosen).noise_scale == USUAL_SCALE
        assert open_pipeline(tmp_path / 'yolox.onnx', chosen).noise_scale == USUAL_SCALE
    (model / NOISE_FILE).write_text('scale: 3.5')
    for chosen in (gated, ungated):
        assert open_pipeline(model, chosen).noise_scale == 3.5
    (model / NOISE_FILE).write_text('scale: -1')
    with pytest.raises(EncodingError, match=r'0\.01 to 100'):
        open_pipeline(model, ungated)


def test_usual_pictures_are_the_bundles_where_it_knows_any(tmp_path: Path) -> None:
    model = with_gate(bundle(tmp_path / 'm'))
    gated, ungated = parameters(), parameters(skipping=SkipParameters(delta=0.0))
    for chosen in (gated, ungated):
        assert open_pipeline(model, chosen).drift is None
        assert open_pipeline(tmp_path / 'yolox.onnx', chosen).drift is None
    (model / PICTURES_FILE).write_text(usual_pictures_text(usual_pictures(), []))
    for chosen in (gated, ungated):
        drift = open_pipeline(model, chosen).drift
        assert drift is not None
        assert len(drift.usual.seconds) == 2000
    (model / PICTURES_FILE).write_text('pictures: none')
    with pytest.raises(EncodingError, match='mmedge lab train fit pictures'):
        open_pipeline(model, ungated)


def test_fusion_takes_the_model_that_the_encoder_takes(tmp_path: Path, monkeypatch) -> None:
    model = fusing(tmp_path / 'm')
    assert model_of_encoders(str(model), False, parameters()) == model
    # Decision fusion needs its gate and its noise scale.
    assert model_of_encoders(str(model), False, parameters('decision')) == model
    assert model_of_encoders(str(model), False, parameters(modalities=(RADAR,))) is None
    with pytest.raises(EncodingError, match='no detector'):
        model_of_encoders('neither_file_nor_bundle', False, parameters(modalities=(CAMERA,)))


def test_a_model_that_was_not_named_may_be_missing(monkeypatch) -> None:
    def none_at_hand(named: str, simulated: bool) -> Path:
        raise EncodingError('no detector')

    monkeypatch.setattr('mmedge_ros.pipeline.fusion_strategy.default_detector', none_at_hand)
    assert model_of_encoders('', True, parameters()) is None
    with pytest.raises(EncodingError):
        model_of_encoders('named', True, parameters())
