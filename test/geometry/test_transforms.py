"""Rigid transforms and their tree."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mmedge_ros.geometry import GeometryError
from mmedge_ros.geometry.transforms import (
    Transform,
    TransformTree,
    format_static_transform,
    parse_static_transform,
    quaternion_from_rotation,
    rotation_from_quaternion,
    static_transform,
)

# The night recording's edge radar_link -> camera_color_optical_frame.
OPTICAL = static_transform('radar', 'optical', (0.0, -0.07, -0.05), (-0.5, 0.5, -0.5, 0.5))
MOUNT = static_transform('base', 'radar', (0.3, 0.0, -0.1), (0.0, 0.0, 0.6, 0.8))

component = st.floats(-1.0, 1.0)
quaternions = st.tuples(component, component, component, component).filter(
    lambda q: sum(part * part for part in q) > 1e-4
)
points = st.lists(st.tuples(*[st.floats(-100, 100)] * 3), min_size=1, max_size=5)


def test_a_point_ahead_of_the_radar_lies_along_the_optical_axis() -> None:
    tree = TransformTree([OPTICAL])
    seen = tree.lookup('optical', 'radar').apply([[5.0, 1.0, 0.5]])
    # p_optical = R^T (p_radar - t): x right = -y, y down = -z, z forward = x.
    np.testing.assert_allclose(seen, [[-(1.0 + 0.07), -(0.5 + 0.05), 5.0]], atol=1e-12)
    r, t = OPTICAL.rotation, OPTICAL.translation
    np.testing.assert_allclose(seen[0], r.T @ (np.array([5.0, 1.0, 0.5]) - t))


def test_a_lookup_follows_the_tree_up_and_down() -> None:
    tree = TransformTree([OPTICAL, MOUNT])
    tree.add('base', 'imu', Transform(np.eye(3), np.array([0.0, 0.0, 1.0])))
    through = tree.lookup('imu', 'optical').apply([1.0, 2.0, 3.0])
    by_hand = MOUNT.transform.apply(OPTICAL.transform.apply([1.0, 2.0, 3.0])) - [0, 0, 1]
    np.testing.assert_allclose(through, by_hand)
    np.testing.assert_allclose(tree.lookup('radar', 'radar').apply([1.0, 2.0, 3.0]), [1, 2, 3])


@given(quaternion=quaternions, shift=st.tuples(*[st.floats(-10, 10)] * 3), cloud=points)
def test_the_inverse_undoes_a_transform_and_lengths_stay(
    quaternion: tuple[float, ...], shift: tuple[float, ...], cloud: list[tuple[float, ...]]
) -> None:
    edge = static_transform('a', 'b', shift, quaternion).transform
    moved = edge.apply(cloud)
    np.testing.assert_allclose(edge.inverse().apply(moved), cloud, atol=1e-9)
    np.testing.assert_allclose(edge.compose(edge.inverse()).apply(cloud), cloud, atol=1e-9)
    np.testing.assert_allclose(
        np.linalg.norm(edge.rotate(cloud), axis=1), np.linalg.norm(cloud, axis=1), atol=1e-9
    )


@given(first=quaternions, second=quaternions, cloud=points)
def test_composition_applies_the_inner_one_first(
    first: tuple[float, ...], second: tuple[float, ...], cloud: list[tuple[float, ...]]
) -> None:
    inner = static_transform('a', 'b', (1.0, 2.0, 3.0), first).transform
    outer = static_transform('a', 'b', (-4.0, 0.0, 5.0), second).transform
    np.testing.assert_allclose(
        outer.compose(inner).apply(cloud), outer.apply(inner.apply(cloud)), atol=1e-9
    )


@given(quaternion=quaternions, scale=st.floats(0.01, 1000.0))
def test_a_quaternion_of_any_length_gives_a_rotation(
    quaternion: tuple[float, ...], scale: float
) -> None:
    rotation = rotation_from_quaternion(*(scale * part for part in quaternion))
    np.testing.assert_allclose(rotation @ rotation.T, np.eye(3), atol=1e-9)
    assert np.linalg.det(rotation) == pytest.approx(1.0)
    back = rotation_from_quaternion(*quaternion_from_rotation(rotation))
    np.testing.assert_allclose(back, rotation, atol=1e-9)


@pytest.mark.parametrize(
    'quaternion',
    [
        (0.0, 0.0, 0.0, 0.0),
        (1e-9, 0.0, 0.0, 0.0),
        (float('nan'), 0.0, 0.0, 1.0),
        (float('inf'), 0.0, 0.0, 1.0),
    ],
)
def test_what_is_no_rotation_is_an_error(quaternion: tuple[float, ...]) -> None:
    with pytest.raises(GeometryError, match=r"'radar' -> 'camera'.*not a quaternion"):
        static_transform('radar', 'camera', (0.0, 0.0, 0.0), quaternion)


@pytest.mark.parametrize(
    ('parent', 'child', 'shift', 'turn', 'reason'),
    [
        ('', 'b', (0, 0, 0), (0, 0, 0, 1), 'non-empty'),
        ('a', '/a', (0, 0, 0), (0, 0, 0, 1), 'different'),
        ('a', 'b', (0, 0), (0, 0, 0, 1), 'three finite numbers'),
        ('a', 'b', (0, 0, float('nan')), (0, 0, 0, 1), 'three finite numbers'),
        ('a', 'b', (0, 0, 0), (0, 0, 1), r'not \(x, y, z, w\)'),
    ],
)
def test_an_edge_that_cannot_be_is_an_error(
    parent: str, child: str, shift: tuple[float, ...], turn: tuple[float, ...], reason: str
) -> None:
    with pytest.raises(GeometryError, match=reason):
        static_transform(parent, child, shift, turn)


@given(quaternion=quaternions, shift=st.tuples(*[st.floats(-100, 100)] * 3))
def test_an_edge_survives_being_written_as_a_parameter(
    quaternion: tuple[float, ...], shift: tuple[float, ...]
) -> None:
    edge = static_transform('radar', 'camera', shift, quaternion)
    back = parse_static_transform(format_static_transform(edge))
    assert (back.parent, back.child) == (edge.parent, edge.child)
    np.testing.assert_allclose(back.translation, edge.translation, rtol=1e-8)
    np.testing.assert_allclose(back.rotation, edge.rotation, atol=1e-7)


@pytest.mark.parametrize(
    'text', ['', 'a', 'a b 1 2 3', 'a b 1 2 3 0 0 0 one', 'a a 0 0 0 0 0 0 1']
)
def test_a_parameter_that_is_no_edge_is_an_error(text: str) -> None:
    with pytest.raises(GeometryError, match='transform'):
        parse_static_transform(text)


def test_an_unknown_frame_brings_up_the_known_ones() -> None:
    tree = TransformTree([OPTICAL, MOUNT])
    with pytest.raises(GeometryError, match=r"unknown frame 'lidar'; .*: base, optical, radar"):
        tree.lookup('base', 'lidar')
    with pytest.raises(GeometryError, match='know: none'):
        TransformTree().root_of('base')


def test_frames_that_nothing_connects_are_an_error() -> None:
    tree = TransformTree([OPTICAL])
    tree.add('map', 'odom', Transform.identity())
    with pytest.raises(GeometryError, match=r"no transform connects 'odom' .*'map'.*'optical'"):
        tree.lookup('optical', 'odom')


def test_an_edge_that_closes_a_cycle_is_refused() -> None:
    tree = TransformTree([OPTICAL, MOUNT])
    with pytest.raises(GeometryError, match='closes a cycle'):
        tree.add('optical', 'base', Transform.identity())
    with pytest.raises(GeometryError, match='closes a cycle'):
        tree.add('base', 'base', Transform.identity())
    assert tree.root_of('optical') == 'base'


def test_a_later_edge_replaces_an_earlier_one() -> None:
    tree = TransformTree([MOUNT])
    tree.add('mast', 'radar', Transform(np.eye(3), np.array([0.0, 0.0, 2.0])))
    assert tree.root_of('radar') == 'mast'
    np.testing.assert_array_equal(tree.lookup('mast', 'radar').apply([0, 0, 0]), [0, 0, 2])
    assert tree.root_of('mast') == 'mast'
