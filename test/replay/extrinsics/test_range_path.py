"""The range of one walking body among other returns."""

from __future__ import annotations

import numpy as np

from mmedge_ros.replay.extrinsics.range_path import range_path


def test_the_path_follows_a_walker_through_clutter() -> None:
    random = np.random.default_rng(1)
    times = np.repeat(np.arange(0.0, 10.0, 0.05), 3)
    truth = 8.0 + 3.0 * np.sin(0.4 * times)
    velocities = 1.2 * np.cos(0.4 * times)
    clutter = random.random(len(times)) < 0.3
    ranges = np.where(clutter, random.uniform(4, 14, len(times)), truth)
    path = range_path(times, ranges, velocities, np.ones(len(times)))
    assert path is not None
    off = np.interp(times, path.times, path.ranges) - truth
    assert np.abs(off).max() < 0.5


def test_where_two_cross_doppler_says_who_is_who() -> None:
    times = np.arange(0.0, 6.0, 0.05)
    going, coming = 6.0 + times, 12.0 - times
    both = np.concatenate([going, coming])
    velocities = np.repeat([1.0, -1.0], len(times))
    weights = np.repeat([1.0, 0.6], len(times))
    path = range_path(np.tile(times, 2), both, velocities, weights)
    assert path is not None
    assert np.abs(np.interp(times, path.times, path.ranges) - going).max() < 0.5


def test_times_that_lie_years_apart_make_no_path() -> None:
    times = np.array([0.0, 1e8])
    assert range_path(times, np.ones(2), np.zeros(2), np.ones(2)) is None
