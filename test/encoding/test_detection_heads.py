"""Output formats of detection networks."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from mmedge_ros.encoding import EncodingError
from mmedge_ros.encoding.detection_heads import (
    COCO,
    Candidates,
    EndToEndHead,
    Head,
    RtDetrHead,
    UltralyticsHead,
    YoloxHead,
    best_boxes,
    class_names,
    find_head,
)

SIZE = (96, 64)
CELLS = 12 * 8 + 6 * 4 + 3 * 2
NAMES = {'names': "{0: 'person'}"}
PERSON_ONLY = np.array([True, False])


def zeros(*shape: int) -> np.ndarray:
    return np.zeros((1, *shape), np.float32)


@pytest.mark.parametrize(
    ('shape', 'metadata', 'kind', 'classes'),
    [
        ((CELLS, 85), {}, YoloxHead, 80),
        ((CELLS, 6), {}, YoloxHead, 1),
        ((84, CELLS), {}, UltralyticsHead, 80),
        ((5, CELLS), {}, UltralyticsHead, 1),
        ((5, 500), NAMES, UltralyticsHead, 1),
        ((100, 6), {}, EndToEndHead, None),
        ((CELLS, 6), {'end2end': 'True'}, EndToEndHead, None),
    ],
)
def test_the_format_is_found_from_the_shape(
    shape: tuple[int, ...], metadata: dict[str, str], kind: type, classes: int | None
) -> None:
    head = find_head(zeros(*shape), SIZE, metadata, 'net')
    assert type(head) is kind
    assert head.classes == classes


@pytest.mark.parametrize(
    'shape', [(3 * CELLS, 85), (3 * CELLS, 6), (1000,), (5, 500), (CELLS, 5), (3, 4), (2, 3, 4)]
)
def test_other_shapes_are_refused_with_those_that_are_accepted(shape: tuple[int, ...]) -> None:
    with pytest.raises(EncodingError) as caught:
        find_head(zeros(*shape), SIZE, {}, 'net.onnx')
    message = str(caught.value)
    assert message.startswith(f'net.onnx puts out {[1, *shape]} for an input of 96 x 64 px')
    assert f'[1, {CELLS}, 5 + classes] (YOLOX)' in message


def test_yolox_boxes_count_in_cells_of_their_stride() -> None:
    output = np.zeros((CELLS, 7), np.float32)
    row = 12 * 8 + 2 * 6 + 5  # stride 16, second row from zero, column 5
    output[row] = (0.25, -0.5, math.log(2.0), math.log(3.0), 0.8, 0.5, 0.1)
    head = YoloxHead(SIZE, 2, decoded=False)
    found = head.candidates(output, 0.3, PERSON_ONLY)
    centre_x, centre_y = 5.25 * 16, 1.5 * 16
    expected = [centre_x - 16, centre_y - 24, centre_x + 16, centre_y + 24]
    np.testing.assert_allclose(found.boxes, [expected], rtol=1e-6)
    np.testing.assert_allclose(found.scores, [0.4])
    assert found.classes.tolist() == [0]


def test_decoded_yolox_boxes_are_told_from_raw_ones_and_left_alone() -> None:
    output = np.zeros((1, CELLS, 7), np.float32)
    output[0, :, 0] = np.linspace(4, 92, CELLS)
    output[0, 7, :] = (40, 30, 20, 10, 1.0, 0.9, 0.0)
    head = find_head(output, SIZE, {}, 'net')
    found = head.candidates(output[0], 0.3, PERSON_ONLY)
    np.testing.assert_allclose(found.boxes, [[30, 25, 50, 35]])


def test_a_column_of_an_ultralytics_head_is_a_centre_and_a_size() -> None:
    output = np.zeros((6, CELLS), np.float32)
    output[:, 17] = (40, 30, 20, 10, 0.7, 0.2)
    found = UltralyticsHead(2).candidates(output, 0.3, PERSON_ONLY)
    np.testing.assert_allclose(found.boxes, [[30, 25, 50, 35]])
    np.testing.assert_allclose(found.scores, [0.7])


def test_a_row_of_an_end_to_end_head_is_a_box() -> None:
    output = np.zeros((10, 6), np.float32)
    output[3] = (30, 25, 50, 35, 0.7, 0)
    output[4] = (1, 2, 3, 4, 0.9, 1)
    found = EndToEndHead().candidates(output, 0.3, PERSON_ONLY)
    np.testing.assert_allclose(found.boxes, [[30, 25, 50, 35]])
    np.testing.assert_allclose(found.scores, [0.7])


def test_boxes_of_rt_detr_are_shares_of_the_input() -> None:
    output = np.zeros((1, 40, 6), np.float32)
    output[0, 7] = (0.5, 0.5, 0.25, 0.5, 0.7, 0.2)
    metadata = {'task': 'detect', 'names': "{0: 'person', 1: 'car'}"}
    head = find_head(output, SIZE, metadata, 'net')
    assert isinstance(head, RtDetrHead)
    found = head.candidates(output[0], 0.3, PERSON_ONLY)
    np.testing.assert_allclose(found.boxes, [[36, 16, 60, 48]])
    np.testing.assert_allclose(found.scores, [0.7])
    # Boxes of an end-to-end head of two classes have the same shape.
    output[0, 7, :4] = (36, 16, 60, 48)
    assert isinstance(find_head(output, SIZE, metadata, 'net'), EndToEndHead)


@pytest.mark.parametrize('head', [YoloxHead(SIZE, 2, decoded=False), UltralyticsHead(2)])
def test_a_cell_counts_for_its_best_class_only(head: Head) -> None:
    rows = np.zeros((CELLS, 7), np.float32)
    rows[0] = (8, 8, 1, 1, 1.0, 0.4, 0.6)
    output = rows if isinstance(head, YoloxHead) else np.delete(rows, 4, axis=1).T
    assert len(head.candidates(output, 0.3, PERSON_ONLY).scores) == 0
    found = head.candidates(output, 0.3, np.array([True, True]))
    assert found.classes.tolist() == [1]
    assert found.scores == pytest.approx([0.6])


HEADS = (
    (YoloxHead(SIZE, 2, decoded=False), (CELLS, 7)),
    (YoloxHead(SIZE, 2, decoded=True), (CELLS, 7)),
    (UltralyticsHead(2), (6, CELLS)),
    (EndToEndHead(), (40, 6)),
    (RtDetrHead(SIZE, 2), (40, 6)),
)


@settings(deadline=None)
@given(data=st.data(), case=st.sampled_from(HEADS), threshold=st.floats(0, 1))
def test_whatever_a_network_puts_out_the_boxes_are_finite_and_have_an_area(
    data: st.DataObject, case: tuple[Head, tuple[int, int]], threshold: float
) -> None:
    head, shape = case
    output = data.draw(hnp.arrays(np.float32, shape, elements=st.floats(width=32)))
    with np.errstate(all='ignore'):
        found = head.candidates(output, threshold, PERSON_ONLY)
    assert np.isfinite(found.boxes).all()
    assert (found.boxes[:, 2:] > found.boxes[:, :2]).all()
    assert (found.scores >= np.float32(threshold)).all()
    assert (found.scores <= 1).all()
    assert (found.classes == 0).all()
    assert len(found.boxes) == len(found.scores) == len(found.classes)


def test_a_mapping_is_read_in_the_order_of_its_numbers() -> None:
    assert class_names({'names': "{1: 'dog', 0: 'person'}"}, 2, 'x') == ('person', 'dog')


@pytest.mark.parametrize(
    'text', ['', '{', '[]', '{}', '5', '{0: 1}', "{0: 'a', 2: 'b'}", "{'x': 'a'}", '(' * 5000]
)
def test_names_that_are_no_names_are_refused(text: str) -> None:
    with pytest.raises(EncodingError, match='must look like'):
        class_names({'names': text}, None, 'net')


@given(st.text())
def test_any_text_gives_names_or_the_planned_error(text: str) -> None:
    try:
        names = class_names({'names': text}, None, 'net')
    except EncodingError:
        return
    assert names
    assert all(isinstance(name, str) for name in names)


boxes = hnp.arrays(
    np.float32,
    st.tuples(st.integers(0, 30), st.just(4)),
    elements=st.floats(0, 400, width=32),
).map(lambda a: np.concatenate((a[:, :2], a[:, :2] + a[:, 2:] + 1), axis=1))


def iou(a: np.ndarray, b: np.ndarray) -> float:
    sides = np.minimum(a[2:], b[2:]) - np.maximum(a[:2], b[:2])
    common = float(np.prod(np.clip(sides, 0, None)))
    return common / float(np.prod(a[2:] - a[:2]) + np.prod(b[2:] - b[:2]) - common)


@settings(deadline=None)
@given(boxes=boxes, seed=st.integers(0, 1000))
def test_suppression_agrees_with_its_textbook_definition(boxes: np.ndarray, seed: int) -> None:
    rng = np.random.default_rng(seed)
    scores = rng.permutation(len(boxes)).astype(np.float32) / 100 + 0.1
    classes = rng.integers(0, 2, len(boxes))
    wide = boxes.astype(np.float64)
    expected: list[int] = []
    for i in np.argsort(-scores):
        rivals = [j for j in expected if classes[j] == classes[i]]
        overlaps = [iou(wide[i], wide[j]) for j in rivals]
        if any(abs(overlap - 0.45) < 1e-6 for overlap in overlaps):
            return  # on the threshold rounding decides
        if all(overlap <= 0.45 for overlap in overlaps):
            expected.append(int(i))
    assert best_boxes(Candidates(boxes, scores, classes), 0.45).tolist() == expected


def test_more_candidates_than_can_be_compared_keep_the_best() -> None:
    count = 3000
    corners = np.array([(i % 60 * 10, i // 60 * 10) for i in range(count)], np.float32)
    found = Candidates(
        np.concatenate((corners, corners + 8), axis=1),
        np.linspace(0.1, 0.9, count, dtype=np.float32),
        np.zeros(count, np.intp),
    )
    best = best_boxes(found, 0.45)
    assert best[0] == count - 1
    assert len(best) == 1000


@pytest.mark.parametrize(
    ('metadata', 'named'),
    [
        ({'task': 'segment'}, 'segment'),
        ({'task': 'pose'}, 'pose'),
    ],
)
def test_networks_for_other_tasks_are_refused_whatever_their_shape(
    metadata: dict[str, str], named: str
) -> None:
    with pytest.raises(EncodingError, match=f"made for '{named}'"):
        find_head(zeros(56, CELLS), SIZE, metadata, 'net')


def test_another_number_of_names_than_of_classes_is_refused() -> None:
    with pytest.raises(EncodingError, match='net names 1 classes in its metadata but puts out 2'):
        class_names({'names': "{0: 'person'}"}, 2, 'net')


def test_without_names_classes_are_those_of_coco_or_numbered() -> None:
    assert class_names({}, 80, 'x') == class_names({}, None, 'x') == COCO
    assert class_names({}, 3, 'x') == ('class0', 'class1', 'class2')
