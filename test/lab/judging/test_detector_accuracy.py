"""Average precision and recall of a detector, from frames small enough to count by hand."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mmedge_lab.judging.detector_accuracy import (
    DetectorAccuracy,
    StratumAccuracy,
    average_precision,
    judge_detector,
)
from mmedge_ros.core.data_types import Box, Detection
from mmedge_ros.encoding.detector import DetectorOutput, Image
from mmedge_ros.replay.ground_truth import Conditions, TrueFrame

PICTURE = np.zeros((480, 640, 3), np.uint8)
DAY = Conditions('park', 'day', 'near')


class Answers:
    """A detector that gives prepared answers, one for each picture."""

    def __init__(self, *answers: Sequence[Detection]) -> None:
        self._answers = iter(answers)

    def detect(self, image: Image) -> DetectorOutput:
        return DetectorOutput(tuple(next(self._answers)))


class Ticks:
    """A clock that goes on by a quarter of a second at each look."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 0.25
        return self.now


def frame(
    *objects: tuple[str, tuple[float, float, float, float], float],
    conditions: Conditions = DAY,
    ranges: Sequence[float] | None = None,
) -> TrueFrame:
    count = len(objects)
    return TrueFrame(
        np.arange(count),
        np.array([o[0] for o in objects], np.str_),
        np.array([o[1] for o in objects], np.float64).reshape(-1, 4),
        np.array([o[2] for o in objects], np.float64),
        np.zeros((count, 3)),
        np.zeros((count, 3)),
        np.array(ranges if ranges is not None else [12.0] * count, np.float64),
        np.ones(count, np.bool_),
        np.zeros(count),
        conditions,
    )


def person(x: float, height: float, score: float = 0.9, label: str = 'person') -> Detection:
    return Detection(Box(x, 100.0, x + height / 2, 100.0 + height), score, label)


def true_person(
    x: float, height: float, visibility: float = 1.0, label: str = 'person'
) -> tuple[str, tuple[float, float, float, float], float]:
    return label, person(x, height).box, visibility


def judged(*pairs: tuple[TrueFrame, Sequence[Detection]]) -> DetectorAccuracy:
    detector = Answers(*(result for _, result in pairs))
    return judge_detector(detector, [(PICTURE, truth) for truth, _ in pairs], Ticks())


def stratum(accuracy: DetectorAccuracy, group: str, name: str) -> StratumAccuracy:
    (result,) = [s for s in accuracy.strata if (s.group, s.name) == (group, name)]
    return result


def test_a_detector_that_finds_everybody_and_nothing_else_is_perfect() -> None:
    accuracy = judged((frame(true_person(10, 60), true_person(200, 30)),
                       [person(10, 60), person(200, 30, 0.4)]))  # fmt: skip
    assert accuracy.people == 2
    assert accuracy.map50 == accuracy.map50_20px == accuracy.recall_20px == 1.0
    assert accuracy.precision_20px == 1.0
    assert accuracy.detect_ms == 250.0


def test_average_precision_is_the_area_under_the_envelope() -> None:
    # Precision 1, 1/2, 2/3, 3/4 at recalls 1/4, 1/4, 2/4, 3/4; the envelope lifts the dip.
    assert average_precision([True, False, True, True], 4) == pytest.approx((1 + 0.75 + 0.75) / 4)


def test_without_people_nothing_is_known_and_without_finds_it_is_zero() -> None:
    assert math.isnan(average_precision([False], 0))
    assert average_precision([], 3) == 0.0


@given(st.lists(st.booleans(), max_size=30), st.integers(1, 30))
def test_average_precision_is_never_better_than_recall(right: list[bool], more: int) -> None:
    people = sum(right) + more
    value = average_precision(right, people)
    assert 0.0 <= value <= sum(right) / people + 1e-12


@pytest.mark.parametrize(
    'other',
    [
        true_person(200, 60, visibility=0.3),
        true_person(200, 7.0),
        true_person(200, 60, label='cyclist'),
    ],
    ids=['hidden', 'tiny', 'rider'],
)
def test_who_does_not_count_is_neither_missed_nor_a_false_find(
    other: tuple[str, tuple[float, float, float, float], float],
) -> None:
    result = Detection(Box(*other[1]), 0.95, 'person')
    accuracy = judged((frame(true_person(10, 60), other), [person(10, 60), result]))
    assert (accuracy.people, accuracy.map50, accuracy.precision_20px) == (1, 1.0, 1.0)
    assert judged((frame(true_person(10, 60), other), [person(10, 60)])).map50 == 1.0


def test_small_people_and_small_boxes_are_ignored_in_the_figure_for_20_px() -> None:
    result = [person(10, 60), person(200, 12, 0.95), person(300, 12, 0.96)]
    accuracy = judged((frame(true_person(10, 60), true_person(200, 12)), result))
    assert accuracy.map50_20px == accuracy.precision_20px == 1.0
    assert accuracy.map50 == pytest.approx((2 / 3 + 2 / 3) / 2)  # the false one came first


def test_strata_of_light_judge_only_their_own_pictures() -> None:
    night = DAY._replace(light='night')
    accuracy = judged(
        (frame(true_person(10, 60)), [person(10, 60)]),
        (frame(true_person(10, 60), conditions=night), [person(300, 60, 0.99)]),
    )
    assert stratum(accuracy, 'light', 'day').ap50 == 1.0
    assert stratum(accuracy, 'light', 'night').ap50 == 0.0
    assert stratum(accuracy, 'light', 'night').precision == 0.0
    assert accuracy.map50_20px == pytest.approx(0.25)


def test_strata_of_size_ignore_people_and_boxes_of_other_sizes() -> None:
    truth = frame(true_person(10, 30), true_person(200, 100))
    accuracy = judged((truth, [person(10, 30), person(300, 100, 0.95)]))
    small = stratum(accuracy, 'size', '20 to 40 px')
    tall = stratum(accuracy, 'size', '60 px and more')
    assert (small.people, small.ap50, small.precision) == (1, 1.0, 1.0)
    assert (tall.people, tall.recall, tall.precision) == (1, 0.0, 0.0)


def test_strata_of_range_and_visibility_ask_for_recall_only() -> None:
    truth = frame(true_person(10, 60, 0.6), true_person(200, 60), ranges=(5.0, 25.0))
    accuracy = judged((truth, [person(200, 60)]))
    assert stratum(accuracy, 'range', '0 to 10 m').recall == 0.0
    assert stratum(accuracy, 'range', '20 to 30 m').recall == 1.0
    assert stratum(accuracy, 'visibility', 'partly hidden').recall == 0.0
    assert math.isnan(stratum(accuracy, 'visibility', 'not hidden').ap50)
    assert stratum(accuracy, 'light and size', 'day, 60 px and more').people == 1
