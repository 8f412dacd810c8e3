"""Record a flight: ros2 launch mmedge_ros record.launch.py out:=FOLDER."""

from mmedge_ros.replay import ReplayError
from mmedge_ros.ros.graph.launch_actions import USE_SIM_TIME, launch_description
from mmedge_ros.ros.graph.options import (
    RECORD_FILE,
    RecordOptions,
    from_launch,
    is_true,
    launch_arguments,
)
from mmedge_ros.ros.recording.run import recorder_node

ARGUMENTS = [*launch_arguments(RecordOptions, RECORD_FILE), USE_SIM_TIME]


def describe(values):
    """Describe the recorder for the launch arguments' values."""
    if not values['out']:
        raise ReplayError('name the folder to be made: out:=FOLDER')
    clock = is_true(values['use_sim_time'])
    return [recorder_node(from_launch(RecordOptions, RECORD_FILE, values, clock=clock))]


def generate_launch_description():
    """Entry point of ros2 launch."""
    return launch_description(ARGUMENTS, describe)
