"""The graph on a drone, beside its drivers: ros2 launch mmedge_ros perception.launch.py."""

from mmedge_ros.ros.graph.launch_actions import (
    USE_SIM_TIME,
    VIEW,
    extrinsics_nodes,
    launch_description,
    view_port,
)
from mmedge_ros.ros.graph.options import (
    PERCEPTION,
    GraphOptions,
    from_launch,
    is_true,
    launch_arguments,
)
from mmedge_ros.ros.graph.perception_graph import describe_graph

ARGUMENTS = [*launch_arguments(GraphOptions, PERCEPTION), VIEW, USE_SIM_TIME]


def describe(values):
    """Describe the graph for the launch arguments' values."""
    clock, view = is_true(values['use_sim_time']), view_port(values)
    options = from_launch(GraphOptions, PERCEPTION, values, clock=clock, view=view)
    nodes = describe_graph(options)
    if options.extrinsics:
        nodes += extrinsics_nodes(options.extrinsics, options.frame_prefix)
    return nodes


def generate_launch_description():
    """Entry point of ros2 launch."""
    return launch_description(ARGUMENTS, describe)
