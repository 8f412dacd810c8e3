"""The demo with RViz: ros2 launch mmedge_ros demo.launch.py (needs MMEDGE_DATA)."""

import os

from mmedge_ros.replay.recording import demo_recording
from mmedge_ros.ros.graph import rviz_node
from mmedge_ros.ros.launch_actions import is_true, launch_description, share_file
from mmedge_ros.ros.up_session import UpOptions, describe_up

ARGUMENTS = [
    ('loop', 'true', 'start over at the end'),
    ('rviz', 'true', 'show the tracks in RViz'),
]


def describe(values):
    """Describe the graph for the launch arguments' values."""
    recording = demo_recording(os.environ.get('MMEDGE_DATA', ''))
    nodes = describe_up(UpOptions(bag=str(recording), loop=is_true(values['loop'])))
    return (
        [*nodes, rviz_node(share_file('rviz', 'tracks.rviz'))]
        if is_true(values['rviz'])
        else nodes
    )


def generate_launch_description():
    """Entry point of ros2 launch."""
    return launch_description(ARGUMENTS, describe)
