"""Networks in stages, looked at, left and taken up again."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import helper
from tiny_stages import write_camera_stages, write_graph

from mmedge_ros.encoding import EncodingError
from mmedge_ros.encoding.tapped_network import TappedNetwork, TapState

BLOB = np.random.default_rng(0).random((1, 3, 480, 640), np.float32)


@pytest.fixture
def network(tmp_path: Path) -> TappedNetwork:
    return TappedNetwork(write_camera_stages(tmp_path))


def test_going_through_block_by_block_is_one_run(network: TappedNetwork) -> None:
    state = network.start(BLOB)
    while state.block < network.blocks:
        state = network.advance(state)
    outputs, whole = network.finish(state), network.run(BLOB)
    assert set(outputs) == {'grid', 'detections'}
    for name, value in whole.items():
        np.testing.assert_allclose(outputs[name], value, atol=1e-4)
    colours = BLOB.reshape(3, 30, 16, 40, 16).mean(axis=(2, 4)).sum(axis=0)
    np.testing.assert_allclose(whole['grid'][0, 5], 3 * colours, atol=1e-4)


def test_a_run_can_be_finished_from_any_block_more_than_once(network: TappedNetwork) -> None:
    whole = network.run(BLOB)['grid']
    first = network.start(BLOB)
    second = network.advance(first)
    other = network.finish(network.start(np.zeros_like(BLOB)))['grid']
    assert not other.any()
    for state in (second, first, second):
        np.testing.assert_allclose(network.finish(state)['grid'], whole, atol=1e-4)


def test_a_state_shows_its_activation_and_keeps_only_what_is_needed(
    network: TappedNetwork,
) -> None:
    state = network.start(BLOB)
    assert (state.block, state.activation.shape) == (1, (1, 3, 30, 40))
    np.testing.assert_allclose(state.pooled, BLOB.mean(axis=(0, 2, 3)), atol=1e-5)
    assert set(state.tensors) == {'p1'}
    state = network.advance(state)
    assert (state.block, set(state.tensors)) == (2, {'p1', 'p2'})
    assert state.pooled.dtype == np.float32


@pytest.mark.parametrize('block', [0, 2, 4, -1])
def test_a_state_of_another_network_is_refused(network: TappedNetwork, block: int) -> None:
    foreign = TapState(block, np.zeros((1, 1, 1, 1)), {'p1': np.zeros((1, 3, 30, 40))})
    for go_on in (network.advance, network.finish):
        with pytest.raises(EncodingError, match=r'is none of .*go on with the network'):
            go_on(foreign)


def test_stages_out_of_order_are_refused(tmp_path: Path) -> None:
    first, second, third = write_camera_stages(tmp_path)
    with pytest.raises(EncodingError, match=r"small_3\.onnx, stage 2, reads 'p2'"):
        TappedNetwork([first, third, second])


def test_a_stage_of_another_network_fails_with_its_name(tmp_path: Path) -> None:
    stages = write_camera_stages(tmp_path)
    node = helper.make_node('Add', ['p1', 'p1'], ['p2'])
    shape = {'p1': (1, 5, 3, 4)}
    write_graph(stages[1], [node], shape, {'p2': (1, 5, 3, 4)})
    with pytest.raises(EncodingError, match=r'small_2\.onnx failed on a unit'):
        TappedNetwork(stages).run(BLOB)


def test_outputs_nobody_wants_are_not_worked_out(network: TappedNetwork) -> None:
    network.keep(['detections'])
    assert set(network.run(BLOB)) == {'detections'}
