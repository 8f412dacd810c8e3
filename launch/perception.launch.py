"""The graph on a drone, beside its drivers: ros2 launch mmedge_ros perception.launch.py."""

from mmedge_ros.replay.recording import TopicChoice
from mmedge_ros.ros.graph.launch_actions import (
    FRAME_PREFIX,
    QUESTIONS,
    VIEW,
    extrinsics_nodes,
    given_questions,
    is_true,
    launch_description,
    one_of,
    view_port,
)
from mmedge_ros.ros.sessions.up_session import UpOptions, describe_up

ARGUMENTS = [
    ('camera', '', "driver's image topic; its camera_info is expected beside it"),
    ('radar', '', "driver's point cloud topic"),
    ('odometry', '', "autopilot's odometry topic"),
    ('battery', '', "autopilot's battery topic, such as /mavros/battery"),
    ('image_transport', 'raw', 'raw or compressed pictures'),
    ('detector', '', 'weights (.onnx, .pt) or bundle folder; empty takes the shipped bundle'),
    ('calibration', '', 'camera_info YAML to use instead of the published calibration'),
    ('extrinsics', '', 'YAML with transforms, where /tf_static does not hold them'),
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
    FRAME_PREFIX,
    ('use_sim_time', 'false', 'follow /clock, as under ros2 bag play --clock'),
]


def describe(values):
    """Describe the graph for the launch arguments' values."""
    extrinsics = values['extrinsics']
    nodes = describe_up(
        UpOptions(
            clock=is_true(values['use_sim_time']),
            detector=values['detector'],
            calibration=values['calibration'],
            topics=TopicChoice(values['camera'], values['radar'], values['odometry']),
            image_transport=one_of(values, 'image_transport', ('raw', 'compressed')),
            extrinsics=extrinsics,
            optimise=is_true(values['optimise']),
            profile=values['profile'],
            recogniser=values['recogniser'],
            memory=values['memory'],
            questions=given_questions(values),
            battery=values['battery'],
            frame_prefix=values['frame_prefix'],
            view=view_port(values),
        )
    )
    return nodes + extrinsics_nodes(extrinsics, values['frame_prefix']) if extrinsics else nodes


def generate_launch_description():
    """Entry point of ros2 launch."""
    return launch_description(ARGUMENTS, describe)
