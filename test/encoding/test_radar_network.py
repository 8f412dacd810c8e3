"""The networks of radar levels, and the encoder that runs them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from radar_units import radar_unit
from tiny_stages import write_embedding, write_grid_bundle, write_radar_network

from mmedge_ros.core.data_types import RADAR, ModalityConfiguration
from mmedge_ros.encoding import EncodingError
from mmedge_ros.encoding.radar_network import RadarNetwork, open_radar_network
from mmedge_ros.encoding.unit_encoder import RadarEncoder
from mmedge_ros.sensing.radar.filter import RadarLimits

RETURNS = np.array([[10.0, -0.1, -0.1, 1.0, 20.0]], np.float32)


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    return write_grid_bundle(tmp_path)


def encoder_of(bundle: Path) -> RadarEncoder:
    return RadarEncoder.from_path(bundle, RadarLimits())


def test_a_scan_becomes_a_grid_and_an_embedding(bundle: Path) -> None:
    grid, embedding = open_radar_network(bundle).encode(RETURNS)
    assert (grid.shape, grid.dtype) == ((16, 30, 40), np.float16)
    beside = grid[0, 0, 0]
    assert grid[3, 15, 20] - beside == pytest.approx(np.log(2.0), abs=1e-2)
    assert (embedding.shape, embedding.dtype) == ((32,), np.float32)
    assert embedding[0] == pytest.approx(grid.astype(float).mean(), abs=1e-3)


def test_an_encoder_passes_returns_on_and_adds_what_the_level_makes_of_them(bundle: Path) -> None:
    encoder = encoder_of(bundle)
    encoder.warm_up()
    assert encoder.levels == ('small',)
    points = [(10.0, -0.1, -0.1, 1.0), (3.0, 0.0, 0.0, 1.7e38)]
    features = encoder.encode(radar_unit(points), ModalityConfiguration(RADAR, 10.0), 4)
    assert features.level == 'small'
    assert features.returns.shape == (1, 5)
    assert features.grid.shape == (16, 30, 40)
    assert features.grid[0].argmax() == 15 * 40 + 20
    assert features.embedding.shape == (32,)
    assert encoder.problems == {'velocity': 1}


def test_a_bundle_without_radar_levels_changes_nothing_for_the_radar(tmp_path: Path) -> None:
    bundle = write_grid_bundle(tmp_path, radar=None, fusion=None)
    for path in (bundle, bundle / 'radar.onnx'):
        encoder = encoder_of(path)
        encoder.warm_up()
        configuration = ModalityConfiguration(RADAR, level='any')
        features = encoder.encode(radar_unit([(5.0, 0.0, 0.0, 1.0)]), configuration, 0)
        assert (features.level, len(features.returns), features.grid.size) == ('any', 1, 0)


def test_a_network_on_something_else_is_refused(tmp_path: Path) -> None:
    path = write_embedding(tmp_path / 'other.onnx', 16)
    with pytest.raises(EncodingError, match='takes grid and puts out embedding; a radar level'):
        RadarNetwork([path])


def test_a_grid_of_another_shape_is_refused(tmp_path: Path) -> None:
    path = write_radar_network(tmp_path / 'wide.onnx', channels=17)
    with pytest.raises(
        EncodingError, match=r'a grid of \[17, 30, 40\]; it must be \[16, 30, 40\]'
    ):
        RadarNetwork([path])


def test_a_broken_network_fails_the_unit_and_not_the_encoder(bundle: Path) -> None:
    (bundle / 'radar.onnx').write_bytes(b'broken')
    encoder = encoder_of(bundle)
    for _ in range(2):
        with pytest.raises(EncodingError, match=r'radar\.onnx has 6 bytes'):
            encoder.encode(radar_unit([]), ModalityConfiguration(RADAR), 0)
