"""A node in place of the fusion node: decides whole windows."""

from __future__ import annotations

from mmedge_lab.rivals.blocking_graph.window_decisions import WholeWindowWorker
from mmedge_ros.ros.node_main import run_nodes
from mmedge_ros.ros.nodes.fusion import FusionNode


class WholeWindowFusionNode(FusionNode):
    """Waits for all units of a window."""

    worker_type = WholeWindowWorker


if __name__ == '__main__':
    run_nodes([WholeWindowFusionNode])
