"""True scenes and what lies between them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hand_made_truth import BOX, MS, at, film, moved, scene, standing, true_person
from hypothesis import given
from hypothesis import strategies as st

from mmedge_ros.core.data_types import Box
from mmedge_ros.replay.ground_truth import GroundTruth

STEP = 10 * MS


def walker(ms):
    """Walks at 1 m/s and 100 px/s, and hides behind something as time goes by."""
    seconds = ms / 1000.0
    return [
        true_person(
            box=moved(BOX, 100.0 * seconds),
            position=(10.0, seconds, 0.0),
            velocity=(0.0, 1.0, 0.0),
            visibility=1.0 - seconds / 2.0,
        )
    ]


def test_between_frames_boxes_positions_and_visibility_are_interpolated():
    found = film(walker, 100).at(at(47))
    assert found is not None
    (person,) = found.objects
    assert person.box == pytest.approx(moved(BOX, 4.7))
    assert person.position == pytest.approx([10.0, 0.047, 0.0])
    assert person.velocity == pytest.approx([0.0, 1.0, 0.0])
    assert person.visibility == pytest.approx(1.0 - 0.047 / 2.0)
    assert found.ego is not None


@pytest.mark.parametrize(('ms', 'known'), [(-21, False), (-20, True), (120, True), (121, False)])
def test_beyond_the_ends_the_truth_is_carried_on_for_one_gap(ms, known):
    found = film(walker, 100).at(at(ms))
    assert (found is not None) == known
    if found is not None:
        assert found.objects[0].position[1] == pytest.approx(ms / 1000.0)


def test_inside_a_hole_nothing_is_known_but_the_frames_at_its_edges():
    scenes = [scene(ms, *walker(ms)) for ms in (0, 20, 40, 400, 420)]
    truth = GroundTruth(scenes)
    assert truth.at(at(41)) is None
    assert truth.at(at(399)) is None
    assert truth.at(at(400)) is not None
    assert truth.at(at(30)) is not None


def test_a_single_frame_is_known_at_its_stamp_alone():
    truth = GroundTruth([scene(0, *walker(0))])
    assert truth.at(at(0)) is not None
    assert truth.at(at(1)) is None
    assert list(truth.instants(STEP)) == [at(0)]


def test_who_is_in_one_of_two_frames_only_is_not_between_them():
    truth = GroundTruth([scene(0, true_person(1)), scene(20, true_person(1), true_person(2))])
    between, after = truth.at(at(19)), truth.at(at(20))
    assert between is not None
    assert after is not None
    assert [o.id for o in between.objects] == [1]
    assert [o.id for o in after.objects] == [1, 2]


def test_objects_are_told_apart_by_id_and_not_by_their_order():
    left, right = true_person(7, position=(5, 5, 0)), true_person(3, position=(5, -5, 0))
    truth = GroundTruth([scene(0, left, right), scene(20, right, left)])
    found = truth.at(at(10))
    assert found is not None
    assert {o.id: o.position[1] for o in found.objects} == {7: 5.0, 3: -5.0}


def test_who_leaves_the_picture_has_no_box_between():
    truth = GroundTruth([scene(0, true_person()), scene(20, true_person(box=None))])
    found = truth.at(at(10))
    assert found is not None
    assert found.objects[0].box is None


def test_a_box_carried_on_beyond_its_end_is_none_rather_than_inside_out():
    truth = GroundTruth(
        [
            scene(0, true_person(box=Box(0, 0, 10, 50))),
            scene(20, true_person(box=Box(0, 0, 2, 50))),
        ]
    )
    found = truth.at(at(38))
    assert found is not None
    assert found.objects[0].box is None


def test_scenes_may_come_in_any_order_and_of_two_with_one_stamp_the_first_counts():
    scenes = [scene(20, true_person(1)), scene(0, true_person(1)), scene(20, true_person(9))]
    truth = GroundTruth(scenes)
    assert truth.stamps_ns == [at(0), at(20)]
    assert truth.scenes[1].objects[0].id == 1


def test_instants_are_on_a_global_grid_and_leave_out_holes():
    scenes = [scene(ms, *walker(ms)) for ms in (3, 23, 43, 503, 523, 540)]
    found = [(ns - at(0)) / MS for ns in GroundTruth(scenes).instants(STEP)]
    assert found == [10, 20, 30, 40, 510, 520, 530, 540]


def test_frames_from_a_year_apart_take_no_year_to_go_through():
    far = replace(scene(0, true_person()), stamp_ns=at(0) + 10**16)
    truth = GroundTruth([scene(0, true_person()), far])
    assert len(list(truth.instants(STEP))) <= 2


def test_ranges_are_those_to_the_middle_of_the_body_from_the_drone():
    truth = GroundTruth(
        [scene(0, true_person(position=(13.0, 4.0, 0.0)), ego=standing(at(0), (10.0, 0.0, 0.85)))]
    )
    frame = truth.frame_at(at(0))
    assert frame is not None
    assert frame.ranges == pytest.approx([5.0])


def test_without_the_pose_of_the_drone_ranges_are_not_known():
    frame = GroundTruth([scene(0, true_person(), ego=None)]).frame_at(at(0))
    assert frame is not None
    assert np.isnan(frame.ranges).all()


@given(st.lists(st.integers(0, 400), min_size=1, max_size=12), st.integers(-50, 450))
def test_whatever_the_stamps_an_answer_lies_within_one_gap_of_them(stamps, asked):
    truth = GroundTruth([scene(ms, *walker(ms)) for ms in stamps])
    found = truth.at(at(asked))
    if found is not None:
        assert truth.stamps_ns[0] - truth.gap_ns <= at(asked) <= truth.stamps_ns[-1] + truth.gap_ns
        assert found.objects[0].position[1] == pytest.approx(asked / 1000.0)
