"""Dividing a classifier where one map alone leads on; the stages put out what the whole does."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from hand_made_classifiers import (
    CLASSES,
    GraphBuilder,
    as_blob,
    mobile_classifier,
    picture_of,
    residual_classifier,
    write_model,
)
from onnx import TensorProto, helper, numpy_helper

from mmedge_lab.training import TrainingError
from mmedge_lab.training.classifier_graph import ClassifierGraph, open_graph
from mmedge_lab.training.classifier_taps import check_stages, write_stages
from mmedge_lab.training.cut_points import CutPoint, cut_points, evenly_spread
from mmedge_ros.encoding import EncodingError
from mmedge_ros.encoding.tapped_network import TappedNetwork

MAKERS = (residual_classifier, mobile_classifier)


def opened(folder: Path, model: onnx.ModelProto, **more: Any) -> ClassifierGraph:
    return open_graph(write_model(folder / 'model.onnx', model), **more)


def divided(
    folder: Path, graph: ClassifierGraph, taps: int
) -> tuple[tuple[CutPoint, ...], list[Path]]:
    cuts = evenly_spread(cut_points(graph), taps)
    return cuts, write_stages(graph, cuts, folder, 'stage')


def kinds_before(graph: ClassifierGraph) -> list[list[str]]:
    """The operators between the cut points, in order."""
    ends = [-1, *(point.node for point in cut_points(graph)), len(graph.nodes)]
    return [[node.op_type for node in graph.nodes[a + 1 : b + 1]] for a, b in pairwise(ends)]


def test_a_residual_network_is_cut_after_the_activation_of_its_blocks_and_nowhere_else(
    tmp_path: Path,
) -> None:
    stem, *blocks, _ = kinds_before(opened(tmp_path, residual_classifier()))
    assert stem == ['Conv', 'Relu']
    assert [kinds.count('Add') for kinds in blocks] == [1, 1]
    assert all(kinds[-2:] == ['Add', 'Relu'] for kinds in blocks)


def test_inverted_blocks_and_their_squeeze_and_excite_are_never_cut_inside(
    tmp_path: Path,
) -> None:
    graph = opened(tmp_path, mobile_classifier())
    assert [point.channels for point in cut_points(graph)] == [12, 12, 16, 16]  # none of the wide
    stem, *blocks, last = kinds_before(graph)
    assert stem == ['Conv', 'Clip']
    assert [kinds.count('Conv') for kinds in blocks] == [3, 3, 5]
    assert 'Mul' in blocks[2]
    assert last[-3:] == ['GlobalAveragePool', 'Flatten', 'Gemm']


@pytest.mark.parametrize('make', MAKERS)
@pytest.mark.parametrize('ending', ['', 'Softmax', 'Sigmoid'])
def test_stages_put_out_what_the_whole_does_and_taps_are_means(
    tmp_path: Path, make: Callable[..., onnx.ModelProto], ending: str
) -> None:
    model = make(ending)
    graph = opened(tmp_path, model)
    cuts, stages = divided(tmp_path, graph, 4)
    assert check_stages(graph, stages, tmp_path) < 1e-4
    assert not (tmp_path / 'whole.onnx').exists()
    blob = as_blob(picture_of(2, 1))
    (expected,) = onnxruntime.InferenceSession(model.SerializeToString()).run(
        None, {'picture': blob}
    )
    network = TappedNetwork(stages)
    state = network.start(blob)
    for cut in cuts:
        assert state.activation.shape == (1, cut.channels)
        mapped = state.tensors[f'map_{state.block}']
        np.testing.assert_allclose(state.activation, mapped.mean(axis=(2, 3)), rtol=1e-4)
        state = network.advance(state)
    logits = state.tensors['logits']
    power = np.exp(logits)
    ended = {'': logits, 'Softmax': power / power.sum(), 'Sigmoid': power / (1.0 + power)}[ending]
    np.testing.assert_allclose(ended, expected, atol=1e-4)


@pytest.mark.parametrize('make', MAKERS)
def test_going_on_from_a_tap_any_number_of_times_equals_running_on(
    tmp_path: Path, make: Callable[..., onnx.ModelProto]
) -> None:
    _, stages = divided(tmp_path, opened(tmp_path, make()), 3)
    network = TappedNetwork(stages)
    one, other = (as_blob(picture_of(label, 5)) for label in (0, 3))
    kept = network.start(one)
    assert set(kept.tensors) == {'map_1'}  # nothing else is held while a run rests
    run_on = network.run(one)['logits']
    network.run(other)
    for _ in range(2):
        np.testing.assert_array_equal(network.finish(kept)['logits'], run_on)


def test_weights_are_divided_between_the_stages_and_the_opset_is_kept(tmp_path: Path) -> None:
    model = residual_classifier(opset=15)
    _, stages = divided(tmp_path, opened(tmp_path, model), 2)
    parts = [onnx.load(str(stage)) for stage in stages]
    names = [{tensor.name for tensor in part.graph.initializer} for part in parts]
    assert sum(map(len, names)) == len(set.union(*names)) == len(model.graph.initializer)
    assert {entry.version for part in parts for entry in part.opset_import} == {15}


def test_chosen_cuts_make_stages_of_like_work() -> None:
    points = [CutPoint(str(share), 8, share, 0) for share in (0.05, 0.1, 0.3, 0.34, 0.5, 0.8)]
    assert [point.share for point in evenly_spread(points, 2)] == [0.34, 0.8]
    assert [point.share for point in evenly_spread(points, 1)] == [0.5]
    assert evenly_spread(points, 16) == tuple(points)


def test_open_batch_and_size_are_fixed_and_asked_for(tmp_path: Path) -> None:
    model = mobile_classifier(batch='N', side='S')
    with pytest.raises(TrainingError, match='--size'):
        opened(tmp_path, model)
    graph = opened(tmp_path, model, size=(48, 40))
    _, stages = divided(tmp_path, graph, 2)
    assert check_stages(graph, stages, tmp_path) < 1e-4
    assert graph.shape('picture') == (1, 3, 40, 48)
    with pytest.raises(TrainingError, match='leave --size out'):
        opened(tmp_path, mobile_classifier(), size=(48, 40))


def test_shapes_that_are_asked_for_on_the_way_are_numbers_in_the_stages(tmp_path: Path) -> None:
    builder = GraphBuilder()
    x = builder.relu(builder.conv('picture', 3, 8))
    shape = builder.add('Shape', x)  # of an early map, read at the end: as dynamic exports do
    x = builder.relu(builder.conv(x, 8, 8))
    x = builder.add('Add', x, builder.add('ConstantOfShape', shape))
    means = builder.add('Flatten', builder.add('GlobalAveragePool', builder.conv(x, 8, 4)), axis=1)
    graph = opened(tmp_path, builder.model(means, batch='N'))
    assert len(cut_points(graph)) == 2
    _, stages = divided(tmp_path, graph, 2)
    assert check_stages(graph, stages, tmp_path) < 1e-4


def test_tensors_that_are_called_like_taps_and_logits_do_not_get_in_the_way(
    tmp_path: Path,
) -> None:
    model = residual_classifier()
    names = {'relu_1': 'logits', 'conv_2': 'tap_1', 'gemm_21': 'attributes_1'}
    for node in model.graph.node:
        node.input[:] = [names.get(name, name) for name in node.input]
        node.output[:] = [names.get(name, name) for name in node.output]
    model.graph.output[0].name = 'attributes_1'
    graph = opened(tmp_path, model)
    _, stages = divided(tmp_path, graph, 2)
    assert check_stages(graph, stages, tmp_path) < 1e-4
    assert TappedNetwork(stages).outputs == ('logits',)


def spoiled(change: Callable[[Any], None]) -> onnx.ModelProto:
    model = residual_classifier()
    change(model.graph)
    return model


def branch(graph: Any) -> None:
    port = helper.make_tensor_value_info('b', TensorProto.FLOAT, None)
    way = helper.make_graph([helper.make_node('Identity', ['picture'], ['b'])], 'w', [], [port])
    graph.node.append(helper.make_node('If', ['c'], ['d'], then_branch=way, else_branch=way))


def move_weights_out(graph: Any) -> None:
    tensor = graph.initializer[0]
    tensor.ClearField('raw_data')
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key='location', value='../secret')


def add_input(graph: Any) -> None:
    graph.input.append(helper.make_tensor_value_info('more', TensorProto.FLOAT, [1]))


def channels_last(graph: Any) -> None:
    dims = graph.input[0].type.tensor_type.shape.dim
    dims[1].dim_value, dims[3].dim_value = 32, 3


def without_nodes(graph: Any) -> None:
    del graph.node[:]


def merged_operator(graph: Any) -> None:
    graph.node[0].domain = 'com.microsoft'


def unknown_operator(graph: Any) -> None:
    graph.node[1].op_type = 'Nonsense'


def batch_of_eight(graph: Any) -> None:
    graph.input[0].type.tensor_type.shape.dim[0].dim_value = 8


@pytest.mark.parametrize(
    ('change', 'words'),
    [
        (branch, 'control flow'),
        (move_weights_out, 'weights in another file'),
        (add_input, '2 inputs'),
        (channels_last, 'channels first'),
        (without_nodes, 'no graph'),
        (merged_operator, 'com.microsoft'),
        (unknown_operator, 'no valid ONNX model'),
        (batch_of_eight, 'single colour picture'),
    ],
)
def test_what_cannot_be_divided_is_refused_with_a_remedy(
    tmp_path: Path, change: Callable[[Any], None], words: str
) -> None:
    with pytest.raises((TrainingError, EncodingError), match=words):
        opened(tmp_path, spoiled(change))


@pytest.mark.parametrize('content', [b'no model', b'\x08\x08' * 40, b'\x00' * 99])
def test_a_file_that_is_no_model_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / 'model.onnx'
    path.write_bytes(content)
    with pytest.raises((TrainingError, EncodingError), match=r'model\.onnx'):
        open_graph(path)


def test_every_cut_off_model_is_refused_in_words(tmp_path: Path) -> None:
    whole = residual_classifier().SerializeToString()
    path = tmp_path / 'model.onnx'
    for share in np.linspace(0.01, 0.99, 25):
        path.write_bytes(whole[: int(share * len(whole))])
        with pytest.raises((TrainingError, EncodingError)):
            open_graph(path)


def test_a_huge_file_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / 'model.onnx'
    with path.open('wb') as file:
        file.truncate((1 << 30) + 1)  # takes no room on disk
    with pytest.raises(TrainingError, match='larger than'):
        open_graph(path)


def test_a_network_without_convolutions_has_no_place_to_leave_it(tmp_path: Path) -> None:
    builder = GraphBuilder()
    flat = builder.add('Flatten', 'picture', axis=1)
    dense = builder.constant(np.ones((3 * 32 * 32, len(CLASSES)), np.float32))
    graph = opened(tmp_path, builder.model(builder.add('MatMul', flat, dense)))
    with pytest.raises(TrainingError, match='convolutional classifier'):
        cut_points(graph)


def test_probabilities_that_cannot_be_taken_back_are_refused(tmp_path: Path) -> None:
    model = residual_classifier('Softmax')
    # Softmax and then a Reshape: what lies before it cannot be told from the operator.
    model.graph.initializer.append(numpy_helper.from_array(np.array([1, 4]), 'form'))
    model.graph.node.append(helper.make_node('Reshape', ['softmax_22', 'form'], ['last']))
    model.graph.output[0].name = 'last'
    graph = opened(tmp_path, model)
    _, stages = divided(tmp_path, graph, 2)
    with pytest.raises(TrainingError, match='probabilities'):
        check_stages(graph, stages, tmp_path)


def test_stages_of_another_network_do_not_pass_the_check(tmp_path: Path) -> None:
    graph = opened(tmp_path, residual_classifier())
    _, stages = divided(tmp_path, graph, 2)
    last = onnx.load(str(stages[-1]))
    bias = last.graph.initializer[-1]
    bias.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(bias) + 0.001, bias.name))
    onnx.save(last, str(stages[-1]))
    with pytest.raises(TrainingError, match='other logits'):
        check_stages(graph, stages, tmp_path)
