"""A node in place of the unit encoder: encodes each window as a whole when it has ended."""

from __future__ import annotations

from mmedge_lab.rivals.blocking_graph.window_encoder import WindowEncoderWorker
from mmedge_ros.ros.node_main import run_nodes
from mmedge_ros.ros.nodes.unit_encoder import UnitEncoderNode


class WindowEncoderNode(UnitEncoderNode):
    """Holds units until their window ends."""

    worker_type = WindowEncoderWorker


if __name__ == '__main__':
    run_nodes([WindowEncoderNode])
