"""Decisions become tracks over time."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hand_made_sights import decided, sighted, standing

from mmedge_ros.questions.observations import observations_of


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


def test_of_nothing_nothing_is_known() -> None:
    seen = observations_of([])
    assert (seen.tracks, seen.begin_ns, seen.end_ns) == ((), 0, 0)
