"""Trained networks as stages with feature grids."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
import torch

from mmedge_lab.training.grid_projection import (
    FeatureReader,
    GridProjection,
    LevelNetwork,
    fit_projections,
)
from mmedge_lab.training.network_export import export_camera_level
from mmedge_lab.training.networks.camera_level import feature_channels
from mmedge_ros.encoding.detection_heads import UltralyticsHead
from mmedge_ros.encoding.feature_grid import (
    CANVAS,
    GRID_CLASSES,
    STRIDES,
    cell_middles,
    split_semantics,
)
from mmedge_ros.encoding.letterbox import Canvas, Letterbox
from mmedge_ros.encoding.tapped_network import TappedNetwork
from mmedge_ros.encoding.ultralytics_network import import_libraries, new_network

SIZE = (160, 128)
NARROW = (0.33, 0.125, 512)


@pytest.fixture(scope='module', autouse=True)
def one_thread(tmp_path_factory: pytest.TempPathFactory) -> None:
    import_libraries(tmp_path_factory.mktemp('settings'))
    torch.set_num_threads(1)


def lively(names: Sequence[str], seed: int = 0) -> Any:
    """Return a network that was never trained, but whose cells do not all say the same."""
    torch.manual_seed(seed)
    network = new_network(names, NARROW).eval()
    for module in network.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.running_mean.normal_(0.0, 0.1)
            module.running_var.uniform_(0.5, 1.5)
    for branch in network.model[-1].cv3:
        branch[-1].bias.data.fill_(-1.0)
        branch[-1].weight.data.mul_(20.0)
    return network


@pytest.fixture(scope='module')
def network() -> Any:
    return lively(GRID_CLASSES)


def pictures(count: int, seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    small = rng.integers(0, 256, (count, 12, 16, 3), np.uint8)
    return [cv2.resize(p, (640, 480), interpolation=cv2.INTER_CUBIC) for p in small]


@pytest.fixture(scope='module')
def projection(network: Any) -> GridProjection:
    rng = np.random.default_rng(0)
    weight = rng.normal(0.0, 0.1, (16, feature_channels(network))).astype(np.float32)
    return GridProjection(weight, rng.normal(0.0, 1.0, 16).astype(np.float32))


@pytest.fixture(scope='module')
def stages(
    network: Any, projection: GridProjection, tmp_path_factory: pytest.TempPathFactory
) -> list[Path]:
    before = {name: value.clone() for name, value in network.state_dict().items()}
    folder = tmp_path_factory.mktemp('level')
    paths, check = export_camera_level(network, projection, SIZE, folder, 'small', pictures(2))
    assert check.pictures == 2
    assert max(check.box_px, check.score, check.feature) < 0.1
    for name, value in network.state_dict().items():  # neither fused nor changed
        assert torch.equal(value, before[name])
    return paths


def blob_of(picture: np.ndarray, size: tuple[int, int] = SIZE) -> np.ndarray:
    canvas = Canvas.in_input(CANVAS, size)
    letterbox = Letterbox(size, UltralyticsHead.style, np.float32, canvas)
    letterbox.fill(picture)
    return letterbox.blob


def test_the_semantics_of_a_grid_say_what_the_detections_say(stages: list[Path]) -> None:
    outputs = TappedNetwork(stages).run(blob_of(pictures(1, seed=6)[0]))
    detections = outputs['detections'][0].T
    canvas = Canvas.in_input(CANVAS, SIZE)
    result = []
    for stride, scale in zip(STRIDES, split_semantics(outputs['grid'][0]), strict=True):
        known = scale[0] > -10.0
        middles = cell_middles(stride)[known]
        sides = scale[4:, known].T * stride
        corners = np.concatenate((middles - sides[:, :2], middles + sides[:, 2:]), axis=1)
        on_input = (corners - (320, 240, 320, 240)) * canvas.scale + canvas.middle * 2
        scores = 1.0 / (1.0 + np.exp(-scale[:4, known].T))
        result.append(np.concatenate((on_input, scores), axis=1))
    halves = detections[:, 2:4] / 2
    wanted = np.concatenate(
        (detections[:, :2] - halves, detections[:, :2] + halves, detections[:, 4:]), axis=1
    )
    rows = np.concatenate(result)
    assert len(rows) == len(wanted) == 20 * 16 + 10 * 8 + 5 * 4
    # Cells keep their order within a stride, row by row.
    np.testing.assert_allclose(rows, wanted, atol=0.05)


def test_small_levels_learn_to_tell_what_the_large_one_tells(network: Any) -> None:
    levels = {'small': LevelNetwork(network, SIZE), 'large': LevelNetwork(network, (192, 160))}
    fits = fit_projections(levels, 'large', pictures(10))
    again = fit_projections(levels, 'large', pictures(10))
    large, small = fits['large'], fits['small']
    assert large.r2 == pytest.approx(1.0)
    assert 0.2 < small.r2 < 1.0
    for level, fit in fits.items():
        np.testing.assert_array_equal(fit.projection.weight, again[level].projection.weight)
    reader = FeatureReader(network, (192, 160))
    fitted = [p for n, p in enumerate(pictures(10)) if n % 5 != 4]
    values = np.concatenate([reader.features(p) for p in fitted], axis=1)
    values = large.projection.weight @ values + large.projection.bias[:, None]
    np.testing.assert_allclose(values.mean(axis=1), 0.0, atol=0.02)
    np.testing.assert_allclose(values.var(axis=1), 1.0, rtol=0.05)
