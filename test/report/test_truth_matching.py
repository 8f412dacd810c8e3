"""Whose box is whose, where people truly are, and how steadily they are followed."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hand_made_truth import BOX, at, decided, film, moved, run, scene, track, true_person
from scipy.spatial.transform import Rotation

from mmedge_ros.core.data_types import Box
from mmedge_ros.geometry.ego_motion import EgoMotion, EgoState
from mmedge_ros.geometry.transforms import Transform
from mmedge_ros.replay.ground_truth import GroundTruth
from mmedge_ros.report.accuracy import accuracy_of
from mmedge_ros.report.truth_matching import (
    Alignment,
    best_overlaps,
    counted_people,
    match_boxes,
    person_boxes,
)

PLACE, VELOCITY = np.array([10.0, 4.0, 0.0]), np.array([0.5, -1.0, 0.0])
MOUNT = Transform(np.eye(3), np.array([0.2, 0.0, 0.0]))
FAR = moved(BOX, 150.0)
HERE, THERE = (10.0, 0.0, 0.9), (10.0, 6.0, 0.9)

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


def drone(ms=0.0, place=(0.0, 0.0, 5.0), yaw=0.0, velocity=(0.0, 0.0, 0.0), spin=0.0):
    turned = Rotation.from_euler('z', yaw).as_matrix()
    return EgoState(
        at(ms),
        Transform(turned, np.array(place)),
        np.array(velocity),
        np.array([0.0, 0.0, spin]),
    )


def aligned(true, reckoned=None, frame_id='odom', truth_frame='odom'):
    truth = GroundTruth(
        [scene(0, true_person(position=PLACE, velocity=VELOCITY), ego=true, frame_id=truth_frame)]
    )
    record = run([])
    record.camera_pose = MOUNT
    if reckoned is not None:
        record.ego = EgoMotion('odom', 'base_link', kept=None)
        record.ego.add(reckoned)
    alignment = Alignment(record, truth)
    frame = truth.frame_at(at(0))
    assert frame is not None
    return alignment.carry(frame, at(0), frame_id), alignment.problems


def test_odometry_that_is_right_changes_nothing():
    state = drone(place=(3.0, -2.0, 5.0), yaw=0.7)
    result, problems = aligned(state, state)
    assert result.positions == pytest.approx(PLACE[None])
    assert result.velocities == pytest.approx(VELOCITY[None])
    assert result.sensor == pytest.approx(state.pose.apply([0.2, 0.0, 0.0]))
    assert problems == []


def test_odometry_that_has_drifted_carries_the_truth_with_it():
    true = drone(place=(3.0, -2.0, 5.0))
    result, _ = aligned(true, drone(place=(4.5, -2.0, 5.0)))
    assert result.positions == pytest.approx(PLACE[None] + [1.5, 0.0, 0.0])
    turned, _ = aligned(true, drone(place=(3.0, -2.0, 5.0), yaw=np.pi / 2))
    offset = PLACE - [3.0, -2.0, 0.0]
    assert turned.positions[0] == pytest.approx([3.0 - offset[1], -2.0 + offset[0], 0.0])
    assert turned.velocities[0] == pytest.approx([1.0, 0.5, 0.0])
    true_range = np.linalg.norm(PLACE + np.array([0, 0, 0.85]) - true.pose.apply([0.2, 0.0, 0.0]))
    assert turned.ranges == pytest.approx([true_range])


def test_without_odometry_the_truth_is_what_is_seen_from_the_body():
    true = drone(place=(3.0, 0.0, 5.0), yaw=np.pi / 2, velocity=(1.0, 0.0, 0.0), spin=0.1)
    result, _ = aligned(true, frame_id='base_link')
    assert result.positions[0] == pytest.approx([4.0, -7.0, -5.0])
    # Relative velocity: own minus the drone's, minus the turning (0, 0, 0.1) x (7, 4, .).
    relative = VELOCITY - [1.0, 0.0, 0.0] - [-0.4, 0.7, 0.0]
    assert result.velocities[0] == pytest.approx([relative[1], -relative[0], 0.0])
    assert result.sensor == pytest.approx([0.2, 0.0, 0.0])


def test_in_one_frame_the_truth_needs_no_pose():
    result, problems = aligned(None)
    assert result.positions == pytest.approx(PLACE[None])
    assert problems == []


def test_frames_that_nothing_connects_are_told():
    result, problems = aligned(None, frame_id='radar_link')
    assert result is None
    assert "positions are in 'odom', the tracks of 1 decisions in 'radar_link'" in problems[0]


def test_a_truth_in_a_map_is_connected_by_the_drone():
    result, problems = aligned(
        drone(place=(3.0, -2.0, 5.0)), drone(place=(0.0, 0.0, 5.0)), truth_frame='map'
    )
    assert result.positions == pytest.approx(PLACE[None] - [3.0, -2.0, 0.0])
    assert problems == []


def two(ms):
    return [true_person(1, BOX, (10.0, 0.0, 0.0)), true_person(2, FAR, (10.0, 6.0, 0.0))]


def followed(decisions, people=two):
    truth = film(people)
    result = accuracy_of(run(decisions, truth), truth)
    assert result is not None
    return result.tracking_report()


def both(ms, first=1, second=2):
    return decided(ms, track(first, BOX, HERE), track(second, FAR, THERE))


def test_who_is_followed_all_the_time_under_one_id_is_followed_perfectly():
    result = followed([both(ms) for ms in range(0, 1000, 100)])
    for part in (result, result['positions']):
        assert (part['mota'], part['idf1'], part['id_switches']) == (1.0, 1.0, 0)
        assert (part['mostly_tracked'], part['people'], part['ids']) == (2, 2, 2)
        assert (part['false_positives'], part['false_negatives']) == (0, 0)
        assert (part['idtp'], part['idfp'], part['idfn']) == (20, 0, 0)


def test_ids_that_are_swapped_half_way_are_two_switches_and_half_the_identity():
    decisions = [both(ms) for ms in range(0, 500, 100)]
    decisions += [both(ms, 2, 1) for ms in range(500, 1000, 100)]
    result = followed(decisions)
    for part in (result, result['positions']):
        assert part['id_switches'] == 2
        assert part['mota'] == pytest.approx(1.0 - 2 / 20)
        assert part['idf1'] == pytest.approx(0.5)


def test_the_order_in_which_decisions_were_recorded_does_not_matter():
    decisions = [both(0), both(100), both(200, 3, 2), both(300, 3, 2)]
    assert followed(decisions) == followed(decisions[::-1])
    assert followed(decisions)['id_switches'] == 1


def test_who_is_missed_and_who_is_made_up_is_counted():
    ghost = track(9, moved(BOX, -150.0), (30.0, 0.0, 0.9))
    decisions = [decided(ms, track(1, BOX, HERE), ghost) for ms in range(0, 1000, 100)]
    result = followed(decisions)
    for part in (result, result['positions']):
        assert (part['false_negatives'], part['false_positives']) == (10, 10)
        assert part['mota'] == pytest.approx(0.0)
        assert (part['mostly_tracked'], part['mostly_lost']) == (1, 1)


def test_a_box_on_somebody_hidden_is_no_false_one():
    def people(ms):
        return [true_person(1, BOX, (10, 0, 0)), true_person(2, FAR, (10, 6, 0), visibility=0.2)]

    result = followed([both(0), both(100)], people)
    assert (result['false_positives'], result['true_positives']) == (0, 2)
    assert result['positions']['false_positives'] == 0


def test_a_track_2_m_away_is_with_somebody_and_one_further_away_is_not():
    for off, hits in ((1.99, 1), (2.01, 0)):
        track_off = track(1, BOX, (10.0, off, 0.9))
        result = followed([decided(0, track_off)], lambda ms: [true_person()])['positions']
        assert result['true_positives'] == hits
        assert result['false_positives'] == 1 - hits


def test_places_of_the_radar_alone_count_though_they_have_no_box():
    moving = track(1, None, HERE, label='moving')
    result = followed([decided(0, moving)], lambda ms: [true_person()])
    assert result['false_negatives'] == 1
    assert result['positions']['true_positives'] == 1


@pytest.mark.parametrize(
    ('label', 'track_label', 'wrong'),
    [
        ('dog', 'moving', 0),
        ('car', 'moving', 0),
        ('dog', 'person', 1),
        ('cyclist', 'person', 0),
        ('person', 'moving', 0),
    ],
)
def test_what_moves_may_be_followed_by_the_radar_and_only_people_as_people(
    label, track_label, wrong
):
    def people(ms):
        return [true_person(1), true_person(2, None, (10.0, 6.0, 0.0), label=label)]

    other = track(2, None, THERE, label=track_label)
    result = followed([decided(0, track(1), other)], people)['positions']
    assert (result['true_positives'], result['false_positives']) == (1, wrong)


def test_a_car_reaches_further_than_a_dog():
    for label, wrong in (('car', 0), ('dog', 1)):
        others = [true_person(2, None, (10.0, 9.0, 0.0), label=label)]
        result = followed(
            [decided(0, track(1, None, THERE, label='moving'))], lambda ms, o=others: o
        )
        assert result['positions']['false_positives'] == wrong


def test_a_track_at_no_place_is_with_nobody():
    lost = track(1, BOX, (np.nan, 0.0, 0.0))
    result = followed([decided(0, lost)], lambda ms: [true_person()])
    assert result['true_positives'] == 1
    assert result['positions']['true_positives'] == 0


def test_where_nobody_is_shares_are_not_numbers():
    result = followed([decided(0, track(1))], lambda ms: [])
    assert math.isnan(result['mota'])
    assert math.isnan(result['recall'])
    assert result['false_positives'] == 1
