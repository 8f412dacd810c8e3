"""Waiting for other nodes by looking at the graph, never by sleeping blindly."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

from rclpy.node import Node

_LOOK = 0.05


def wait_for_peers(
    node: Node,
    node_names: Sequence[str],
    topics: Sequence[str],
    timeout: float,
    ended: threading.Event,
) -> list[str]:
    """Wait until the nodes are there and every topic has a subscriber; return what is missing."""
    deadline = time.monotonic() + timeout
    while True:
        present = set(node.get_node_names())
        missing = [name for name in node_names if name not in present]
        if node_names:
            missing += [
                f'a subscriber of {topic}' for topic in topics if not node.count_subscribers(topic)
            ]
        if not missing or time.monotonic() > deadline or ended.wait(_LOOK):
            return missing
