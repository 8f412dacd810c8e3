"""Calibrated extrinsics in the format that the package reads."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from pathlib import Path

import numpy as np
import pytest
from hand_made_walk import CAMERA_FRAME, CAMERA_MOUNT, LENS, RADAR_FRAME, RADAR_MOUNT, walked

from mmedge_ros.geometry.calibration import read_calibration
from mmedge_ros.geometry.transforms import StampedTransform, TransformTree
from mmedge_ros.replay.extrinsics import ExtrinsicsError
from mmedge_ros.replay.extrinsics.calibrate import CalibrationResult, calibrate
from mmedge_ros.replay.extrinsics.extrinsics_file import calibrated_transforms, write_extrinsics

TRUE = CAMERA_MOUNT.transform.inverse().compose(RADAR_MOUNT.transform)


def degrees_apart(edges: list[StampedTransform], other: np.ndarray) -> float:
    rotation = TransformTree(edges).lookup(CAMERA_FRAME, RADAR_FRAME).rotation
    cosine = (np.trace(rotation.T @ other) - 1.0) / 2.0
    return float(np.degrees(np.arccos(np.clip(cosine, -1.0, 1.0))))


@pytest.fixture(scope='module')
def result() -> CalibrationResult:
    return calibrate(walked((8.0, 2.0, 0.0)))


def test_the_file_says_how_the_sensors_really_sit(
    result: CalibrationResult, tmp_path: Path
) -> None:
    seen = walked((8.0, 2.0, 0.0))
    assert degrees_apart(list(seen.transforms), TRUE.rotation) > 8.0
    path = tmp_path / 'new' / 'rig.yaml'
    transforms, day = calibrated_transforms(seen, result), date(2026, 11, 29)
    write_extrinsics(path, transforms, ['from a walk'], LENS, day)
    read = read_calibration(path)
    assert read.calibrated == day
    assert degrees_apart(read.transforms, TRUE.rotation) < 1.5
    assert [edge.child for edge in read.transforms] == [RADAR_FRAME, CAMERA_FRAME]
    np.testing.assert_allclose(read.transforms[0].translation, RADAR_MOUNT.translation)
    assert read.camera is not None
    np.testing.assert_allclose(read.camera.k, LENS.k)
    assert path.read_text().startswith('# from a walk\n')


def test_below_a_radar_at_the_root_the_camera_is_turned(result: CalibrationResult) -> None:
    seen = walked((8.0, 2.0, 0.0))
    believed = TransformTree(seen.transforms).lookup(RADAR_FRAME, CAMERA_FRAME)
    edge = StampedTransform(RADAR_FRAME, CAMERA_FRAME, believed.translation, believed.rotation)
    rooted = replace(seen, transforms=(edge,))
    turned = calibrated_transforms(rooted, calibrate(rooted))
    assert [(e.parent, e.child) for e in turned] == [(RADAR_FRAME, CAMERA_FRAME)]
    assert degrees_apart(turned, TRUE.rotation) < 1.5


def test_sensors_that_no_transform_knows_get_one(result: CalibrationResult) -> None:
    seen = replace(walked(), transforms=())
    edges = calibrated_transforms(seen, replace(result, geometry=seen.geometry))
    assert [(e.parent, e.child) for e in edges] == [
        ('base_link', RADAR_FRAME),
        ('base_link', CAMERA_FRAME),
    ]


def test_sensors_in_one_frame_are_refused(result: CalibrationResult) -> None:
    seen = walked()
    scans = tuple(replace(scan, frame_id=CAMERA_FRAME) for scan in seen.scans)
    with pytest.raises(ExtrinsicsError, match='two different names'):
        calibrated_transforms(replace(seen, scans=scans), result)
