"""The demo with RViz: ros2 launch mmedge_ros demo.launch.py (a simulated flight)."""

import os
import subprocess
import sys
from pathlib import Path

from mmedge_ros.ros.graph.description import rviz_node
from mmedge_ros.ros.graph.launch_actions import (
    VIEW,
    is_true,
    launch_description,
    share_file,
    view_port,
)
from mmedge_ros.ros.sessions.up_session import UpOptions, describe_up

ARGUMENTS = [
    ('bag', '', 'recording to play; empty: a flight that is simulated once and kept'),
    ('loop', 'true', 'start over at the end'),
    ('rviz', 'true', 'show the tracks in RViz'),
    VIEW,
]


def simulated_flight():
    """Return the folder of the demo's flight; the first call simulates it, by the command."""
    cache = Path(os.environ.get('XDG_CACHE_HOME') or Path.home() / '.cache') / 'mmedge_ros/demo'
    command = [sys.executable, '-m', 'mmedge_ros.commands.main', 'demo', '--flight-only']
    subprocess.run([*command, '--out', cache], check=True)
    return cache / 'flight'


def describe(values):
    """Describe the graph for the launch arguments' values."""
    bag = values['bag'] or str(simulated_flight())
    nodes = describe_up(UpOptions(bag=bag, loop=is_true(values['loop']), view=view_port(values)))
    return (
        [*nodes, rviz_node(share_file('rviz', 'tracks.rviz'))]
        if is_true(values['rviz'])
        else nodes
    )


def generate_launch_description():
    """Entry point of ros2 launch."""
    return launch_description(ARGUMENTS, describe)
