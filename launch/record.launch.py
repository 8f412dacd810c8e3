"""Record a flight: ros2 launch mmedge_ros record.launch.py out:=FOLDER."""

from pathlib import Path

from mmedge_ros.replay import ReplayError
from mmedge_ros.replay.recording import TopicChoice
from mmedge_ros.ros.graph.launch_actions import (
    FRAME_PREFIX,
    is_true,
    launch_description,
    whole,
)
from mmedge_ros.ros.recording.run import RecordOptions, recorder_node, rosbag2_command
from mmedge_ros.ros.sessions.up_session import read_extrinsics

ARGUMENTS = [
    ('out', '', 'folder to be made for the recording'),
    ('topics', '', 'topics to record instead of the usual ones, with spaces between them'),
    ('image_transport', 'auto', 'pictures: auto, raw or compressed'),
    ('split_size', '1000', 'a new file begins after so many MB; 0 keeps one file'),
    ('min_free', '500', 'MB to be kept free on the disk'),
    ('extrinsics', '', 'YAML with transforms to record, where /tf_static is not published'),
    ('camera', '', "image topic of another driver than the package's own"),
    ('radar', '', "point cloud topic of another driver than the package's own"),
    ('odometry', '', "autopilot's odometry topic"),
    ('battery', '', "autopilot's battery topic, such as /mavros/battery"),
    ('rosbag2', 'false', 'record with ros2 bag record instead (no guard of the disk)'),
    FRAME_PREFIX,
    ('use_sim_time', 'false', 'follow /clock'),
]


def describe(values):
    """Describe the recorder for the launch arguments' values."""
    if not values['out']:
        raise ReplayError('name the folder to be made: out:=FOLDER')
    extrinsics = values['extrinsics']
    options = RecordOptions(
        Path(values['out']),
        tuple(values['topics'].split()),
        values['image_transport'],
        read_extrinsics(extrinsics, values['frame_prefix']) if extrinsics else (),
        whole(values, 'split_size'),
        whole(values, 'min_free'),
        clock=is_true(values['use_sim_time']),
        drivers=TopicChoice(values['camera'], values['radar'], values['odometry']),
        battery=values['battery'],
    )
    if is_true(values['rosbag2']):
        return [rosbag2_command(options, values['namespace'])]
    return [recorder_node(options)]


def generate_launch_description():
    """Entry point of ros2 launch."""
    return launch_description(ARGUMENTS, describe)
