"""Camera and radar to tracks on a drone: ros2 launch mmedge_ros drone.launch.py."""

from dataclasses import replace

from mmedge_ros.ros.graph.description import rviz_node
from mmedge_ros.ros.graph.launch_actions import (
    USE_SIM_TIME,
    VIEW,
    extrinsics_nodes,
    given,
    launch_description,
    one_of,
    share_file,
    view_port,
)
from mmedge_ros.ros.graph.options import (
    DRONE,
    GraphOptions,
    RecordOptions,
    decimal,
    from_launch,
    is_true,
    launch_arguments,
    whole,
)
from mmedge_ros.ros.graph.perception_graph import describe_graph
from mmedge_ros.ros.recording.run import recorder_node

# Sensors that another driver reads, or that are not there.
NONE = 'none'
CAMERAS = ('v4l2', 'realsense', 'gstreamer', 'file', NONE)
RADARS = ('serial', NONE)

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
    *launch_arguments(GraphOptions, DRONE),
    VIEW,
    ('record', '', 'folder to be made for a recording of the flight; empty records nothing'),
    ('rviz', 'false', 'show pictures, returns and tracks in RViz'),
    USE_SIM_TIME,
]


def describe(values):
    """Describe the graph for the launch arguments' values; extrinsics are always there."""
    options = from_launch(
        GraphOptions,
        DRONE,
        values,
        clock=is_true(values['use_sim_time']),
        camera_driver=camera_driver(values),
        radar_driver=radar_driver(values),
        view=view_port(values),
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
