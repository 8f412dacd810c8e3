"""Which tracks are put together as one object."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hand_made_walkers import walker

from mmedge_ros.questions.observations import ObservedTrack
from mmedge_ros.questions.tracklets import (
    MERGE,
    evidence,
    likeness,
    merged,
    probability_of_one,
    seen_together,
)


def _ids(*tracks: ObservedTrack) -> list[list[int]]:
    return sorted(sorted(track.id for track in group) for group in merged(tracks))


def test_a_track_that_goes_on_where_another_broke_off_is_the_same_person() -> None:
    assert _ids(walker(1, 0.0, 2.0), walker(2, 2.3, 5.0)) == [[1, 2]]


def test_tracks_seen_at_the_same_instant_are_two_however_near() -> None:
    one, other = walker(1, 0.0, 2.0), walker(2, 2.0, 5.0)
    assert seen_together([one, other]).all()
    assert _ids(one, other) == [[1], [2]]


def test_a_track_that_only_coasts_while_another_begins_may_be_the_same() -> None:
    coasting = walker(1, 0.0, 3.0)
    coasting = replace(coasting, seen=coasting.stamps_ns <= 2_000_000_000)
    assert _ids(coasting, walker(2, 2.2, 5.0)) == [[1, 2]]


def test_three_pieces_of_one_way_are_one_and_pieces_seen_at_once_stay_apart() -> None:
    pieces = (walker(1, 0.0, 2.0), walker(2, 2.2, 4.0), walker(3, 4.2, 6.0))
    beside = walker(4, 3.9, 6.0, place=(10.3, 0.0))
    groups = _ids(*pieces, beside)
    assert [1, 2, 3] in groups
    assert [4] in groups


def test_a_piece_in_the_midst_of_an_interrupted_track_is_put_into_it() -> None:
    whole = walker(1, 0.0, 6.0)
    hole = (whole.stamps_ns > 2_000_000_000) & (whole.stamps_ns < 4_000_000_000)
    assert _ids(replace(whole, seen=~hole), walker(2, 2.2, 3.8)) == [[1, 2]]


def test_nobody_is_faster_than_people_are() -> None:
    before, away = walker(1, 0.0, 2.0), walker(2, 2.5, 5.0, place=(30.0, 0.0))
    assert probability_of_one(before, away) == 0.0
    car = replace(before, label='car'), replace(away, label='car', deviations=np.full(26, 5.0))
    assert evidence(*car) is not None


def test_after_a_long_time_nothing_is_foreseen() -> None:
    long = MERGE.longest_gap + 1.0
    still = (0.0, 0.0)
    again = walker(2, 2.0 + long, 3.0 + long, velocity=still)
    assert probability_of_one(walker(1, 0.0, 2.0, velocity=still), again) == 0.0


def test_the_later_the_farther_and_the_less_alike_the_less_probable() -> None:
    before = walker(1, 0.0, 2.0, looks=(1.0, 0.0, 1.0))
    usual = probability_of_one(before, walker(2, 2.3, 5.0, looks=(1.0, 0.0, 1.0)))
    others = [
        walker(2, 4.3, 5.0, looks=(1.0, 0.0, 1.0)),
        walker(2, 2.3, 5.0, place=(11.5, 0.0), looks=(1.0, 0.0, 1.0)),
        walker(2, 2.3, 5.0, looks=(1.0, 1.0, 0.0)),
    ]
    assert all(probability_of_one(before, other) < usual for other in others)


def test_the_order_of_two_tracks_does_not_matter() -> None:
    one, other = walker(1, 0.0, 2.0), walker(2, 2.3, 5.0, place=(10.8, 0.0))
    assert probability_of_one(one, other) == probability_of_one(other, one)


def test_looks_without_views_or_of_other_encoders_say_nothing() -> None:
    none, two = np.zeros((0, 0), np.float32), np.ones((1, 2), np.float32)
    assert likeness(none, two) is None
    assert likeness(two, np.ones((1, 3), np.float32)) is None
    assert likeness(two, np.zeros((1, 2), np.float32)) is None
    assert likeness(two, 3.0 * two) == pytest.approx(1.0)


def test_tracks_that_were_never_seen_are_nobody_and_places_that_are_none_join_nothing() -> None:
    blind = replace(walker(1, 0.0, 2.0), seen=np.zeros(21, bool))
    nowhere = replace(walker(2, 0.0, 2.0), positions=np.full((21, 3), np.nan))
    assert _ids(blind, nowhere, walker(3, 2.3, 3.0)) == [[2], [3]]
    assert merged([]) == []
