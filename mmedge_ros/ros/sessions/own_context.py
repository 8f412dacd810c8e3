"""A node of a session, spun from outside in a context of its own."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Generic, TypeVar

import rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node

from mmedge_ros.replay import ReplayError
from mmedge_ros.ros.graph.description import NodeDescription
from mmedge_ros.ros.graph.limited_graph import LimitedGraph
from mmedge_ros.ros.graph.process_group import ProcessGroup
from mmedge_ros.ros.participation import made_node, take_part

NodeT = TypeVar('NodeT', bound=Node)


@contextmanager
def spinning(make: Callable[..., NodeT]) -> Iterator[tuple[NodeT, Callable[[], None]]]:
    """Make a node in a new context; yields it and what spins it for at most 0.1 s.

    :param make: takes ``context``
    """
    context = rclpy.Context()
    take_part(context=context)
    try:
        node = made_node(partial(make, context=context))
        executor = SingleThreadedExecutor(context=context)
        executor.add_node(node)
        try:
            yield node, lambda: executor.spin_once(timeout_sec=0.1)
        finally:
            node.destroy_node()
    finally:
        rclpy.try_shutdown(context=context)


@dataclass(frozen=True, eq=False)
class LimitedFlight(Generic[NodeT]):
    """A graph whose processor is limited, a player that is not, and a node that listens."""

    node: NodeT
    graph: LimitedGraph
    _player: ProcessGroup
    _spin_once: Callable[[], None]

    def spin(self, until: Callable[[], bool], patience: float) -> None:
        """Spin until a condition holds.

        :param patience: s
        :raises ReplayError: when a node ends, or it takes too long
        """
        begun = time.monotonic()
        while not until():
            self._spin_once()
            problem = self.graph.problem()
            for name in self._player.watch():
                problem = (
                    f'{name} ended: {self._player.last_words(name, 1) or "without a message"}'
                )
            if problem:
                raise ReplayError(problem)
            if time.monotonic() - begun > patience:
                raise ReplayError(
                    f'no units of every sensor within {patience:.0f} s: the machine is too busy, '
                    'or too limited, to measure it'
                )


@contextmanager
def limited_flight(
    nodes: Sequence[NodeDescription], make: Callable[..., NodeT], folder: Path
) -> Iterator[LimitedFlight[NodeT]]:
    """Start a graph that plays a recording, with all but its player under one limit.

    :param make: makes the node that listens; takes ``context``
    :param folder: of logs and parameters
    """
    perception = [n for n in nodes if n.name not in ('bag_player', 'visualizer')]
    player = [n for n in nodes if n.name == 'bag_player']
    with (
        spinning(make) as (node, spin_once),
        LimitedGraph(perception, folder / 'graph') as graph,
        ProcessGroup(player, folder / 'player') as played,
    ):
        yield LimitedFlight(node, graph, played, spin_once)
