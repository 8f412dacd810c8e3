"""How far away a person stands who fills a box."""

from __future__ import annotations

import numpy as np
import pytest

from mmedge_ros.core.data_types import Box, Detection
from mmedge_ros.geometry.projection import CameraModel
from mmedge_ros.geometry.sensor_poses import OPTICAL_TO_BODY, SensorGeometry
from mmedge_ros.geometry.transforms import Transform
from mmedge_ros.tracking.box_placement import place_boxes, standing_distance

CAMERA = CameraModel(
    640, 480, np.array([[457.0, 0, 320], [0, 457.0, 240], [0, 0, 1]]), np.zeros(0), 'none'
)
LEVEL = SensorGeometry(
    'base_link', CAMERA, Transform(OPTICAL_TO_BODY, np.zeros(3)), Transform.identity()
)


def unit(*vector: float) -> np.ndarray:
    return np.array([vector]) / np.linalg.norm(vector)


@pytest.mark.parametrize('above', [0.0, 2.0, 5.0, 20.0])
def test_rays_to_head_and_feet_give_the_distance_from_any_height(above: float) -> None:
    # The bounding rays of a cylinder of 1.68 m and 0.25 m radius, 10 m away on the ground.
    far, near = (10.25, 9.75) if above > 1.68 else (10.0, 10.0)
    top, bottom = unit(far, 0.0, 1.68 - above), unit(near, 0.0, -above)
    centre = unit(10.0, 0.0, 0.84 - above)
    (distance,) = standing_distance(centre, top, bottom, 1.68)
    assert distance == pytest.approx(np.hypot(10.0, 0.84 - above), rel=0.01)


def test_rays_that_bound_nothing_upright_give_no_distance() -> None:
    same = unit(1.0, 0.0, -0.2)
    assert np.isnan(standing_distance(same, same, same, 1.68)).all()


def test_before_a_level_camera_it_is_the_familiar_height_rule() -> None:
    box = Box(300.0, 180.0, 350.0, 300.0)
    placed = place_boxes([Detection(box, 0.9, 'person')], LEVEL, CAMERA, 1.68)
    depth = placed.distances[0] * placed.cosines[0]
    assert depth == pytest.approx(457.0 * 1.68 / box.height, rel=0.01)
    assert not placed.cut[0]


def test_a_box_at_the_edge_of_the_picture_is_marked_as_cut() -> None:
    boxes = [Box(10.0, 0.0, 60.0, 200.0), Box(10.0, 200.0, 60.0, 480.0)]
    placed = place_boxes([Detection(b, 0.9, 'person') for b in boxes], LEVEL, CAMERA, 1.68)
    assert placed.cut.all()


def test_degenerate_boxes_are_left_out() -> None:
    boxes = [Box(5.0, 5.0, 5.0, 5.0), Box(5.0, 5.0, 50.0, 6.0)]
    placed = place_boxes([Detection(b, 0.9, 'person') for b in boxes], LEVEL, CAMERA, 1.68)
    assert placed.detections == ()
