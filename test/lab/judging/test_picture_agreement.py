"""Agreement of consecutive pictures, from boxes few enough to count by hand."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mmedge_lab.judging.picture_agreement import (
    Agreement,
    ShownBoxes,
    agreement_at,
    shown_boxes,
)
from mmedge_ros.data_types import Box, Detection
from mmedge_ros.records.ground_truth import TrueFrame


def person(x: float, score: float = 0.9, height: float = 40.0, label: str = 'person') -> Detection:
    return Detection(Box(x, 100.0, x + height / 2, 100.0 + height), score, label)


def frame(*people: tuple[float, float, float]) -> TrueFrame:
    """People at x, of a height and visibility."""
    count = len(people)
    boxes = [person(x, height=height).box for x, height, _ in people]
    return TrueFrame(
        np.arange(count),
        np.full(count, 'person'),
        np.array(boxes, np.float64).reshape(-1, 4),
        np.array([visibility for *_, visibility in people], np.float64),
        np.zeros((count, 3)),
        np.zeros((count, 3)),
        np.full(count, 12.0),
    )


def at(*people: float) -> TrueFrame:
    return frame(*((x, 40.0, 1.0) for x in people))


def agreement(*pictures: tuple[TrueFrame, Sequence[Detection]], recall: float = 0.5) -> Agreement:
    shown = [shown_boxes(*picture) for picture in pictures]
    return agreement_at(list(zip(shown[::2], shown[1::2], strict=True)), recall)


def test_the_same_boxes_in_both_pictures_agree_wholly() -> None:
    same = agreement(
        (at(10, 200), [person(10), person(200)]), (at(12, 200), [person(12), person(200)])
    )
    assert same.agreement == 1.0
    assert same.pairs == 1


def test_a_box_that_is_only_in_one_picture_counts_against_it() -> None:
    lost = agreement((at(10, 200), [person(10), person(200)]), (at(10, 200), [person(10)]))
    assert lost.agreement == 0.5
    wrong = agreement((at(10), [person(10), person(400)]), (at(10), [person(10)]))
    assert wrong.agreement == 0.5
    jumped = agreement((at(10), [person(10)]), (at(30), [person(30)]))
    assert jumped.agreement == 0.0


def test_weak_boxes_count_only_where_the_recall_needs_them() -> None:
    pictures = (
        (at(10, 200), [person(10, 0.9), person(200, 0.3)]),
        (at(10, 200), [person(10, 0.8), person(200, 0.1), person(400, 0.2)]),
    )
    half, most = agreement(*pictures, recall=0.5), agreement(*pictures, recall=0.75)
    assert (half.threshold, half.agreement) == (0.8, 1.0)
    assert (most.threshold, most.agreement) == (0.3, 0.5)


def test_what_is_never_detected_leaves_the_recall_out_of_reach() -> None:
    blind = agreement((at(10, 200), [person(10)]), (at(10, 200), []), recall=0.7)
    assert math.isnan(blind.agreement)
    assert math.isnan(agreement_at([]).agreement)


def test_small_people_do_not_count_for_recall_and_hidden_ones_not_at_all() -> None:
    small, hidden = (300.0, 12.0, 1.0), (200.0, 40.0, 0.2)
    truth = frame((10.0, 40.0, 1.0), small, hidden)
    shown = shown_boxes(truth, [person(200, 0.99), person(10, 0.6), person(10, 0.9, label='dog')])
    assert shown.people.tolist() == [0.6]
    assert shown.scores.tolist() == [0.6]


def test_two_boxes_on_one_person_detect_it_once() -> None:
    shown = shown_boxes(at(10), [person(11, 0.5), person(10, 0.7)])
    assert shown.people.tolist() == [0.7]
    assert shown.scores.tolist() == [0.7, 0.5]


@given(
    st.lists(st.floats(0.01, 1.0), min_size=1, max_size=8),
    st.lists(st.floats(0.01, 1.0), max_size=8),
    st.sampled_from((0.1, 0.5, 1.0)),
)
def test_agreement_is_a_share_and_has_no_direction(
    first: list[float], second: list[float], recall: float
) -> None:
    def shown(scores: list[float]) -> ShownBoxes:
        places = np.arange(len(scores)) * 50.0
        boxes = np.stack((places, places, places + 20.0, places + 40.0), axis=1)
        return ShownBoxes(boxes, np.array(scores), np.array(scores))

    there = agreement_at([(shown(first), shown(second))], recall)
    back = agreement_at([(shown(second), shown(first))], recall)
    assert there == back
    assert 0.0 <= there.agreement <= 1.0
    assert there.threshold == pytest.approx(
        sorted(first + second, reverse=True)[math.ceil(recall * len(first + second)) - 1]
    )
