"""Which encoder the parameters of an encoder node ask for."""

from __future__ import annotations

from pathlib import Path

import pytest
from tiny_stages import write_grid_bundle

from mmedge_ros.data_types import CAMERA, RADAR
from mmedge_ros.encoding import EncodingError
from mmedge_ros.encoding.bundle import default_model
from mmedge_ros.ros.encoder_setup import UnitEncoderParameters, make_encoder
from mmedge_ros.ros.graph.description import GraphOptions, perception_graph


@pytest.fixture
def no_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(default_model, '_SHIPPED', ())
    monkeypatch.setenv('XDG_DATA_HOME', str(tmp_path / 'data'))
    for variable in ('MMEDGE_DATA', 'AMENT_PREFIX_PATH'):
        monkeypatch.delenv(variable, raising=False)


@pytest.mark.parametrize('modality', [CAMERA, RADAR])
def test_both_encoders_take_their_levels_from_the_same_bundle(
    tmp_path: Path, modality: str
) -> None:
    bundle = write_grid_bundle(tmp_path)
    encoder = make_encoder(UnitEncoderParameters(modality=modality, detector=str(bundle)))
    assert encoder.modality == modality
    assert encoder.levels == ('small',)


@pytest.mark.usefixtures('no_models')
def test_a_radar_alone_needs_no_model() -> None:
    assert make_encoder(UnitEncoderParameters(modality=RADAR)).levels == ()
    with pytest.raises(EncodingError, match='no detector'):
        make_encoder(UnitEncoderParameters(modality=CAMERA))


@pytest.mark.usefixtures('no_models')
def test_a_model_that_is_named_must_be_there_for_a_radar_too() -> None:
    with pytest.raises(EncodingError, match="no detector 'night_owl'"):
        make_encoder(UnitEncoderParameters(modality=RADAR, detector='night_owl'))


def test_the_graph_tells_both_encoders_of_the_model() -> None:
    nodes = perception_graph(GraphOptions(detector='/models/tiny', simulated=True))
    told = {n.name: n.parameters for n in nodes if n.name.endswith('_encoder')}
    assert set(told) == {'camera_encoder', 'radar_encoder'}
    for parameters in told.values():
        assert (parameters['detector'], parameters['simulated']) == ('/models/tiny', True)
