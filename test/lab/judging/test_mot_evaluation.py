"""CLEAR MOT and identity figures: by hand, by another implementation, by what must hold."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mmedge_lab.judging.mot_evaluation import evaluate_mot
from mmedge_lab.judging.mot_text import NO_CLASS, MotBoxes, read_mot_text
from mmedge_ros.report import ReportError
from mmedge_ros.report.mot_metrics import NO_ID, MotFigures

# frame, id, x
Place = tuple[int, int, float]


def boxes(places: Sequence[Place], confidence: float = 1.0, kind: int = NO_CLASS) -> MotBoxes:
    """Boxes of 40 x 100 px whose left edges are at x."""
    return MotBoxes.from_rows(
        [[frame, number, x, 0.0, x + 40.0, 100.0, confidence, kind] for frame, number, x in places]
    )


def joined(*parts: MotBoxes) -> MotBoxes:
    return MotBoxes.from_rows(
        [
            [frame, number, *box, confidence, kind]
            for part in parts
            for frame, number, box, confidence, kind in zip(
                part.frames, part.ids, part.boxes, part.confidences, part.classes, strict=True
            )
        ]
    )


def walk(number: int, frames: Sequence[int], x: float = 0.0) -> list[Place]:
    return [(frame, number, x + frame) for frame in frames]


# ------------------------------------------------------------------------------ by hand


def test_boxes_that_share_half_of_their_union_match_and_less_does_not() -> None:
    truth = MotBoxes.from_rows([[1, 1, 0, 0, 40, 100, 1, NO_CLASS]])
    half = MotBoxes.from_rows([[1, 1, 0, 0, 40, 50, 1, NO_CLASS]])
    less = MotBoxes.from_rows([[1, 1, 0, 0, 40, 49.9, 1, NO_CLASS]])
    assert evaluate_mot(truth, half).recall == 1.0
    assert evaluate_mot(truth, less).recall == 0.0


# ------------------------------------------------------------------------------ flags


def test_truth_that_is_flagged_out_does_not_count() -> None:
    truth = joined(boxes(walk(1, range(10))), boxes(walk(2, range(10), 200.0), confidence=0.0))
    figures = evaluate_mot(truth, boxes(walk(1, range(10))))
    assert (figures.mota, figures.true_ids, figures.true_boxes) == (1.0, 1, 10)


def test_of_classes_only_pedestrians_count_and_distractors_may_be_found() -> None:
    person, car, mannequin = 1, 3, 8
    truth = joined(
        boxes(walk(1, range(10)), kind=person),
        boxes(walk(2, range(10), 200.0), confidence=0.0, kind=mannequin),
        boxes(walk(3, range(10), 400.0), confidence=0.0, kind=car),
    )
    result = boxes([p for n in range(3) for p in walk(n, range(10), 200.0 * n)])
    figures = evaluate_mot(truth, result)
    assert (figures.true_boxes, figures.result_boxes) == (10, 20)
    assert (figures.false_positives, figures.false_negatives) == (10, 0)


def test_detections_without_ids_have_recall_and_precision_but_no_identity() -> None:
    truth = boxes(walk(1, range(10)))
    figures = evaluate_mot(truth, boxes([*walk(NO_ID, range(10)), (1, NO_ID, 300.0)]))
    assert (figures.recall, figures.false_positives) == (1.0, 1)
    assert math.isnan(figures.mota)
    assert math.isnan(figures.idf1)
    assert figures.id_switches is None


@pytest.mark.parametrize(
    ('truth', 'words'),
    [
        (boxes([]), 'no box that counts'),
        (boxes(walk(1, range(3)), confidence=0.0), 'no box that counts'),
        (boxes(walk(NO_ID, range(3))), 'without an id'),
    ],
)
def test_a_truth_that_says_nothing_is_refused(truth: MotBoxes, words: str) -> None:
    with pytest.raises(ReportError, match=words):
        evaluate_mot(truth, boxes([]))


# ------------------------------------------------------------------------------ recorded


def test_a_published_result_gets_its_published_figures(data_folder: Path) -> None:
    folder = data_folder / 'mot_text' / 'TUD-Campus'
    truth = read_mot_text(folder / 'gt.txt')
    figures = evaluate_mot(truth, read_mot_text(folder / 'tracker_example.txt'))
    assert (round(figures.mota, 3), round(figures.idf1, 3)) == (0.526, 0.558)
    assert figures.id_switches == 7
    assert (figures.false_positives, figures.false_negatives) == (13, 150)
    assert (figures.true_ids, figures.frames) == (8, 71)


# ------------------------------------------------------------------------------ random


def crowd(seed: int) -> tuple[list[list[float]], list[list[float]]]:
    """People who cross, and a tracker that errs in every way; drawn with random() alone."""
    draw = random.Random(seed).random
    truth: list[list[float]] = []
    result: list[list[float]] = []
    people = 1 + int(6 * draw())
    states = [[120 * draw(), 120 * draw(), 8 * draw() - 4, 8 * draw() - 4] for _ in range(people)]
    sizes = [(20 + 40 * draw(), 20 + 40 * draw()) for _ in range(people)]
    ids = list(range(11, 11 + people))
    for frame in range(1, 30):
        if draw() < 0.2:
            one, other = int(people * draw()), int(people * draw())
            ids[one], ids[other] = ids[other], ids[one]
        if draw() < 0.1:
            ids[int(people * draw())] = 100 + len(result)
        for n, state in enumerate(states):
            x, y = (state[0] + frame * state[2], state[1] + frame * state[3])
            width, height = sizes[n]
            if draw() < 0.85:
                truth.append([frame, n + 1, x, y, x + width, y + height, 1, NO_CLASS])
            if draw() < 0.8:
                x, y = x + 16 * draw() - 8, y + 16 * draw() - 8
                result.append([frame, ids[n], x, y, x + width, y + height, 1, NO_CLASS])
        if draw() < 0.3:
            x, y = 150 * draw(), 150 * draw()
            result.append([frame, 90 + int(4 * draw()), x, y, x + 40, y + 40, 1, NO_CLASS])
    return truth, result


# seed: MOTA, IDF1, mean IoU, recall, precision; switches, fragmentations, false positives,
# misses, mostly tracked, partially tracked, mostly lost; computed by motmetrics 1.4.0.
ORACLE: dict[int, tuple[float, ...]] = {
    1: (0.407407, 0.714286, 0.676475, 0.740741, 0.689655, 0, 5, 9, 7, 0, 1, 0),
    2: (0.412903, 0.454237, 0.694110, 0.683871, 0.757143, 8, 25, 34, 49, 2, 4, 0),
    3: (0.392157, 0.509434, 0.699403, 0.784314, 0.727273, 5, 8, 15, 11, 1, 1, 0),
    5: (0.193878, 0.334928, 0.680060, 0.744898, 0.657658, 16, 16, 38, 25, 2, 2, 0),
    8: (0.204545, 0.455446, 0.672110, 0.772727, 0.596491, 2, 6, 23, 10, 0, 2, 0),
    13: (0.180000, 0.252427, 0.651635, 0.700000, 0.660377, 8, 6, 18, 15, 1, 1, 0),
}


@pytest.mark.parametrize('seed', ORACLE)
def test_another_implementation_finds_the_same(seed: int) -> None:
    truth, result = crowd(seed)
    figures = evaluate_mot(MotBoxes.from_rows(truth), MotBoxes.from_rows(result))
    assert _in_order(figures) == pytest.approx(ORACLE[seed], abs=5e-7)


def _in_order(figures: MotFigures) -> tuple[float | None, ...]:
    return (
        figures.mota,
        figures.idf1,
        figures.motp,
        figures.recall,
        figures.precision,
        figures.id_switches,
        figures.fragmentations,
        figures.false_positives,
        figures.false_negatives,
        figures.mostly_tracked,
        figures.partially_tracked,
        figures.mostly_lost,
    )


@given(st.integers(0, 10_000), st.integers(1, 1_000_000_000))
@settings(max_examples=30)
def test_names_and_far_away_frames_change_nothing(seed: int, shift: int) -> None:
    truth, result = crowd(seed)
    plain = evaluate_mot(MotBoxes.from_rows(truth), MotBoxes.from_rows(result))
    renamed = [[row[0] + shift, 2**40 + 3 * row[1], *row[2:]] for row in reversed(result)]
    moved = [[row[0] + shift, *row[1:]] for row in reversed(truth)]
    again = evaluate_mot(MotBoxes.from_rows(moved), MotBoxes.from_rows(renamed))
    # A sum in another order is another sum in its last digit.
    assert asdict(again) == pytest.approx(asdict(plain), abs=1e-12, nan_ok=True)
