"""Which encoder the parameters of an encoder node ask for."""

from __future__ import annotations

from pathlib import Path

import pytest
from sensor_msgs.msg import PointCloud2
from tiny_stages import write_grid_bundle

from mmedge_ros.core.data_types import CAMERA, RADAR
from mmedge_ros.encoding import EncodingError, encoder_registry
from mmedge_ros.encoding.bundle import default_model
from mmedge_ros.encoding.encoder_registry import EncoderKind, register_encoder
from mmedge_ros.encoding.unit_encoder import RadarEncoder
from mmedge_ros.ros.messages.sensor_input import input_topic
from mmedge_ros.ros.nodes.unit_encoder import UnitEncoderParameters, make_encoder


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
def test_a_radar_alone_needs_no_model_but_one_that_is_named_must_be_there() -> None:
    assert make_encoder(UnitEncoderParameters(modality=RADAR)).levels == ()
    for named, words in (
        ({'modality': CAMERA}, 'no detector'),
        ({'modality': RADAR, 'detector': 'night_owl'}, "no detector 'night_owl'"),
        ({'modality': 'sonar'}, "modality 'sonar'; there are camera, radar"),
    ):
        with pytest.raises(EncodingError, match=words):
            make_encoder(UnitEncoderParameters(**named))


def test_an_added_modality_has_its_own_encoder_and_topic(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoder_registry, '_KINDS', dict(encoder_registry._KINDS))
    lidar = EncoderKind(
        'lidar', 'sensor_msgs/msg/PointCloud2', 'lidar/points', lambda s: RadarEncoder(s.limits)
    )
    register_encoder(lidar)
    assert isinstance(make_encoder(UnitEncoderParameters(modality='lidar')), RadarEncoder)
    assert input_topic('lidar', 'raw') == ('lidar/points', PointCloud2)
