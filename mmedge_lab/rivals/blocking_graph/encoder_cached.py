"""A node in place of the unit encoder: encodes what is new of a window when it has ended."""

from __future__ import annotations

from mmedge_lab.rivals.blocking_graph.window_encoder import CachedWindowEncoderWorker
from mmedge_ros.ros.node_main import run_nodes
from mmedge_ros.ros.nodes.unit_encoder import UnitEncoderNode


class CachedWindowEncoderNode(UnitEncoderNode):
    """Holds units until their window ends."""

    worker_type = CachedWindowEncoderWorker


if __name__ == '__main__':
    run_nodes([CachedWindowEncoderNode])
