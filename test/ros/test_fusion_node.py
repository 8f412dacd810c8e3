"""The fusion node takes its networks from the bundle that the encoders use."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hand_made_units import Collected, features, unit
from rclpy.parameter import Parameter
from tiny_fusion_bundle import write_fusion_bundle
from tiny_stages import write_grid_bundle

from mmedge_ros.core.data_types import CAMERA, RADAR, UnitFeatures
from mmedge_ros.encoding import EncodingError
from mmedge_ros.encoding.feature_grid import CAMERA_GRID, RADAR_GRID
from mmedge_ros.ros.graph.options import GraphOptions
from mmedge_ros.ros.graph.perception_graph import perception_graph
from mmedge_ros.ros.messages import conversions
from mmedge_ros.ros.nodes.fusion import FusionNode

MakeNode = Callable[..., FusionNode]


@pytest.fixture(scope='module')
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_fusion_bundle(tmp_path_factory.mktemp('models'))


@pytest.fixture
def make_node(ros: None) -> Iterator[MakeNode]:
    made: list[FusionNode] = []

    def make(**parameters: Any) -> FusionNode:
        overrides = [
            Parameter(name.replace('__', '.'), value=value) for name, value in parameters.items()
        ]
        made.append(FusionNode(parameter_overrides=overrides))
        return made[-1]

    yield make
    for node in made:
        node.stop()
        node.destroy_node()


def encoded(modality: str, sequence: int, grid: np.ndarray) -> UnitFeatures:
    size = (640, 480) if modality == CAMERA else (0, 0)
    return features(unit(20 + 10 * sequence, modality, sequence), grid=grid, image_size=size)


def test_a_bundle_with_fusion_networks_is_used(make_node: MakeNode, bundle: Path) -> None:
    assert make_node(detector=str(bundle))._figures()['strategy'] == 'feature'
    asked = make_node(detector=str(bundle), pipeline__strategy='decision')
    assert asked._figures()['strategy'] == 'decision'
    radar_alone = make_node(detector=str(bundle), pipeline__modalities=[RADAR])
    assert radar_alone._figures()['strategy'] == 'decision'


def test_a_broken_bundle_is_an_error_at_the_start(make_node: MakeNode, tmp_path: Path) -> None:
    with pytest.raises(EncodingError, match=r'radar\.onnx'):
        make_node(detector=str(write_grid_bundle(tmp_path)))


def test_grids_that_cannot_be_used_are_counted_and_the_rest_is_fused(
    make_node: MakeNode, bundle: Path
) -> None:
    node = make_node(detector=str(bundle))
    good = [encoded(CAMERA, 0, np.zeros(CAMERA_GRID, np.float16))]
    good += [encoded(RADAR, 1, np.zeros(RADAR_GRID, np.float16))]
    bad = [
        encoded(CAMERA, 2, np.full(CAMERA_GRID, np.nan, np.float16)),
        encoded(CAMERA, 3, np.zeros((64, 40, 30), np.float16)),
        encoded(RADAR, 4, np.zeros((0, 0, 0), np.float16)),
    ]
    for each in (*good, *bad):
        message = conversions.to_features(each)
        back = conversions.from_features(message)
        node._worker.submit(
            lambda pipeline, _, unit=back: pipeline.add_features(unit, unit.available_ns)
        )
    done = Collected()
    node._worker.submit(lambda pipeline, _: done(pipeline.feature_fusion.refused.total()))
    assert done.wait_for(1) == [3]
    assert node._figures()['not_fused'] == 3


def test_all_nodes_of_a_graph_are_given_one_model() -> None:
    nodes = perception_graph(GraphOptions(detector='/models/flight', simulated=True))
    told = [
        (node.parameters['detector'], node.parameters['simulated'])
        for node in nodes
        if node.executable in ('fusion', 'unit_encoder')
    ]
    assert told == [('/models/flight', True)] * 3
