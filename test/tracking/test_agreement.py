"""Radar and camera of the night recording agree, and only with the right calibration.

The boxes are a detector's output (pseudo-labels), not ground truth.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from night_walk_boxes import night_walk_boxes
from numpy.typing import NDArray

from mmedge_ros.core.data_types import Box
from mmedge_ros.geometry.calibration import read_calibration
from mmedge_ros.geometry.projection import CameraModel
from mmedge_ros.geometry.transforms import Transform, TransformTree
from mmedge_ros.replay.bag import Bag
from mmedge_ros.replay.bag_topics import choose_topics
from mmedge_ros.replay.recorded_calibration import static_transforms
from mmedge_ros.replay.wire_formats import header_stamp_ns
from mmedge_ros.sensing.radar.filter import RadarLimits, filter_returns
from mmedge_ros.sensing.radar.point_cloud import decode_points

MOVING = 0.1  # m/s
PERSON_HEIGHT = 1.68  # m
OPTICAL = 'camera_color_optical_frame'


class Night(NamedTuple):
    """Camera stamps, radar scans with their stamps, boxes by frame, geometry."""

    frames: list[int]
    scans: list[tuple[int, NDArray[np.float32]]]
    boxes: dict[int, list[Box]]
    camera: CameraModel
    to_optical: Transform


class Agreement(NamedTuple):
    """Shares of boxes with a return and of returns in a box, and the median depth ratio."""

    boxes: float
    returns: float
    depth_ratio: float


@pytest.fixture(scope='module')
def night(data_folder: Path) -> Night:
    folder = data_folder / 'millieye'
    with Bag(folder / 'night_walk') as bag:
        topics = choose_topics(bag.topics)
        frames = [header_stamp_ns(m.raw) for m in bag.messages([topics.camera])]
        scans = [
            (
                header_stamp_ns(m.raw),
                filter_returns(decode_points(bag.deserialize(m)), RadarLimits())[0],
            )
            for m in bag.messages([topics.radar])
        ]
        camera = CameraModel.from_camera_info(
            bag.deserialize(next(bag.messages([topics.camera_info])))
        )
        tree = TransformTree(static_transforms(bag, pytest.fail))
    return Night(
        frames, scans, night_walk_boxes(data_folder), camera, tree.lookup(OPTICAL, 'radar_link')
    )


def agreement(night: Night, camera: CameraModel, to_optical: Transform) -> Agreement:
    """Compare the boxes of every frame with the moving returns of the last two scans."""
    filled: list[bool] = []
    inside_any: list[NDArray[np.bool_]] = []
    ratios: list[float] = []
    for number, stamp in enumerate(night.frames):
        recent = [scan for at, scan in night.scans if at <= stamp][-2:]
        # The radar ends four seconds before the camera.
        if stamp > night.scans[-1][0] or not recent:
            continue
        returns = np.concatenate(recent)
        points = to_optical.apply(returns[np.abs(returns[:, 3]) >= MOVING, :3])
        pixels, in_view = camera.project(points)
        x, y = pixels.T
        inside = np.zeros(len(points), bool)
        for box in night.boxes[number]:
            held = in_view & (x > box.x0) & (x < box.x1) & (y > box.y0) & (y < box.y1)
            filled.append(bool(held.any()))
            inside |= held
            expected = camera.k[1, 1] * PERSON_HEIGHT / box.height
            ratios += (points[held, 2] / expected).tolist()
        inside_any.append(inside)
    ratio = float(np.median(ratios)) if ratios else float('nan')
    return Agreement(float(np.mean(filled)), float(np.concatenate(inside_any).mean()), ratio)


def test_with_the_right_calibration_returns_lie_in_boxes(night: Night) -> None:
    result = agreement(night, night.camera, night.to_optical)
    assert result.boxes == pytest.approx(0.95, abs=0.015)
    assert result.returns == pytest.approx(0.77, abs=0.015)
    assert result.depth_ratio == pytest.approx(0.96, abs=0.02)


def test_with_the_intrinsics_of_another_camera_they_do_not(
    night: Night, data_folder: Path
) -> None:
    other = read_calibration(data_folder / 'millieye' / 'calib2_FOV110.yaml').camera
    assert other is not None
    result = agreement(night, other, night.to_optical)
    assert result.boxes == pytest.approx(0.63, abs=0.015)
    assert result.returns == pytest.approx(0.26, abs=0.02)


def test_with_the_inverse_transform_nothing_agrees(night: Night) -> None:
    result = agreement(night, night.camera, night.to_optical.inverse())
    assert result.boxes < 0.03
    assert result.returns < 0.03


def test_the_recorded_camera_info_is_that_of_the_calibration_file(
    night: Night, data_folder: Path
) -> None:
    from_file = read_calibration(data_folder / 'millieye' / 'calib_FOV90.yaml').camera
    assert from_file is not None
    np.testing.assert_allclose(night.camera.k, from_file.k)
    np.testing.assert_allclose(night.camera.d, from_file.d)
