"""Choosing the sensors among the topics of a recording."""

from __future__ import annotations

import pytest

from mmedge_ros.replay import BagError
from mmedge_ros.replay.bag_storage import TopicInfo
from mmedge_ros.replay.bag_topics import (
    CAMERA_INFO,
    COMPRESSED_IMAGE,
    IMAGE,
    ODOMETRY,
    POINT_CLOUD,
    TF_MESSAGE,
    SensorTopics,
    choose_topics,
    foreign_types,
)

RAW = TopicInfo('/front/image_raw', IMAGE, 9)
COMPRESSED = TopicInfo('/front/image_raw/compressed', COMPRESSED_IMAGE, 9)
INFO = TopicInfo('/front/camera_info', CAMERA_INFO, 9)
POINTS = TopicInfo('/radar/points', POINT_CLOUD, 9)
STATIC = TopicInfo('/tf_static', TF_MESSAGE, 1)
DEPTH = TopicInfo('/front/aligned_depth_to_color/image_raw', IMAGE, 9)
ODOM = TopicInfo('/odom', ODOMETRY, 9)


def test_everything_there_is_once_is_found_by_its_type() -> None:
    assert choose_topics([COMPRESSED, INFO, POINTS, STATIC, ODOM]) == SensorTopics(
        camera='/front/image_raw/compressed',
        camera_info='/front/camera_info',
        radar='/radar/points',
        odometry='/odom',
        compressed=True,
    )


def test_raw_and_compressed_are_one_camera_and_raw_is_preferred() -> None:
    chosen = choose_topics([RAW, COMPRESSED, INFO])
    assert (chosen.camera, chosen.compressed) == (RAW.name, False)
    assert chosen.camera_info == INFO.name


def test_a_camera_may_be_named_without_the_suffix_of_its_transport() -> None:
    assert choose_topics([COMPRESSED], camera=RAW.name).camera == COMPRESSED.name


def test_two_cameras_must_be_told_apart() -> None:
    other = TopicInfo('/rear/image_raw', IMAGE, 9)
    with pytest.raises(BagError, match=r'/front/image_raw, /rear/image_raw.*--camera TOPIC'):
        choose_topics([RAW, other, POINTS])
    assert choose_topics([RAW, other, POINTS], camera=other.name).camera == other.name


def test_a_name_that_does_not_exist_brings_up_the_nearest() -> None:
    with pytest.raises(BagError, match="nearest is '/radar/points'"):
        choose_topics([RAW, POINTS], radar='/radar/point')


def test_a_name_of_another_type_is_refused() -> None:
    with pytest.raises(BagError, match=r'--camera /radar/points is a sensor_msgs/msg/PointCloud2'):
        choose_topics([RAW, POINTS], camera=POINTS.name)


def test_camera_info_of_another_camera_is_not_taken() -> None:
    elsewhere = TopicInfo('/rear/camera_info', CAMERA_INFO, 9)
    assert choose_topics([RAW, elsewhere]).camera_info is None


def test_neither_camera_nor_radar_is_an_error_that_lists_what_is_there() -> None:
    with pytest.raises(BagError, match=r'neither a camera.*nor a radar.*/odom \(nav_msgs'):
        choose_topics([ODOM])


def test_a_topic_without_messages_is_no_candidate() -> None:
    silent = TopicInfo('/rear/image_raw', IMAGE, 0)
    assert choose_topics([RAW, silent]).camera == RAW.name
    with pytest.raises(BagError, match='no messages on'):
        choose_topics([RAW, silent], camera=silent.name)


def test_distances_are_not_taken_for_pictures() -> None:
    assert choose_topics([DEPTH, RAW, POINTS]).camera == '/front/image_raw'
    assert choose_topics([DEPTH, POINTS]).camera is None
    with pytest.raises(BagError, match='depth is no picture'):
        choose_topics([DEPTH])
    with pytest.raises(BagError, match='holds distances; name pictures'):
        choose_topics([DEPTH, RAW], camera=DEPTH.name)


def test_types_named_as_in_ros_1_are_named_with_the_remedy() -> None:
    old = TopicInfo('/front/image_raw', 'sensor_msgs/Image', 9)
    with pytest.raises(BagError, match=r'ROS 1 \(sensor_msgs/Image, without /msg/\): convert'):
        choose_topics([old])
    assert foreign_types([old, POINTS]) != []
    assert foreign_types([RAW, POINTS]) == []
