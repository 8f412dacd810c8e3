"""Rotation vectors and matrices, against scipy's."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from mmedge_ros.geometry.rotations import cross, ray_covariances, rotation_by, rotation_vector

directions = st.tuples(*[st.floats(-1.0, 1.0)] * 3).filter(lambda v: np.linalg.norm(v) > 0.1)
angles = st.floats(0.0, 3.1) | st.sampled_from([1e-12, 1e-9, 1e-6, 3.14159])


@given(directions, angles)
def test_both_ways_agree_with_scipy(direction: tuple[float, ...], angle: float) -> None:
    vector = angle * np.array(direction) / np.linalg.norm(direction)
    turned = rotation_by(vector)
    np.testing.assert_allclose(turned, Rotation.from_rotvec(vector).as_matrix(), atol=1e-14)
    expected = Rotation.from_matrix(turned).as_rotvec()
    np.testing.assert_allclose(rotation_vector(turned), expected, atol=1e-9)
    np.testing.assert_allclose(rotation_vector(turned), vector, atol=1e-9)


@pytest.mark.parametrize('axis', [0, 1, 2])
def test_half_a_turn_is_about_its_axis(axis: int) -> None:
    turned = -np.eye(3)
    turned[axis, axis] = 1.0
    np.testing.assert_allclose(np.abs(rotation_vector(turned)), np.pi * np.eye(3)[axis])


DOWN = np.array([0.0, 0.0, -1.0])
vectors = st.tuples(*[st.floats(-1.0, 1.0)] * 3).filter(lambda v: np.hypot(v[0], v[1]) > 0.01)
deviations = st.floats(0.01, 20.0)


def spread(
    ray: tuple[float, ...], radial: float, across: float, along: float, down: np.ndarray = DOWN
) -> np.ndarray:
    of_one = [np.array([deviation]) for deviation in (radial, across, along)]
    return ray_covariances(np.array([ray]), down, *of_one)[0]


@given(vectors, deviations, deviations, deviations)
def test_each_axis_has_its_deviation(
    vector: tuple[float, ...], radial: float, across: float, along: float
) -> None:
    ray = np.array(vector) / np.linalg.norm(vector)
    level = np.array([ray[1], -ray[0], 0.0]) / np.hypot(ray[0], ray[1])
    found = spread(ray, radial, across, along)
    axes = np.stack([ray, level, np.cross(ray, level)])
    expected = np.diag(np.square([radial, across, along]))
    np.testing.assert_allclose(axes @ found @ axes.T, expected, atol=1e-10)


def test_straight_down_no_direction_stands_out() -> None:
    np.testing.assert_array_equal(spread((0.0, 0.0, -1.0), 0.5, 3.0, 2.0), 9.0 * np.eye(3))


def test_many_are_as_each_alone() -> None:
    random = np.random.default_rng(4)
    rays = random.normal(size=(6, 3))
    rays /= np.linalg.norm(rays, axis=1, keepdims=True)
    rays[2] = (0.0, 0.0, 1.0)
    radial, across, along = random.uniform(0.1, 3.0, (3, 6))
    together = ray_covariances(rays, DOWN, radial, across, along)
    for i, ray in enumerate(rays):
        alone = spread(tuple(ray), radial[i], across[i], along[i])
        np.testing.assert_allclose(together[i], alone, rtol=1e-12, atol=1e-14)


@given(vectors, vectors)
def test_the_cross_product_is_numpys(first: tuple[float, ...], second: tuple[float, ...]) -> None:
    found = cross(np.array(first), np.array(second))
    np.testing.assert_array_equal(found, np.cross(first, second))
