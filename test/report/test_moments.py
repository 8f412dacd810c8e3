"""The moments of a run: each shows what its sentence says, and none is made up."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hand_made_truth import BOX, decided, film, moved, run, track, true_person

from mmedge_ros.core.data_types import Box
from mmedge_ros.report.moments import KINDS, moments_of

FAR = moved(BOX, 200.0)
TRUTH = film(lambda ms: [true_person(1), true_person(2, FAR)])


def kinds(record):
    return {moment.kind: moment for moment in moments_of(record)}


def test_best_and_worst_are_chosen_by_the_truth():
    good = decided(200, track(1), track(2, FAR))
    lost = decided(400, track(1))
    false = decided(600, track(1), track(2, FAR), track(3, moved(BOX, -150.0)))
    moments = kinds(run([decided(100, track(1, moved(BOX, 4.0))), good, lost, false], TRUTH))
    assert moments['best'].decision is good
    assert '2 of 2 people in view have a track' in moments['best'].sentence
    assert '1.00' in moments['best'].sentence
    assert moments['missed'].decision.window_end_ns <= lost.window_end_ns
    assert '1 of 2 people in view have no track' in moments['missed'].sentence
    assert moments['false'].decision is false
    assert '1 of 3 boxes meet no person' in moments['false'].sentence


def test_people_without_a_track_in_the_first_second_are_not_the_worst():
    truth = film(lambda ms: [true_person(1), true_person(2, FAR)], end=2000)
    later = decided(1500, track(1))
    record = run([decided(100), later, decided(1600, track(1), track(2, FAR))], truth)
    assert kinds(record)['missed'].decision is later


def test_a_change_of_id_is_a_moment():
    first, second = decided(200, track(1)), decided(400, track(5))
    moments = kinds(run([first, second], film(lambda ms: [true_person(1)])))
    assert moments['renamed'].decision is second
    assert 'was track 1 before is track 5' in moments['renamed'].sentence


def test_what_did_not_occur_is_no_moment():
    record = run([decided(200, track(1), track(2, FAR))], TRUTH)
    assert set(kinds(record)) == {'best', 'slowest'}
    assert moments_of(run([], TRUTH)) == []
    assert moments_of(run([])) == []


def test_the_slowest_is_not_sought_in_the_warm_up():
    times = {100: 190, 200: 205, 300: 330, 400: 405}
    decisions = [decided(end, published=when) for end, when in times.items()]
    slowest = kinds(replace(run(decisions), warmup=1))['slowest']
    assert slowest.decision is decisions[2]
    assert '30.0 ms after its window' in slowest.sentence
    assert 'within 5.0 ms' in slowest.sentence


def test_without_truth_the_crowd_and_the_least_certain_place_are_shown():
    alone = decided(200, track(1, spread=4.0))
    crowd = decided(300, track(1), track(2, FAR), track(3, None, spread=100.0))
    moments = kinds(run([alone, crowd]))
    assert moments['crowded'].decision is crowd
    assert moments['crowded'].sentence.startswith('2 tracks')
    assert moments['uncertain'].decision is alone  # the third is not in the picture
    assert '2.8 m' in moments['uncertain'].sentence


@pytest.mark.parametrize('edge', [float('nan'), float('inf')])
def test_tracks_that_diverged_do_no_harm(edge):
    wild = track(1, Box(0.0, 0.0, edge, edge), spread=edge)
    for truth in (None, TRUTH):
        moments = moments_of(run([decided(100, wild)], truth))
        assert {moment.kind for moment in moments} <= set(KINDS)
