"""Rangefinders that look down, in the conventions of ROS and PX4, and where their beams end."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from mmedge_ros.core.data_types import NS_PER_S
from mmedge_ros.geometry import GeometryError
from mmedge_ros.geometry.ego_motion import EgoState
from mmedge_ros.geometry.rangefinder import HeightReport, height_from_px4, height_from_range
from mmedge_ros.geometry.rotations import rotation_by
from mmedge_ros.geometry.sensor_rig import SensorRig
from mmedge_ros.geometry.transforms import StampedTransform, Transform

NOW = 5 * NS_PER_S


def range_message(distance: float, frame_id: str = '/lidar') -> SimpleNamespace:
    stamp = SimpleNamespace(sec=4, nanosec=7)
    header = SimpleNamespace(frame_id=frame_id, stamp=stamp)
    return SimpleNamespace(header=header, range=distance, min_range=0.2, max_range=25.0)


def px4_distance(**changes: Any) -> SimpleNamespace:
    fields = {
        'timestamp': 4_000_000, 'current_distance': 6.0, 'min_distance': 0.1, 'max_distance': 50.0,
        'orientation': 25, 'signal_quality': 90,
    }  # fmt: skip
    return SimpleNamespace(**{**fields, **changes})


def test_a_range_is_read_with_its_frame_and_stamp() -> None:
    report = height_from_range(range_message(6.5), NOW, '/mavros/rangefinder/rangefinder')
    assert report == HeightReport(NOW, 4 * NS_PER_S + 7, 6.5, 'lidar', looks_down=True)
    ahead = height_from_range(range_message(6.5, 'sonar_front'), NOW, '/sonar')
    assert ahead is not None
    assert not ahead.looks_down


@pytest.mark.parametrize('distance', [math.inf, -math.inf, 0.1, 25.5])
def test_nothing_in_reach_is_no_height(distance: float) -> None:
    assert height_from_range(range_message(distance), NOW) is None


def test_a_range_that_is_no_number_is_refused() -> None:
    with pytest.raises(GeometryError, match='not a number'):
        height_from_range(range_message(math.nan), NOW)


def test_px4_says_which_way_its_sensor_looks_and_how_good_it_is() -> None:
    assert height_from_px4(px4_distance(), NOW) == HeightReport(NOW, 4 * NS_PER_S, 6.0)
    for change in ({'orientation': 0}, {'signal_quality': 0}, {'current_distance': 60.0}):
        assert height_from_px4(px4_distance(**change), NOW) is None


def test_the_height_of_px4s_estimator_is_level_and_only_used_where_it_is_valid() -> None:
    message = SimpleNamespace(
        timestamp=1, timestamp_sample=4_000_000, dist_bottom=7.5, dist_bottom_valid=True
    )
    assert height_from_px4(message, NOW) == HeightReport(NOW, 4 * NS_PER_S, 7.5, is_level=True)
    message.dist_bottom_valid = False
    assert height_from_px4(message, NOW) is None
    message = SimpleNamespace(timestamp=1, dist_bottom=math.nan, dist_bottom_valid=True)
    with pytest.raises(GeometryError):
        height_from_px4(message, NOW)


def test_a_reading_by_a_clock_that_counts_from_the_start_is_as_old_as_its_arrival() -> None:
    arrival = 1_700_000_000 * NS_PER_S
    booted = height_from_px4(px4_distance(), arrival)
    assert booted == HeightReport(arrival, arrival, 6.0)


def rig_at(height: float, roll: float = 0.0) -> SensorRig:
    rig = SensorRig()
    pose = Transform(rotation_by(np.array([roll, 0.0, 0.0])), np.array([2.0, 0.0, height]))
    for t in range(11):
        rig.add_ego_state(
            EgoState(t * NS_PER_S // 10, pose, np.zeros(3), np.zeros(3)), 'odom', 'base_link'
        )
    return rig


def heights(rig: SensorRig, report: HeightReport) -> list[float]:
    rig.enter(report)
    return rig.ground_points(0, NS_PER_S)[:, 2].tolist()


def test_a_beam_straight_down_ends_on_the_ground() -> None:
    assert heights(rig_at(8.0), HeightReport(0, NS_PER_S // 2, 7.0)) == pytest.approx([1.0])


def test_a_leaning_drone_measures_along_its_own_axis_unless_the_height_is_level() -> None:
    leaning = HeightReport(0, NS_PER_S // 2, 8.0 / math.cos(0.3))
    assert heights(rig_at(8.0, 0.3), leaning) == pytest.approx([0.0], abs=1e-9)
    level = HeightReport(0, NS_PER_S // 2, 8.0, is_level=True)
    assert heights(rig_at(8.0, 0.3), level) == pytest.approx([0.0], abs=1e-9)


def test_a_beam_is_taken_along_the_x_axis_of_a_known_frame_if_that_looks_down() -> None:
    down = rotation_by(np.array([0.0, math.pi / 2, 0.0]))
    for turned, expected in ((down, [0.5]), (np.eye(3), [])):
        rig = rig_at(8.0)
        place = np.array([0.0, 0.0, -0.5])
        rig.add_transforms([StampedTransform('base_link', 'beam', place, turned)])
        report = HeightReport(0, NS_PER_S // 2, 7.0, 'beam', looks_down=False)
        assert heights(rig, report) == pytest.approx(expected)


def test_an_unknown_frame_counts_only_where_its_name_says_that_it_looks_down() -> None:
    unknown = HeightReport(0, NS_PER_S // 2, 7.0, 'nowhere', looks_down=False)
    assert heights(rig_at(8.0), unknown) == []
    assert heights(rig_at(8.0), unknown._replace(looks_down=True)) == pytest.approx([1.0])


def test_a_reading_without_odometry_at_its_time_is_left_out() -> None:
    late = HeightReport(0, 9 * NS_PER_S, 7.0)
    rig = rig_at(8.0)
    rig.enter(late)
    assert len(rig.ground_points(0, 10 * NS_PER_S)) == 0
