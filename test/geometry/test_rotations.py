"""Rotation vectors and matrices, against scipy's."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from mmedge_ros.geometry.rotations import rotation_by, rotation_vector

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


def test_no_turn_is_the_vector_of_no_length() -> None:
    np.testing.assert_array_equal(rotation_vector(np.eye(3)), np.zeros(3))
    np.testing.assert_array_equal(rotation_by(np.zeros(3)), np.eye(3))
