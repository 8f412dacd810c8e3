"""Decisions become tracks over time."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hand_made_sights import decided, sighted, standing

from mmedge_ros.questions.observations import ObservationLog, observations_of


def test_tracks_are_collected_in_the_order_of_time_whatever_the_order_of_decisions() -> None:
    one, two = sighted(1, 3, 0, standing()), sighted(2, 3, 1, standing(300.0))
    wide = replace(two, box=None, covariance=np.diag([4.0, 1.0, 1.0, 1.0, 1.0, 1.0]))
    seen = observations_of([decided(2.0, one, wide), decided(1.0, one)])
    assert seen.stamps_ns.tolist() == [1_000_000_000, 2_000_000_000]
    assert [track.id for track in seen.tracks] == [1, 2]
    first, second = seen.tracks
    assert (first.begin_ns, first.end_ns) == (1_000_000_000, 2_000_000_000)
    assert first.positions.tolist() == [[10.0, 1.0, 0.0]] * 2
    assert first.seen.tolist() == [True, True]
    assert second.seen.tolist() == [False]
    assert second.deviations.tolist() == [2.0]
    assert seen.track(2) is second
    assert seen.track(3) is None
    assert seen.frame_id == 'odom'


def test_a_label_from_elsewhere_is_one_line_without_what_a_terminal_obeys() -> None:
    named = replace(sighted(1, 3, 0, standing()), label='per\nson\x1b[2J' + 'x' * 100_000)
    (track,) = observations_of([decided(1.0, named)]).tracks
    assert track.label.startswith('per son [2Jx')
    assert len(track.label) <= 64


def test_of_nothing_nothing_is_known() -> None:
    seen = observations_of([])
    assert (seen.tracks, seen.begin_ns, seen.end_ns) == ((), 0, 0)


def test_a_clock_that_was_set_back_and_another_frame_begin_anew() -> None:
    log = ObservationLog(1000)
    person = sighted(1, 3, 0, standing())
    for seconds in (100.0, 101.0, 100.5):
        log.add(decided(seconds, person))
    assert log.observations().stamps_ns.tolist() == [100 * 10**9, 100_500_000_000, 101 * 10**9]
    log.add(decided(50.0))
    assert (len(log.observations().stamps_ns), log.observations().tracks) == (1, ())
    log.add(replace(decided(51.0), frame_id='map'))
    assert (len(log.observations().stamps_ns), log.observations().frame_id) == (1, 'map')


def test_what_is_kept_is_bounded_and_the_oldest_is_kept_most_coarsely() -> None:
    log = ObservationLog(1000)
    person = sighted(1, 3, 0, standing())
    for step in range(5000):
        log.add(decided(step / 10, person))
        assert len(log) <= 1000
    stamps = log.observations().stamps_ns
    gaps = np.diff(stamps)
    assert (stamps[0], stamps[-1]) == (0, 499_900_000_000)
    assert (gaps[-200:] == 100_000_000).all()
    # Evenly spread, the older half would be 1.8 s apart.
    assert gaps.max() <= 8 * 10**9
    assert log.observations().tracks[0].stamps_ns.tolist() == stamps.tolist()


def test_a_flood_of_tracks_or_labels_is_refused() -> None:
    log = ObservationLog(10_000)
    person = sighted(1, 3, 0, standing())
    with pytest.raises(ValueError, match='1001 tracks at once'):
        log.add(decided(1.0, *[person] * 1001))
    log.add(decided(1.0, *[replace(person, label=f'label {n}') for n in range(1000)]))
    with pytest.raises(ValueError, match='more than 1000 labels'):
        log.add(decided(2.0, replace(person, label='one more')))
    assert len(log) == 1001
