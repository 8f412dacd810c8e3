"""Camera and radar to tracks on a drone: ros2 launch mmedge_ros drone.launch.py."""

from dataclasses import replace

from mmedge_ros.ros.graph.description import rviz_node
from mmedge_ros.ros.graph.launch_actions import (
    USE_SIM_TIME,
    VIEW,
    extrinsics_nodes,
    launch_description,
    share_file,
    view_port,
)
from mmedge_ros.ros.graph.options import (
    DRONE,
    DriverOptions,
    GraphOptions,
    RecordOptions,
    from_launch,
    is_true,
    launch_arguments,
)
from mmedge_ros.ros.graph.perception_graph import describe_graph
from mmedge_ros.ros.recording.run import recorder_node

ARGUMENTS = [
    *launch_arguments(DriverOptions, DRONE),
    *launch_arguments(GraphOptions, DRONE),
    VIEW,
    ('record', '', 'folder to be made for a recording of the flight; empty records nothing'),
    ('rviz', 'false', 'show pictures, returns and tracks in RViz'),
    USE_SIM_TIME,
]


def describe(values):
    """Describe the graph for the launch arguments' values; extrinsics are always there."""
    drivers = from_launch(DriverOptions, DRONE, values)
    options = from_launch(
        GraphOptions,
        DRONE,
        values,
        clock=is_true(values['use_sim_time']),
        camera_driver=drivers.camera_driver,
        radar_driver=drivers.radar_driver,
        view=view_port(values),
        above=True,
    )
    extrinsics = options.extrinsics or str(share_file('config', 'extrinsics.yaml'))
    options = replace(options, extrinsics=extrinsics)
    nodes = describe_graph(options) + extrinsics_nodes(extrinsics, options.frame_prefix)
    if values['record']:
        recorded = RecordOptions(
            out=values['record'],
            image_transport=options.image_transport,
            extrinsics=extrinsics,
            frame_prefix=options.frame_prefix,
            clock=options.clock,
            odometry=options.odometry,
            battery=options.battery,
        )
        nodes.append(recorder_node(recorded))
    if is_true(values['rviz']):
        view = share_file('rviz', 'tracks.rviz')
        nodes.append(rviz_node(view, use_sim_time=options.clock, prefix=options.frame_prefix))
    return nodes


def generate_launch_description():
    """Entry point of ros2 launch."""
    return launch_description(ARGUMENTS, describe)
