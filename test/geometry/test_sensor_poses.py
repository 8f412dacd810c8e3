"""Where the sensors are, and what is said where that is not known."""

from __future__ import annotations

import numpy as np
import pytest
from hand_made_units import LENS

from mmedge_ros.geometry.sensor_poses import OPTICAL_TO_BODY, resolve_geometry
from mmedge_ros.geometry.transforms import StampedTransform, TransformTree


def edge(
    parent: str, child: str, x: float, rotation: np.ndarray | None = None
) -> StampedTransform:
    return StampedTransform(
        parent, child, np.array([x, 0.0, 0.0]), np.eye(3) if rotation is None else rotation
    )


def test_tracks_live_in_base_link_where_the_tree_knows_it() -> None:
    tree = TransformTree(
        [
            edge('world', 'base_link', 50.0),
            edge('base_link', 'radar_link', 0.2),
            edge('radar_link', 'camera_optical', 0.1, OPTICAL_TO_BODY),
        ]
    )
    geometry = resolve_geometry(tree, LENS, 'camera_optical', 'radar_link')
    assert geometry.frame_id == 'base_link'
    assert geometry.degraded == ()
    np.testing.assert_allclose(geometry.radar_pose.translation, [0.2, 0, 0])
    np.testing.assert_allclose(geometry.camera_pose.translation, [0.3, 0, 0])
    np.testing.assert_allclose(geometry.camera_pose.apply([0, 0, 5.0]), [5.3, 0, 0], atol=1e-12)


def test_without_base_link_they_live_in_the_root_above_the_sensors() -> None:
    tree = TransformTree([edge('radar_link', 'camera_optical', 0.1, OPTICAL_TO_BODY)])
    geometry = resolve_geometry(tree, LENS, 'camera_optical', 'radar_link')
    assert geometry.frame_id == 'radar_link'
    assert any('base_link' in text for text in geometry.degraded)
    np.testing.assert_allclose(geometry.radar_pose.translation, 0)


@pytest.mark.parametrize('edges', [[], [edge('somewhere', 'else', 1.0)]])
def test_sensors_nobody_placed_are_assumed_to_look_forward_and_that_is_said(
    edges: list[StampedTransform],
) -> None:
    geometry = resolve_geometry(TransformTree(edges), LENS, 'camera_optical', 'radar_link')
    assert geometry.frame_id == 'base_link'
    np.testing.assert_allclose(geometry.camera_pose.apply([0, 0, 5.0]), [5, 0, 0])
    np.testing.assert_allclose(geometry.camera_pose.apply([1.0, 0, 5.0]), [5, -1, 0])
    np.testing.assert_allclose(geometry.camera_pose.apply([0, 1.0, 5.0]), [5, 0, -1])
    assert sum('assumed' in text for text in geometry.degraded) == 2


def test_a_sensor_in_the_tracking_frame_itself_needs_no_transform() -> None:
    geometry = resolve_geometry(TransformTree(), None, '', 'base_link')
    assert geometry.degraded == ()
    np.testing.assert_array_equal(geometry.radar_pose.translation, 0)


def test_a_sensor_in_a_tree_of_its_own_is_assumed_too() -> None:
    tree = TransformTree([edge('base_link', 'radar_link', 0.2), edge('mast', 'camera', 0.2)])
    geometry = resolve_geometry(tree, LENS, 'camera', 'radar_link')
    assert geometry.frame_id == 'base_link'
    (said,) = geometry.degraded
    assert 'base_link to camera' in said


def test_a_camera_without_calibration_is_reported() -> None:
    tree = TransformTree([edge('base_link', 'camera', 0.0, OPTICAL_TO_BODY)])
    assert any('calibration' in t for t in resolve_geometry(tree, None, 'camera').degraded)
    assert resolve_geometry(tree, None, '', 'radar').camera is None
    assert not any('calibration' in t for t in resolve_geometry(tree, None).degraded)
