"""A live flight whose share of the processor steps, with the optimiser or without.

Player, recorder and limiter run outside of what is limited.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from mmedge_lab.judging.bench import Subject, Sums
from mmedge_ros.core.data_types import NS_PER_S, Configuration, Decision, ResultKind
from mmedge_ros.replay.live_record import LiveRecord
from mmedge_ros.replay.recording import Recording
from mmedge_ros.ros.graph.description import OPTIMIZER, NodeDescription
from mmedge_ros.ros.graph.middleware_profile import set_profile
from mmedge_ros.ros.graph.options import GraphOptions
from mmedge_ros.ros.graph.perception_graph import bag_graph
from mmedge_ros.ros.recording.recorder import Recorder
from mmedge_ros.ros.sessions.own_context import limited_flight
from mmedge_ros.ros.sessions.profile_session import after, with_deadline

# Of the machine in turn, percent.
SHARES = (100.0, 50.0, 30.0, 100.0)
# Decisions do not count for so long after a step of the processor, s.
SETTLING = 2.0
_STRIDE = 0.1
_START_TIME = 120.0
# With all of the machine, before the first phase (s).
_WARM_UP = 5.0
_PATIENCE = 60.0


class Step(NamedTuple):
    """A phase under one share of the machine; instants on the clock of the graph, ns."""

    begin_ns: int
    end_ns: int


class SteppedRecord(LiveRecord):
    """What is judged; instants of the graph, not of the recording."""

    def __init__(self) -> None:
        super().__init__()
        self.decisions: list[Decision] = []
        self.configurations: list[Configuration] = []
        self.steps: list[Step] = []

    def add_decision(self, decision: Decision) -> None:
        """Take in a published decision; updates are none."""
        if decision.kind is ResultKind.DECISION:
            self.decisions.append(decision)

    def add_configuration(self, configuration: Configuration) -> None:
        """Take in a configuration."""
        self.configurations.append(configuration)


def without_saving() -> dict[str, float]:
    """Return parameters of an optimiser that the charge of a battery does not cap."""
    return {f'adaptation.power.{name}': 0.0 for name in ('reserve', 'high', 'low')}


def fly_steps(detector: str, limit: float, seconds: float, profile: str, subject: Subject) -> Sums:
    """Fly a recording over and over while the share of the processor steps.

    :param limit: latency that decisions have to keep, s
    :param seconds: length of each step
    :param profile: the optimiser chooses, by that file; without one the graph keeps to the rates
        and levels it starts with
    :raises ReplayError: when the recording cannot be used or the graph does not run
    """
    set_profile()
    options = GraphOptions(
        detector=detector,
        loop=True,
        wait_for=('recorder',),
        optimise=bool(profile),
        profile=profile,
    )
    with Recording(subject.flight) as recording:
        nodes = bag_graph(recording, options)
    nodes = [_obeying(with_deadline(node, limit), limit) for node in nodes]
    record = SteppedRecord()
    with (
        tempfile.TemporaryDirectory(prefix='mmedge_') as scratch,
        limited_flight(nodes, partial(Recorder, record), Path(scratch)) as flight,
    ):
        flight.spin(lambda: bool(record.decisions), _START_TIME)
        flight.spin(after(_WARM_UP), _PATIENCE)
        for percent in SHARES:
            begin_ns = time.time_ns()
            flight.graph.limit(percent)
            flight.spin(after(seconds), seconds + _PATIENCE)
            record.steps.append(Step(begin_ns, time.time_ns()))
        # What was decided last is still on its way.
        flight.spin(after(2.0 * limit), _PATIENCE)
    return step_sums(record, limit)


def _obeying(node: NodeDescription, limit: float) -> NodeDescription:
    """Give the optimiser the limit (s); return any other node as it is."""
    if node.executable != OPTIMIZER:
        return node
    own = {'adaptation.latency_limit': limit, **without_saving()}
    return replace(node, parameters={**node.parameters, **own})


def step_sums(record: SteppedRecord, limit: float) -> Sums:
    """Return how many decisions were in time, outside the first 2 s of each step.

    Every window end counts: one for which nothing was ever published is late, too.
    """
    stride_ns, windows = round(_STRIDE * NS_PER_S), 0
    within: list[Decision] = []
    for step in record.steps:
        begin_ns = step.begin_ns + round(SETTLING * NS_PER_S)
        windows += max(step.end_ns // stride_ns - begin_ns // stride_ns, 0)
        within += [d for d in record.decisions if begin_ns < d.window_end_ns <= step.end_ns]
    first, last = record.steps[0], record.steps[-1]
    return {
        'windows': windows,
        'on_time': sum(d.latency <= limit for d in within),
        'latency': [1e3 * d.latency for d in within],
        'changes': sum(
            first.begin_ns <= at_ns < last.end_ns for at_ns in changes(record.configurations)
        ),
        'seconds': (last.end_ns - first.begin_ns) / NS_PER_S,
    }


def changes(configurations: Iterable[Configuration]) -> list[int]:
    """Return when (ns) rates or levels changed; a new reason alone is no change."""
    ordered = sorted(configurations, key=lambda c: c.id)
    return [
        after.effective_from_ns
        for before, after in pairwise(ordered)
        if after.modalities != before.modalities
    ]
