"""Measures unit times with the real graph: every node a process, all modalities at work."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from rclpy.node import Node

from mmedge_ros import msg
from mmedge_ros.adaptation.configuration_space import ConfigurationSpace
from mmedge_ros.adaptation.profiling import PhaseSamples, ProfilePhase
from mmedge_ros.core.data_types import NS_PER_S, Configuration
from mmedge_ros.replay import ReplayError
from mmedge_ros.replay.recording import Recording
from mmedge_ros.ros.graph.description import NodeDescription
from mmedge_ros.ros.graph.middleware_profile import set_profile
from mmedge_ros.ros.graph.options import GraphOptions
from mmedge_ros.ros.graph.perception_graph import bag_graph
from mmedge_ros.ros.messages import conversions, names, qos
from mmedge_ros.ros.sessions.own_context import LimitedFlight, limited_flight

# Nodes import, load and warm up every level first.
_START_TIME = 120.0
# Units in the queues are still those of the phase before, and a limiter needs its period.
_SETTLING = 1.0
# A graph that has only just come up, or that works off what it could not do before, is busy with
# itself. It has settled that much later than so many windows were decided from the phase alone,
# but is not waited for longer than this (s).
_STEADY, _LONGEST_SETTLING = 8, 8.0
# How long nothing may come at all before a graph is said to stand still.
_PATIENCE = 30.0
# Windows of the profile close so late (s) that a latency is what it is, not what is allowed; but
# not so late that the fusion node takes itself to be held up and leaves windows out.
_DEADLINE = 1.0
# How often is looked whether a slow phase has enough, s.
_LOOK = 0.5
_LEAD_NS = NS_PER_S // 10

PhaseProgress = Callable[[float, ProfilePhase, Mapping[str, int]], None]


class PhaseDuration(NamedTuple):
    """How long a phase is measured at least, and at most while there is not enough of it, s."""

    least: float
    most: float


class Profiler(Node):
    """Says which configuration holds, and keeps what is measured under it."""

    def __init__(self, **node_options: Any) -> None:
        super().__init__('profiler', **node_options)
        self.heard: dict[str, int] = {}
        self.decided = 0
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

    def begin(self, phase: ProfilePhase) -> None:
        """Announce a phase."""
        self._id += 1
        self._taking = False
        self.heard, self.decided = {}, 0
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
        if conversions.is_update(message) or list(message.configuration_ids) != [self._id]:
            return
        self.decided += 1
        if self._taking:
            trail = conversions.from_trail(message.trail)
            self.samples.add_decision(float(message.latency), trail)


def measure(
    bag: Path,
    model: Path,
    space: ConfigurationSpace,
    phases: Sequence[ProfilePhase],
    duration: PhaseDuration,
    on_phase: PhaseProgress,
    questions: Mapping[str, Any] | None = None,
) -> list[tuple[ProfilePhase, PhaseSamples]]:
    """Fly a recording over and over, and measure each phase until there is enough of it.

    :param on_phase: called with the share done, the phase, and what is still lacking of it (by
        stage, how often it was measured); nothing is when the phase begins
    :param questions: parameters of a node that describes decisions meanwhile; None makes none
    :raises ReplayError: when the recording cannot be used or the graph does not run
    """
    set_profile()
    with Recording(bag) as recording:
        absent = {o.modality for o in space.modalities} - set(recording.modalities)
        if absent:
            raise ReplayError(
                f'{bag} has no {" and no ".join(sorted(absent))}: name a recording with all '
                'sensors, or none to simulate one'
            )
        nodes = bag_graph(
            recording,
            GraphOptions(
                detector=str(model),
                loop=True,
                wait_for=('profiler',),
                question_parameters=questions,
            ),
        )
    nodes = [with_deadline(node, _DEADLINE) for node in nodes]
    with (
        tempfile.TemporaryDirectory(prefix='mmedge_') as scratch,
        limited_flight(nodes, Profiler, Path(scratch)) as flight,
    ):
        return _measure(flight, phases, duration, on_phase)


def _measure(
    flight: LimitedFlight[Profiler],
    phases: Sequence[ProfilePhase],
    duration: PhaseDuration,
    on_phase: PhaseProgress,
) -> list[tuple[ProfilePhase, PhaseSamples]]:
    node, measured = flight.node, []
    for number, phase in enumerate(phases):
        share = number / len(phases)
        on_phase(share, phase, {})
        flight.graph.limit(phase.percent)
        node.begin(phase)
        wanted = {part.modality for part in phase.parts}
        patience = max(_PATIENCE, duration.most) if number else _START_TIME

        def running(wanted: set[str] = wanted) -> bool:
            return wanted <= set(node.heard)

        flight.spin(running, patience)
        steady = _steady(node)
        flight.spin(steady, _PATIENCE)
        flight.spin(after(_SETTLING), _PATIENCE)
        node.take()
        begun = time.monotonic()
        pause = duration.least
        while pause > 0.0:
            flight.spin(after(pause), pause + _PATIENCE)
            lacking = node.samples.lacking(phase)
            left = duration.most - (time.monotonic() - begun) if lacking else 0.0
            pause = min(left, max(duration.least, _LOOK))
            if pause > 0.0:
                on_phase(share, phase, lacking)
        measured.append((phase, node.samples))
    return measured


def with_deadline(node: NodeDescription, deadline: float) -> NodeDescription:
    """Let fusion close its windows that late (s); return any other node as it is."""
    if node.executable != 'fusion':
        return node
    changed = {**node.parameters, 'pipeline.windows.deadline': deadline}
    return replace(node, parameters=changed)


def after(seconds: float) -> Callable[[], bool]:
    """Return whether so much time has passed since this call."""
    end = time.monotonic() + seconds
    return lambda: time.monotonic() >= end


def _steady(node: Profiler) -> Callable[[], bool]:
    """Return whether decisions come as they should, or have been waited for long enough."""
    given_up = after(_LONGEST_SETTLING)
    return lambda: node.decided >= _STEADY or given_up()
