"""Measures unit times with the real graph: every node a process, all modalities at work."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node

from mmedge_ros import msg
from mmedge_ros.configuration.configuration_space import ConfigurationSpace
from mmedge_ros.configuration.profiling import Phase, PhaseSamples
from mmedge_ros.data_types import NS_PER_S, Configuration
from mmedge_ros.replay.errors import ReplayError
from mmedge_ros.replay.recording import Recording
from mmedge_ros.ros import conversions, names, qos
from mmedge_ros.ros.graph import NodeDescription
from mmedge_ros.ros.limited_graph import LimitedGraph
from mmedge_ros.ros.live_session import bag_graph
from mmedge_ros.ros.middleware_profile import profile_environment
from mmedge_ros.ros.process_group import ProcessGroup

# Nodes import, load and warm up every level first.
_START_TIME = 120.0
# Units in the queues are still those of the phase before, and a limiter needs its period.
_SETTLING = 1.0
# By what the seconds of a phase may be exceeded before it is said to stand still.
_PATIENCE = 30.0
_LEAD_NS = NS_PER_S // 10


class Profiler(Node):
    """Says which configuration holds, and keeps what is measured under it."""

    def __init__(self, **node_options: Any) -> None:
        super().__init__('profiler', **node_options)
        self.heard: dict[str, int] = {}
        self.samples = PhaseSamples()
        self._id = 0
        self._taking = False
        self._configurations = self.create_publisher(
            msg.Configuration, names.CONFIGURATION, qos.LATCHED
        )
        self.create_subscription(
            msg.UnitFeatures, names.UNIT_FEATURES, self._on_features, qos.RECORD
        )
        self.create_subscription(msg.TrackArray, names.TRACKS, self._on_tracks, qos.RECORD)

    def begin(self, phase: Phase) -> None:
        """Announce a phase."""
        self._id += 1
        self._taking = False
        self.heard = {}
        now_ns = int(self.get_clock().now().nanoseconds)
        configuration = Configuration(self._id, now_ns + _LEAD_NS, phase.parts)
        self._configurations.publish(conversions.to_configuration(configuration, now_ns))

    def take(self) -> None:
        """Measure from now on."""
        self.samples = PhaseSamples()
        self._taking = True

    def _on_features(self, message: msg.UnitFeatures) -> None:
        if message.configuration_id != self._id:
            return
        self.heard[message.modality] = self.heard.get(message.modality, 0) + 1
        if self._taking:
            trail = conversions.from_trail(message.trail)
            self.samples.add_unit(message.modality, message.level, trail)

    def _on_tracks(self, message: msg.TrackArray) -> None:
        # Only what was decided from units of this phase alone.
        if self._taking and list(message.configuration_ids) == [self._id]:
            trail = conversions.from_trail(message.trail)
            self.samples.add_decision(float(message.latency), trail)


def measure(
    bag: Path,
    model: Path,
    space: ConfigurationSpace,
    phases: Sequence[Phase],
    seconds: float,
    on_phase: Callable[[float, Phase], None],
) -> list[tuple[Phase, PhaseSamples]]:
    """Fly a recording over and over, and measure each phase for so many seconds.

    :param on_phase: called with the share done and the phase that begins
    :raises ReplayError: when the recording cannot be used or the graph does not run
    """
    os.environ.update(profile_environment())
    with Recording(bag) as recording:
        absent = {o.modality for o in space.modalities} - set(recording.modalities)
        if absent:
            raise ReplayError(
                f'{bag} has no {" and no ".join(sorted(absent))}: name a recording with all '
                'sensors, or none to simulate one'
            )
        nodes = bag_graph(recording, str(model), loop=True, wait_for=('profiler',))
    perception = [n for n in nodes if n.name not in ('bag_player', 'visualizer')]
    player = [n for n in nodes if n.name == 'bag_player']
    with tempfile.TemporaryDirectory(prefix='mmedge_') as scratch:
        return _measure(perception, player, Path(scratch), phases, seconds, on_phase)


def _measure(
    perception: list[NodeDescription],
    player: list[NodeDescription],
    scratch: Path,
    phases: Sequence[Phase],
    seconds: float,
    on_phase: Callable[[float, Phase], None],
) -> list[tuple[Phase, PhaseSamples]]:
    context = rclpy.Context()
    rclpy.init(context=context)
    node = Profiler(context=context)
    executor = SingleThreadedExecutor(context=context)
    executor.add_node(node)
    measured = []
    try:
        with (
            LimitedGraph(perception, scratch / 'graph') as graph,
            ProcessGroup(player, scratch / 'player') as played,
        ):
            for number, phase in enumerate(phases):
                on_phase(number / len(phases), phase)
                graph.limit(phase.percent)
                node.begin(phase)
                wanted = {part.modality for part in phase.parts}
                patience = _PATIENCE if number else _START_TIME

                def running(wanted: set[str] = wanted) -> bool:
                    return wanted <= set(node.heard)

                _spin(executor, graph, played, running, patience)
                _spin(executor, graph, played, _after(_SETTLING), _PATIENCE)
                node.take()
                _spin(executor, graph, played, _after(seconds), seconds + _PATIENCE)
                measured.append((phase, node.samples))
    finally:
        node.destroy_node()
        rclpy.try_shutdown(context=context)
    return measured


def _after(seconds: float) -> Callable[[], bool]:
    end = time.monotonic() + seconds
    return lambda: time.monotonic() >= end


def _spin(
    executor: SingleThreadedExecutor,
    graph: LimitedGraph,
    player: ProcessGroup,
    until: Callable[[], bool],
    patience: float,
) -> None:
    """Spin until a condition holds.

    :raises ReplayError: when a node ends, or it takes too long
    """
    begun = time.monotonic()
    while not until():
        executor.spin_once(timeout_sec=0.1)
        problem = graph.problem()
        for name in player.watch():
            problem = f'{name} ended: {player.last_words(name, 1) or "without a word"}'
        if problem:
            raise ReplayError(problem)
        if time.monotonic() - begun > patience:
            raise ReplayError(
                f'no units of every sensor within {patience:.0f} s: the machine is too busy, or '
                'too limited, to measure it'
            )
