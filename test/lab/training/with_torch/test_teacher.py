"""A teacher's scores lie on the cells of the learner, and only photos are taught."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from mmedge_lab.training import TrainingError
from mmedge_lab.training.augmentation import Augmentation, Batch, BatchSource
from mmedge_lab.training.detector_training import DetectorLoss, cell_middles, reminded
from mmedge_lab.training.picture_set import open_pictures
from mmedge_lab.training.picture_sources import CLASSES
from mmedge_lab.training.teacher import Taught, Teacher
from mmedge_ros.encoding.detection_heads import COCO, STRIDES


def red_teacher(path: Path) -> Path:
    """A YOLOX of an input of 64 x 64 px to which what is bright red is a person."""
    weights = np.zeros((85, 3, 1, 1), np.float32)
    weights[[4, 5], 2] = 1.0  # it sees BGR
    nodes, rows = [], []
    for stride in STRIDES:
        pooled = helper.make_node(
            'AveragePool', ['x'], [f'p{stride}'], kernel_shape=[stride] * 2, strides=[stride] * 2
        )
        scored = helper.make_node('Conv', [f'p{stride}', 'w'], [f's{stride}'])
        scaled = helper.make_node('Mul', [f's{stride}', 'share'], [f'c{stride}'])
        flat = helper.make_node('Reshape', [f'c{stride}', 'flat'], [f'f{stride}'])
        nodes += [pooled, scored, scaled, flat]
        rows.append(f'f{stride}')
    nodes.append(helper.make_node('Concat', rows, ['all'], axis=2))
    nodes.append(helper.make_node('Transpose', ['all'], ['y'], perm=[0, 2, 1]))
    graph = helper.make_graph(
        nodes,
        'red',
        [helper.make_tensor_value_info('x', TensorProto.FLOAT, [1, 3, 64, 64])],
        [helper.make_tensor_value_info('y', TensorProto.FLOAT, [1, 84, 85])],
        [
            onnx.numpy_helper.from_array(weights, 'w'),
            onnx.numpy_helper.from_array(np.array(1 / 255, np.float32), 'share'),
            onnx.numpy_helper.from_array(np.array([1, 85, -1]), 'flat'),
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid('', 17)], ir_version=9)
    onnx.save(model, path)
    return path


def test_scores_and_boxes_lie_on_the_cells_of_the_learner_at_any_size(tmp_path: Path) -> None:
    picture = np.zeros((3, 64, 128), np.uint8)
    picture[0, 16:24, 96:104] = 255
    taught = Teacher(red_teacher(tmp_path / 'red.onnx')).look(picture)
    cells, scores = cell_middles((128, 64)), taught.scores[0]
    assert scores.shape == (len(cells), len(CLASSES))
    assert cells[scores[:, 0].argmax()].tolist() == [100.0, 20.0, 8.0]
    # Raw zeros are a box of one cell around the corner of the cell.
    assert taught.boxes[0, scores[:, 0].argmax()].tolist() == [92.0, 12.0, 100.0, 20.0]
    known = [name in COCO for name in CLASSES]
    assert (~np.isnan(scores)).all(axis=0).tolist() == known


def test_a_file_that_is_no_yolox_is_refused(tmp_path: Path) -> None:
    (tmp_path / 'x.onnx').write_bytes(b'nothing')
    with pytest.raises(TrainingError, match='cannot teach'):
        Teacher(tmp_path / 'x.onnx')


def test_photos_are_taught_and_thermal_pictures_are_not(tmp_path: Path) -> None:
    for number, colour in enumerate(((0, 0, 255), (90, 90, 90))):
        image = np.full((64, 96, 3), colour, np.uint8)
        (tmp_path / 'own' / 'images').mkdir(parents=True, exist_ok=True)
        cv2.imwrite(str(tmp_path / 'own' / 'images' / f'{number}.png'), image)
    source = BatchSource(
        open_pictures(tmp_path / 'own'),
        (96, 64),
        (96, 64),
        2,
        0,
        Augmentation(whole=0.0),
        teacher=Teacher(red_teacher(tmp_path / 'red.onnx')),
    )
    (batch,) = source.epoch(0)
    assert batch.taught is not None
    taught = [bool(np.isfinite(scores[:, 0]).all()) for scores in batch.taught.scores]
    is_red = [bool((picture[0] > picture[2]).any()) for picture in batch.pictures]
    assert taught == is_red
    assert sorted(taught) == [False, True]


def test_simulated_pictures_are_taught_what_an_earlier_network_sees_in_them() -> None:
    import torch

    from mmedge_ros.encoding.ultralytics_network import new_network

    torch.manual_seed(0)
    before = new_network(CLASSES, (0.33, 0.125, 512)).eval()
    rng, nothing = np.random.default_rng(0), np.zeros((0, 6), np.float32)
    pictures = rng.integers(0, 255, (2, 3, 64, 96), np.uint8)
    batch = Batch(pictures, nothing, nothing, np.array([False, True]))
    shown = torch.from_numpy(pictures).float() / 255.0
    taught = reminded(batch, before, shown).taught
    assert taught is not None
    scores, boxes = taught
    assert scores.shape == (2, len(cell_middles((96, 64))), len(CLASSES))
    assert np.isnan(scores[0]).all()
    assert ((scores[1] > 0.0) & (scores[1] < 1.0)).all()
    with torch.no_grad():
        _, y, width, _ = before(shown)[0][1, :4].numpy()
    np.testing.assert_allclose(boxes[1, :, 2] - boxes[1, :, 0], width, rtol=1e-3)
    np.testing.assert_allclose((boxes[1, :, 1] + boxes[1, :, 3]) / 2, y, rtol=1e-3, atol=1e-3)
    scores[0] = 0.5
    again = reminded(batch._replace(taught=taught), before, shown).taught
    assert again is not None
    assert (again.scores[0] == 0.5).all()


def test_what_a_teacher_sees_raises_the_score_that_is_learned(tmp_path: Path) -> None:
    import torch

    from mmedge_ros.encoding.ultralytics_network import new_network

    torch.manual_seed(0)
    network = new_network(CLASSES, (0.33, 0.125, 512))
    loss_of = DetectorLoss(network, len(CLASSES))
    loss_of._weights = torch.ones(1, 2, len(CLASSES))
    loss_of._taught = torch.tensor([[[0.9, 0, 0, 0], [0, 0, 0, 0]]])
    nothing = torch.zeros(1, 2, len(CLASSES))
    loss = loss_of._class_loss(torch.full_like(nothing, -3.0), nothing)
    assert loss[0, 0, 0] > 2.0
    assert loss[0, 1, 0] < 0.1


def test_boxes_are_learned_where_a_teacher_is_sure() -> None:
    import torch

    from mmedge_ros.encoding.ultralytics_network import new_network

    torch.manual_seed(0)
    network = new_network(CLASSES, (0.33, 0.125, 512)).train()
    loss_of, size = DetectorLoss(network, len(CLASSES)), (96, 64)
    output = network(torch.zeros(1, 3, *size[::-1]))
    taught = Taught.nothing(1, len(cell_middles(size)))
    taught.scores[0, 30, 0] = 0.9
    taught.boxes[0] = 500.0, 500.0, 520.0, 540.0
    assert float(loss_of._box_loss(output, taught, size)) == pytest.approx(0.9)
    # Where the network's own boxes are taught there is nothing to learn.
    middle, sides = torch.tensor(cell_middles(size)[30]), output['boxes'][0, :, 30].detach()
    low, high = middle[:2] - sides[:2] * middle[2], middle[:2] + sides[2:] * middle[2]
    taught.boxes[0, 30] = torch.cat((low, high))
    own = float(loss_of._box_loss(output, taught, size))
    assert own == pytest.approx(0.9 * (1.0 - min(float((high - low).prod()), 1.0)), abs=1e-3)
