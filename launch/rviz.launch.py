"""RViz with pictures, returns, tracks and latency: ros2 launch mmedge_ros rviz.launch.py."""

from pathlib import Path

from mmedge_ros.ros.graph.description import rviz_node
from mmedge_ros.ros.graph.launch_actions import (
    USE_SIM_TIME,
    extrinsics_nodes,
    launch_description,
    share_file,
)
from mmedge_ros.ros.graph.options import RVIZ, InputOptions, is_true, launch_arguments

ARGUMENTS = [
    ('view', '', 'RViz configuration; empty takes the one of the package'),
    ('fixed_frame', '', 'frame the view stands in, such as odom; empty takes that of the view'),
    ('extrinsics', '', 'YAML with transforms to publish; empty where /tf_static is there already'),
    *launch_arguments(InputOptions, RVIZ),
    USE_SIM_TIME,
]


def describe(values):
    """Describe RViz for the launch arguments' values."""
    view = Path(values['view']) if values['view'] else share_file('rviz', 'tracks.rviz')
    prefix, extrinsics = values['frame_prefix'], values['extrinsics']
    transforms = extrinsics_nodes(extrinsics, prefix) if extrinsics else []
    use_sim_time = is_true(values['use_sim_time'])
    return [rviz_node(view, values['fixed_frame'], use_sim_time, prefix), *transforms]


def generate_launch_description():
    """Entry point of ros2 launch."""
    return launch_description(ARGUMENTS, describe)
