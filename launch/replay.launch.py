"""Play a recording through the graph: ros2 launch mmedge_ros replay.launch.py bag:=FOLDER."""

from pathlib import Path

from mmedge_ros.replay import ReplayError
from mmedge_ros.replay.recording import TopicChoice
from mmedge_ros.ros.graph.description import single_process
from mmedge_ros.ros.graph.launch_actions import (
    QUESTIONS,
    VIEW,
    decimal,
    given_questions,
    is_true,
    launch_description,
    view_port,
)
from mmedge_ros.ros.sessions.up_session import UpOptions, describe_up

ARGUMENTS = [
    ('bag', '', 'rosbag2 folder or file'),
    ('detector', '', 'weights (.onnx, .pt) or bundle folder; empty takes the shipped bundle'),
    ('calibration', '', 'camera_info YAML to use instead of the recorded calibration'),
    ('rate', '1.0', 'speed; other than 1 runs the graph on /clock'),
    ('clock', 'false', 'run the graph on /clock also at rate 1'),
    ('loop', 'false', 'start over at the end'),
    ('camera', '', 'camera topic of the recording, if not found by type'),
    ('radar', '', 'radar topic of the recording, if not found by type'),
    ('optimise', 'false', 'choose rates and levels in flight (adds monitor and optimiser)'),
    ('profile', '', 'device profile of this machine (mmedge profile), for optimise'),
    *QUESTIONS,
    VIEW,
    ('single_process', 'false', 'all nodes in one process, to debug'),
]


def describe(values):
    """Describe the graph for the launch arguments' values."""
    if not values['bag']:
        raise ReplayError('name the recording: bag:=FOLDER')
    nodes = describe_up(
        UpOptions(
            bag=values['bag'],
            loop=is_true(values['loop']),
            rate=decimal(values, 'rate'),
            clock=is_true(values['clock']),
            detector=values['detector'],
            calibration=values['calibration'],
            params=Path(values['params']) if values['params'] else None,
            topics=TopicChoice(camera=values['camera'], radar=values['radar']),
            optimise=is_true(values['optimise']),
            profile=values['profile'],
            questions=given_questions(values),
            view=view_port(values),
        )
    )
    return [single_process(nodes)] if is_true(values['single_process']) else nodes


def generate_launch_description():
    """Entry point of ros2 launch."""
    return launch_description(ARGUMENTS, describe)
