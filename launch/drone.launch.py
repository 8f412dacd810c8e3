"""Camera and radar to tracks on a drone: ros2 launch mmedge_ros drone.launch.py."""

from pathlib import Path

from mmedge_ros.replay.recording import TopicChoice
from mmedge_ros.ros.graph.description import rviz_node
from mmedge_ros.ros.graph.launch_actions import (
    FRAME_PREFIX,
    QUESTIONS,
    VIEW,
    decimal,
    extrinsics_nodes,
    given,
    given_questions,
    is_true,
    launch_description,
    one_of,
    share_file,
    view_port,
    whole,
)
from mmedge_ros.ros.recording.run import RecordOptions, recorder_node
from mmedge_ros.ros.sessions.up_session import UpOptions, describe_up, read_extrinsics

# Sensors that another driver reads, or that are not there.
NONE = 'none'
CAMERAS = ('v4l2', 'realsense', 'gstreamer', 'file', NONE)
RADARS = ('serial', NONE)
TRANSPORTS = ('raw', 'compressed')

ARGUMENTS = [
    (
        'camera',
        'v4l2',
        'v4l2, realsense, gstreamer or file; none where a driver publishes already',
    ),
    ('camera_device', '', 'device path, serial number, GStreamer pipeline or file; empty: first'),
    ('camera_calibration', '', 'camera_info YAML; empty takes what the camera knows of itself'),
    ('width', '640', 'width of the pictures, px'),
    ('height', '480', 'height of the pictures, px'),
    ('camera_rate', '30.0', 'pictures per second'),
    ('radar', 'serial', 'serial, or none where a driver publishes already'),
    ('radar_configuration', '', 'chirp configuration (.cfg); empty takes the shipped one'),
    ('radar_command_port', '', 'command port; empty finds the board by its USB id'),
    ('radar_data_port', '', 'data port; empty finds the board by its USB id'),
    ('simulated_radar', '', 'recording of a data port that a simulated board plays, or person'),
    ('extrinsics', '', 'YAML with transforms; empty takes config/extrinsics.yaml of the package'),
    ('odometry', '', "autopilot's odometry topic, such as /mavros/local_position/odom"),
    ('battery', '', "autopilot's battery topic, such as /mavros/battery"),
    ('image_transport', 'raw', 'raw or compressed pictures on the graph'),
    ('detector', '', 'weights (.onnx, .pt) or bundle folder; empty takes the shipped bundle'),
    ('optimise', 'false', 'choose rates and levels in flight'),
    ('recogniser', '', 'says more of tracked objects: `bundle`, or a bundle folder with one'),
    (
        'memory',
        '',
        'folder that keeps what is seen, people too, for `mmedge memory`; empty: none',
    ),
    *QUESTIONS,
    ('profile', '', 'device profile of this machine (mmedge profile), for optimise'),
    VIEW,
    ('record', '', 'folder to be made for a recording of the flight; empty records nothing'),
    ('rviz', 'false', 'show pictures, returns and tracks in RViz'),
    FRAME_PREFIX,
    ('use_sim_time', 'false', 'follow /clock'),
]


def describe(values):
    """Describe the graph for the launch arguments' values."""
    extrinsics = values['extrinsics'] or str(share_file('config', 'extrinsics.yaml'))
    topics = TopicChoice(odometry=values['odometry'])
    clock, prefix = is_true(values['use_sim_time']), values['frame_prefix']
    nodes = describe_up(
        UpOptions(
            clock=clock,
            detector=values['detector'],
            topics=topics,
            image_transport=one_of(values, 'image_transport', TRANSPORTS),
            extrinsics=extrinsics,
            camera_driver=camera_driver(values),
            radar_driver=radar_driver(values),
            optimise=is_true(values['optimise']),
            profile=values['profile'],
            recogniser=values['recogniser'],
            memory=values['memory'],
            questions=given_questions(values),
            battery=values['battery'],
            frame_prefix=prefix,
            view=view_port(values),
        )
    )
    nodes += extrinsics_nodes(extrinsics, prefix)
    if values['record']:
        options = RecordOptions(
            Path(values['record']),
            image_transport=values['image_transport'],
            transforms=read_extrinsics(extrinsics, prefix),
            clock=clock,
            drivers=topics,
            battery=values['battery'],
        )
        nodes.append(recorder_node(options))
    if is_true(values['rviz']):
        view = share_file('rviz', 'tracks.rviz')
        nodes.append(rviz_node(view, use_sim_time=clock, prefix=prefix))
    return nodes


def camera_driver(values):
    """Return the camera's parameters; None where another driver is at work."""
    if one_of(values, 'camera', CAMERAS) == NONE:
        return None
    return {
        'source': values['camera'],
        'device': values['camera_device'],
        'calibration_file': values['camera_calibration'],
        'width': whole(values, 'width'),
        'height': whole(values, 'height'),
        'rate': decimal(values, 'camera_rate'),
    }


def radar_driver(values):
    """Return the radar's parameters; None where another driver is at work."""
    if one_of(values, 'radar', RADARS) == NONE:
        return None
    return given(
        configuration=values['radar_configuration'],
        command_port=values['radar_command_port'],
        data_port=values['radar_data_port'],
        simulated=values['simulated_radar'],
    )


def generate_launch_description():
    """Entry point of ros2 launch."""
    return launch_description(ARGUMENTS, describe)
