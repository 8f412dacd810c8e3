"""Play a recording through the graph: ros2 launch mmedge_ros replay.launch.py bag:=FOLDER."""

from mmedge_ros.replay import ReplayError
from mmedge_ros.ros.graph.description import single_process
from mmedge_ros.ros.graph.launch_actions import VIEW, launch_description, view_port
from mmedge_ros.ros.graph.options import (
    REPLAY_FILE,
    GraphOptions,
    from_launch,
    launch_arguments,
)
from mmedge_ros.ros.graph.perception_graph import describe_graph

ARGUMENTS = [*launch_arguments(GraphOptions, REPLAY_FILE), VIEW]


def describe(values):
    """Describe the graph for the launch arguments' values."""
    if not values['bag']:
        raise ReplayError('name the recording: bag:=FOLDER')
    options = from_launch(
        GraphOptions, REPLAY_FILE, values, params=values['params'], view=view_port(values)
    )
    nodes = describe_graph(options)
    return [single_process(nodes)] if options.single_process else nodes


def generate_launch_description():
    """Entry point of ros2 launch."""
    return launch_description(ARGUMENTS, describe)
