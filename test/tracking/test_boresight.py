"""Whether it is noticed that radar and camera look apart, whoever walks where."""

from __future__ import annotations

import numpy as np
import pytest
from hand_made_units import features, returns, unit

from mmedge_ros.core.data_types import CAMERA, RADAR, Box, Detection
from mmedge_ros.geometry.projection import CameraModel
from mmedge_ros.geometry.rotations import rotation_by
from mmedge_ros.geometry.sensor_poses import OPTICAL_TO_BODY, SensorGeometry
from mmedge_ros.geometry.transforms import Transform
from mmedge_ros.tracking.boresight import Boresight
from mmedge_ros.tracking.decision_fusion import DecisionFusionParameters, fuse_detections

LENS = CameraModel.nominal(640, 480, 450.0)
BELIEVED = SensorGeometry(
    'base_link',
    LENS,
    Transform(OPTICAL_TO_BODY, np.zeros(3)),
    Transform.identity(),
)


def watched(
    degrees: float, seconds: float = 10.0, people: int = 4, boresight: Boresight | None = None
) -> Boresight:
    """Look at a crowd whose returns the radar puts so far to the left of where it is."""
    rng, boresight = np.random.default_rng(3), boresight or Boresight()
    turn = rotation_by(np.array([0.0, 0.0, np.radians(degrees)]))
    for number in range(round(20 * seconds)):
        places = np.column_stack(
            (rng.uniform(5.0, 9.0, people), rng.uniform(-4.0, 4.0, people), np.zeros(people))
        )
        x, y = 320.0 - 450.0 * places[:, 1] / places[:, 0], 450.0 * 1.7 / places[:, 0]
        boxes = [
            Box(c - 0.2 * h, 240 - h / 2, c + 0.2 * h, 240 + h / 2)
            for c, h in zip(x, y, strict=True)
        ]
        seen = places + rng.normal(0.0, 0.15, places.shape)
        table = returns(*((*(turn @ place), 1.0) for place in seen if rng.random() < 0.5))
        fuse_detections(
            features(
                unit(50.0 * number, CAMERA),
                detections=tuple(Detection(box, 0.8, 'person') for box in boxes),
                image_size=(640, 480),
            ),
            [features(unit(50.0 * number, RADAR), returns=table)],
            BELIEVED,
            DecisionFusionParameters(),
            boresight=boresight,
        )
    return boresight


@pytest.mark.parametrize('degrees', [-8.0, -4.0, 0.0, 4.0, 8.0])
def test_the_angle_between_radar_and_camera_is_found_in_a_crowd(degrees: float) -> None:
    boresight = watched(degrees)
    assert boresight.angle == pytest.approx(-degrees, abs=1.0)
    assert bool(boresight.words) == (degrees != 0.0)
    if degrees > 0.0:
        assert f'{degrees:.0f} degrees to the left' in boresight.words[0]


def test_few_pairs_say_nothing() -> None:
    assert np.isnan(watched(8.0, seconds=1.0, people=2).angle)
    assert watched(8.0, seconds=1.0, people=2).words == ()


def test_a_mount_that_slips_in_flight_is_noticed() -> None:
    boresight = watched(0.0, 30.0)
    assert boresight.words == ()
    assert watched(6.0, 60.0, boresight=boresight).words
