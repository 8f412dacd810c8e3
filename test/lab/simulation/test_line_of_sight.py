"""What hides what, against looking along each ray in small steps."""

from __future__ import annotations

import numpy as np
import pytest
from hand_made_world import house
from numpy.typing import NDArray

from mmedge_ros.data_types import FloatArray
from mmedge_ros.lab.simulation.line_of_sight import FOLIAGE_LOSS, LineOfSight
from mmedge_ros.lab.simulation.world import Building, Plant

RANDOM = np.random.default_rng(5)


def turned_house(x: float, y: float, angle: float, height: float) -> Building:
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    corners = np.array([[-3.0, -2.0], [3.0, -2.0], [3.0, 2.0], [-3.0, 2.0]]) @ turn.T
    return Building(corners + np.array([x, y]), height, (90, 90, 90), 1)


def tree(x: float, y: float) -> Plant:
    return Plant(np.array([x, y]), 2.0, 0.2, 1.5, 4.0, (40, 90, 40), 1)


def inside(building: Building, points: FloatArray) -> NDArray[np.bool_]:
    edges = np.roll(building.footprint, -1, axis=0) - building.footprint
    away = points[:, None, :2] - building.footprint
    left = edges[:, 0] * away[..., 1] - edges[:, 1] * away[..., 0] > 0
    return np.asarray(left.all(axis=1) & (points[:, 2] < building.height), bool)


def test_blocked_agrees_with_walking_along_the_rays() -> None:
    houses = [
        turned_house(*RANDOM.uniform(-15, 15, 2), RANDOM.uniform(0, 3), RANDOM.uniform(2, 8))
        for _ in range(8)
    ]
    sight = LineOfSight(houses, [])
    agreeing = asked = hidden = 0
    for _ in range(12):
        eye = np.array([*RANDOM.uniform(-25, 25, 2), RANDOM.uniform(0.5, 7.0)])
        points = np.column_stack([RANDOM.uniform(-25, 25, (40, 2)), RANDOM.uniform(0, 5, 40)])
        if any(inside(h, eye[None]).any() for h in houses):
            continue
        found = sight.blocked(eye, points)
        steps = np.linspace(0.0, 1.0, 400)[:, None]
        for point, is_blocked in zip(points, found, strict=True):
            along = eye + steps * (point - eye)
            walked = any(inside(h, along).any() for h in houses)
            agreeing += walked == is_blocked
            asked, hidden = asked + 1, hidden + walked
    assert 0.2 * asked < hidden < 0.8 * asked
    # Rays that graze a corner may fall between two steps.
    assert agreeing >= 0.98 * asked


def test_a_wall_does_not_hide_itself() -> None:
    sight = LineOfSight([house(10.0, 0.0)], [])
    eye = np.array([0.0, 0.0, 2.0])
    front, back = np.array([[9.99, 1.0, 3.0]]), np.array([[14.01, 1.0, 3.0]])
    assert not sight.blocked(eye, front).any()
    assert sight.blocked(eye, back).all()


def test_a_ray_along_a_wall_is_free() -> None:
    sight = LineOfSight([house(10.0, 5.0, width=4.0)], [])
    eye = np.array([0.0, 3.0, 1.0])
    assert not sight.blocked(eye, np.array([[30.0, 2.9, 1.0]])).any()
    assert not sight.blocked(eye - np.array([0.0, 0.1, 0.0]), np.array([[30.0, 2.9, 1.0]])).any()


def test_a_crown_takes_by_the_metres_of_leaves() -> None:
    sight = LineOfSight([], [tree(10.0, 0.0), tree(20.0, 0.0)])
    eye = np.array([0.0, 0.0, 4.0])  # the crowns' middle
    points = np.array([[5.0, 0.0, 4.0], [15.0, 0.0, 4.0], [30.0, 0.0, 4.0], [10.0, 0.0, 4.0]])
    metres = sight.foliage(eye, points) / FOLIAGE_LOSS
    assert metres == pytest.approx([0.0, 3.0, 6.0, 1.5], abs=1e-6)


def test_under_a_crown_nothing_is_taken() -> None:
    sight = LineOfSight([], [tree(10.0, 0.0)])
    assert sight.foliage(np.array([0.0, 0.0, 1.0]), np.array([[20.0, 0.0, 1.0]]))[0] == 0.0


def test_open_country_hides_nothing() -> None:
    sight = LineOfSight([], [])
    points = RANDOM.uniform(-20, 20, (7, 3))
    assert not sight.blocked(np.zeros(3), points).any()
    assert (sight.foliage(np.zeros(3), points) == 0.0).all()
    assert sight.blocked(np.zeros(3), np.zeros((0, 3))).shape == (0,)
    assert sight.foliage(np.zeros(3), np.zeros((0, 3))).shape == (0,)
