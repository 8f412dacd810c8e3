"""Parameters of the radar node, its board if it is a simulated one, and its messages."""

from __future__ import annotations

import array
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from sensor_msgs.msg import PointCloud2, PointField

from mmedge_ros.geometry.sensor_poses import RADAR_FRAME
from mmedge_ros.parameter import parameter
from mmedge_ros.ros.messages.conversions import header
from mmedge_ros.sensing.radar.scan import SCAN_FIELDS, RadarScan
from mmedge_ros.sensing.radar.source import RadarParameters
from mmedge_ros.sensing.simulated_board.board import SimulatedBoard
from mmedge_ros.sensing.simulated_board.frames import board_frames

# In place of a recording: a walking person.
PERSON = 'person'


@dataclass(frozen=True)
class RadarNodeParameters(RadarParameters):
    """The radar node: which radar, and how its scans are published."""

    frame_id: str = parameter(RADAR_FRAME, 'frame of the points: x forward, y left, z up')
    simulated: str = parameter(
        '',
        "recording of a data port that a simulated board plays in place of a real one; 'person' "
        'simulates a walking person',
    )


@contextmanager
def radar_ports(p: RadarNodeParameters) -> Iterator[RadarNodeParameters]:
    """Bring up the simulated board, if one is wanted, and yield parameters with its ports.

    :raises SensingError: if the recording cannot be played
    """
    if not p.simulated:
        yield p
        return
    frames = board_frames(None if p.simulated == PERSON else p.simulated)
    with (
        tempfile.TemporaryDirectory(prefix='mmedge_radar_') as folder,
        SimulatedBoard(frames, Path(folder)) as board,
    ):
        yield replace(p, command_port=str(board.command_path), data_port=str(board.data_path))


def to_point_cloud(scan: RadarScan, frame_id: str) -> PointCloud2:
    """Make the message of a scan: float32 x, y, z, velocity, snr, noise."""
    step = 4 * len(SCAN_FIELDS)
    count = len(scan.points)
    message = PointCloud2(
        header=header(scan.stamp_ns, frame_id),
        height=1,
        width=count,
        fields=[
            PointField(name=name, offset=4 * n, datatype=PointField.FLOAT32, count=1)
            for n, name in enumerate(SCAN_FIELDS)
        ],
        is_bigendian=False,
        point_step=step,
        row_step=step * count,
        is_dense=bool(np.isfinite(scan.points).all()),
    )
    message.data = array.array('B', np.ascontiguousarray(scan.points, '<f4').tobytes())
    return message
