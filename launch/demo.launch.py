"""The demo with RViz: ros2 launch mmedge_ros demo.launch.py (a simulated flight)."""

import os
import subprocess
import sys
from pathlib import Path

from mmedge_ros.ros.graph.description import rviz_node
from mmedge_ros.ros.graph.launch_actions import VIEW, launch_description, share_file, view_port
from mmedge_ros.ros.graph.options import GraphOptions, is_true
from mmedge_ros.ros.graph.perception_graph import describe_graph

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
    options = GraphOptions(bag=bag, loop=is_true(values['loop']), view=view_port(values))
    nodes = describe_graph(options)
    if is_true(values['rviz']):
        nodes.append(rviz_node(share_file('rviz', 'tracks.rviz')))
    return nodes


def generate_launch_description():
    """Entry point of ros2 launch."""
    return launch_description(ARGUMENTS, describe)
