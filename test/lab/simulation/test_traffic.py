from __future__ import annotations

import itertools

import numpy as np

from mmedge_lab.simulation.traffic import draw_passes, loop_around
from mmedge_lab.simulation.world import Strip

ROAD = Strip(np.column_stack([np.linspace(-90.0, 90.0, 61), np.full(61, 2.0)]), 7.0, 'asphalt')
STAGE = np.zeros(2)


def test_a_loop_keeps_to_the_right_on_both_ways() -> None:
    loop = loop_around(ROAD, 1.7)
    step = np.roll(loop.points, -1, axis=0) - loop.points
    assert np.hypot(*step.T).max() < 0.3, 'closed and without gaps'
    inner = np.abs(loop.points[:, 0]) < 80.0
    side = np.sign(step[inner, 0]) * (loop.points[inner, 1] - 2.0)
    np.testing.assert_allclose(side, -1.7, atol=1e-6)


def test_vehicles_pass_the_stage_and_never_each_other() -> None:
    for seed in range(8):
        random = np.random.default_rng(seed)
        courses = draw_passes(loop_around(ROAD, 1.7), 8.0, 3, STAGE, 10.0, random)
        assert 1 <= len(courses) <= 3
        for course in courses:
            assert np.hypot(*course.positions.T).min() < 6.0
            speed = np.hypot(*np.diff(course.positions, axis=0).T) / course.step
            # It slows down where it turns round, far away.
            speed = speed[10:-10][np.abs(course.positions[10:-11, 0]) < 80.0]
            assert speed.min() > 5.0
            assert speed.max() < 11.0
        for one, other in itertools.combinations(courses, 2):
            assert np.hypot(*(one.positions - other.positions).T).min() > 2.5
