"""Whose box is whose, and which boxes are not judged."""

from __future__ import annotations

import numpy as np
import pytest
from hand_made_truth import BOX, at, moved, scene, track, true_person

from mmedge_ros.core.data_types import Box
from mmedge_ros.replay.ground_truth import GroundTruth
from mmedge_ros.report.truth_matching import (
    best_overlaps,
    counted_people,
    match_boxes,
    person_boxes,
)

SMALL = Box(10.0, 10.0, 13.0, 17.0)
HALF = 40.0 / 3.0  # moved by a third of its width a box overlaps itself by one half


def frame(*objects):
    result = GroundTruth([scene(0, *objects)]).frame_at(at(0))
    assert result is not None
    return result


def boxes(*given):
    return np.array(given, float).reshape(-1, 4)


@pytest.mark.parametrize(
    ('who', 'counts'),
    [
        (true_person(), True),
        (true_person(box=Box(0, 0, 3, 8)), True),
        (true_person(box=Box(0, 0, 3, 7.9)), False),
        (true_person(visibility=0.5), True),
        (true_person(visibility=0.49), False),
        (true_person(box=None), False),
        (true_person(label='dog'), False),
        (true_person(label='cyclist'), False),
    ],
)
def test_who_is_at_least_8_px_tall_and_half_visible_counts(who, counts):
    assert counted_people(frame(who)).tolist() == [counts]


def test_a_box_that_overlaps_by_half_finds_and_by_less_does_not():
    result = match_boxes(frame(true_person()), boxes(moved(BOX, HALF - 0.01)))
    assert (result.hits, result.false) == (1, 0)
    assert result.overlaps == pytest.approx([0.5], abs=1e-3)
    missed = match_boxes(frame(true_person()), boxes(moved(BOX, HALF + 0.01)))
    assert (missed.hits, missed.false) == (0, 1)
    assert missed.overlaps == pytest.approx([0.5], abs=1e-3)


def test_one_box_finds_one_person():
    both = frame(true_person(1), true_person(2, box=moved(BOX, 5.0)))
    result = match_boxes(both, boxes(BOX))
    assert result.hits == 1
    assert result.overlaps.tolist() == [1.0, 0.0]


def test_the_assignment_is_the_one_with_the_greatest_sum_of_overlaps():
    people = boxes(BOX, moved(BOX, 10.0))
    given = boxes(moved(BOX, 6.0), moved(BOX, 30.0))
    # The first box is nearer to the second person, but then the first has little left.
    best = [(40 - 6) / (40 + 6), (40 - 20) / (40 + 20)]
    assert best_overlaps(people, given) == pytest.approx(best)


def test_a_pair_above_the_limit_is_not_broken_up_for_two_below_it():
    people = frame(true_person(1), true_person(2, box=moved(BOX, 30.0)))
    given = boxes(moved(BOX, 12.0))
    assert match_boxes(people, given).hits == 1


def test_nobody_and_nothing_match():
    result = match_boxes(frame(), boxes())
    assert (result.hits, result.false, len(result.overlaps)) == (0, 0, 0)
    assert match_boxes(frame(true_person()), boxes()).overlaps.tolist() == [0.0]


@pytest.mark.parametrize(
    'hidden',
    [
        true_person(2, box=moved(BOX, 200.0), visibility=0.3),
        true_person(2, box=moved(BOX, 200.0), label='cyclist'),
    ],
)
def test_a_box_on_somebody_who_does_not_count_is_not_judged(hidden):
    people = frame(true_person(1), hidden)
    result = match_boxes(people, boxes(BOX, moved(BOX, 200.0)))
    assert (result.hits, result.false, result.ignored.tolist()) == (1, 0, [False, True])
    # The rider is the upper half of the whole.
    upper = Box(500.0, 200.0, 540.0, 250.0)
    assert match_boxes(people, boxes(upper)).ignored.tolist() == [True]
    beside = moved(BOX, 225.0)
    assert match_boxes(people, boxes(beside)).false == 1


@pytest.mark.parametrize('label', ['dog', 'car', 'something unheard of'])
def test_a_person_seen_where_something_else_is_is_wrong(label):
    assert match_boxes(frame(true_person(label=label)), boxes(BOX)).false == 1


def test_who_was_found_is_judged_even_on_the_box_of_somebody_hidden():
    people = frame(true_person(1), true_person(2, visibility=0.1))
    result = match_boxes(people, boxes(BOX))
    assert (result.hits, result.ignored.tolist()) == (1, [False])


def test_only_boxes_of_people_answer():
    shown, result = person_boxes(
        [track(1), track(2, box=None), track(3, label='dog'), track(4, label='moving')], 0.0
    )
    assert [t.id for t in shown] == [1]
    assert result.tolist() == [list(BOX)]


def test_boxes_move_on_by_their_own_velocity_and_are_cut_at_the_picture():
    _, result = person_boxes([track(drift=(100.0, -20.0))], 0.5)
    assert result.tolist() == [list(moved(BOX, 50.0, -10.0))]
    _, result = person_boxes([track(drift=(600.0, 0.0))], 0.5, (620, 480))
    assert result.tolist() == [[600.0, 200.0, 620.0, 300.0]]


@pytest.mark.parametrize('value', [np.nan, np.inf])
def test_a_box_that_is_none_answers_nothing(value):
    assert person_boxes([track(box=Box(value, 0.0, 1.0, 1.0))], 0.0)[0] == []
    assert person_boxes([track(drift=(value, 0.0))], 0.1)[0] == []
