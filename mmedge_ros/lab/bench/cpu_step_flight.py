"""Flies through a course: the real graph, whose share of the processor steps while it runs."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from mmedge_ros.data_types import Configuration, Decision
from mmedge_ros.lab.bench.cpu_step_report import CoursePhase, FlownCourse
from mmedge_ros.monitoring.system_state import SystemState
from mmedge_ros.replay.live_record import LiveRecord
from mmedge_ros.replay.recording import Recording
from mmedge_ros.ros.graph.description import OPTIMIZER, NodeDescription
from mmedge_ros.ros.graph.middleware_profile import profile_environment
from mmedge_ros.ros.recording.recorder import Recorder
from mmedge_ros.ros.sessions.live_session import bag_graph
from mmedge_ros.ros.sessions.own_context import limited_flight
from mmedge_ros.ros.sessions.profile_session import after, with_deadline

_START_TIME = 120.0
# With all of the machine, before the course begins (s).
_WARM_UP = 5.0
_PATIENCE = 60.0


@dataclass(frozen=True)
class Course:
    """Shares of the machine (percent) in turn, each for so many seconds, under a limit (s).

    With ``profile`` the optimiser chooses, from the unit times of that file; without one the
    graph keeps to the rates and levels it starts with. Without ``caps`` the state of the system is
    watched but holds nothing back, so that the processor alone tells.
    """

    shares: Sequence[float]
    seconds: float
    limit: float
    profile: Path | None = None
    caps: bool = False


class CourseRecord(LiveRecord):
    """What a course is judged by, as it was heard: instants of the graph, not of the recording."""

    def __init__(self) -> None:
        super().__init__()
        self.decisions: list[Decision] = []
        self.configurations: list[Configuration] = []
        self.states: list[tuple[int, SystemState]] = []

    def add_decision(self, decision: Decision) -> None:
        """Take in a published decision."""
        self.decisions.append(decision)

    def add_configuration(self, configuration: Configuration) -> None:
        """Take in a configuration."""
        self.configurations.append(configuration)

    def add_state(self, stamp_ns: int, state: SystemState) -> None:
        """Take in a state of the system."""
        self.states.append((stamp_ns, state))

    def add_features(self, features: Any) -> None:
        """Leave units alone."""

    def add_receipt(self, receipt: Any) -> None:
        """Leave receipts alone."""


def fly_course(
    bag: Path,
    model: Path,
    course: Course,
    on_phase: Callable[[float, float], None],
) -> tuple[FlownCourse, CourseRecord]:
    """Fly a recording over and over through a course.

    Player and recorder run outside of what is limited, as does the limiter.

    :param on_phase: called with the share done and the share of the machine that begins
    :raises ReplayError: when the recording cannot be used or the graph does not run
    """
    os.environ.update(profile_environment())
    with Recording(bag) as recording:
        nodes = bag_graph(
            recording,
            str(model),
            loop=True,
            wait_for=('recorder',),
            optimise=course.profile is not None,
            profile=str(course.profile or ''),
        )
    nodes = [_obeying(with_deadline(node, course.limit), course) for node in nodes]
    record = CourseRecord()
    with (
        tempfile.TemporaryDirectory(prefix='mmedge_') as scratch,
        limited_flight(nodes, partial(Recorder, record), Path(scratch)) as flight,
    ):
        flight.spin(lambda: bool(record.decisions), _START_TIME)
        flight.spin(after(_WARM_UP), _PATIENCE)
        phases = []
        for number, percent in enumerate(course.shares):
            on_phase(number / len(course.shares), percent)
            begin_ns = time.time_ns()
            flight.graph.limit(percent)
            flight.spin(after(course.seconds), course.seconds + _PATIENCE)
            phases.append(CoursePhase(percent, begin_ns, time.time_ns()))
        # What was decided last is still on its way.
        flight.spin(after(2.0 * course.limit), _PATIENCE)
    return FlownCourse(phases, record.decisions, record.configurations), record


def _obeying(node: NodeDescription, course: Course) -> NodeDescription:
    """Let the optimiser keep the limit of the course; return any other node as it is."""
    if node.executable != OPTIMIZER:
        return node
    parameters = {**node.parameters, 'adaptation.latency_limit': course.limit}
    if not course.caps:
        for grade in ('worrying', 'bad'):
            parameters[f'adaptation.caps.{grade}.camera_rate'] = 0.0
            parameters[f'adaptation.caps.{grade}.radar_rate'] = 0.0
            parameters[f'adaptation.caps.{grade}.level'] = ''
    return replace(node, parameters=parameters)
