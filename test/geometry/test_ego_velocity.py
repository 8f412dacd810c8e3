"""The radar's own velocity from the returns of a world that stands still."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from mmedge_ros.core.data_types import FloatArray
from mmedge_ros.geometry.ego_velocity import ego_velocity


def static_world(count: int, own: FloatArray, seed: int = 1) -> tuple[FloatArray, FloatArray]:
    random = np.random.default_rng(seed)
    azimuth, distance = random.uniform(-0.9, 0.9, count), random.uniform(2.0, 20.0, count)
    points = np.column_stack(
        [distance * np.cos(azimuth), distance * np.sin(azimuth), random.uniform(-1, 1, count)]
    )
    rays = points / np.linalg.norm(points, axis=1, keepdims=True)
    return points, -rays @ own + random.normal(0.0, 0.03, count)


def walker(seed: int = 2) -> tuple[FloatArray, FloatArray]:
    random = np.random.default_rng(seed)
    points = np.array([5.0, 0.5, 0.0]) + random.normal(0.0, 0.2, (6, 3))
    return points, 1.2 + random.normal(0.0, 0.2, 6)


@given(st.floats(-8.0, 8.0), st.floats(-8.0, 8.0), st.integers(0, 1000))
def test_the_velocity_of_the_sensor_is_found_beside_a_walker(
    forward: float, left: float, seed: int
) -> None:
    own = np.array([forward, left, 0.0])
    points, speeds = static_world(25, own, seed)
    people, walking = walker(seed)
    found = ego_velocity(np.concatenate([points, people]), np.concatenate([speeds, walking]))
    assert found is not None
    np.testing.assert_allclose(found, own, atol=0.35)


def test_a_group_of_walkers_is_not_taken_for_the_world() -> None:
    points, speeds = static_world(8, np.zeros(3))
    people, walking = walker()
    found = ego_velocity(np.concatenate([points, people]), np.concatenate([speeds, walking]))
    np.testing.assert_array_equal(found, np.zeros(3))


def test_a_walker_alone_gives_no_answer() -> None:
    assert ego_velocity(*walker()) is None


def test_unknown_velocities_and_empty_scans_give_no_answer() -> None:
    points, speeds = static_world(20, np.zeros(3))
    assert ego_velocity(points, np.full_like(speeds, np.nan)) is None
    assert ego_velocity(np.zeros((0, 3)), np.zeros(0)) is None


@given(st.integers(0, 60), st.integers(0, 2**32 - 1))
def test_any_scan_is_answered_with_a_finite_velocity_or_none(count: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    points, speeds = random.normal(0.0, 10.0, (count, 3)), random.normal(0.0, 5.0, count)
    found = ego_velocity(points, speeds)
    assert found is None or np.isfinite(found).all()
