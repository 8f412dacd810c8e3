"""How steadily people are followed, by their boxes and by where they are."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hand_made_truth import BOX, decided, film, moved, run, track, true_person

from mmedge_ros.report.accuracy import accuracy_of

FAR = moved(BOX, 150.0)
HERE, THERE = (10.0, 0.0, 0.9), (10.0, 6.0, 0.9)


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
