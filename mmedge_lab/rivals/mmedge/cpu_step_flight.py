"""A CPU-step flight: the real graph, whose share of the processor steps while it runs."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from mmedge_lab.rivals.mmedge.cpu_step_report import CpuStep, CpuStepFlight
from mmedge_ros.data_types import Configuration, Decision, ResultKind
from mmedge_ros.monitoring.system_state import SystemState
from mmedge_ros.replay.live_record import LiveRecord
from mmedge_ros.replay.recording import Recording
from mmedge_ros.ros.graph.description import OPTIMIZER, NodeDescription
from mmedge_ros.ros.graph.middleware_profile import set_profile
from mmedge_ros.ros.graph.options import GraphOptions
from mmedge_ros.ros.graph.perception_graph import bag_graph
from mmedge_ros.ros.recording.recorder import Recorder
from mmedge_ros.ros.sessions.own_context import limited_flight
from mmedge_ros.ros.sessions.profile_session import after, with_deadline

_START_TIME = 120.0
# With all of the machine, before the first phase (s).
_WARM_UP = 5.0
_PATIENCE = 60.0


@dataclass(frozen=True)
class CpuStepPlan:
    """Shares of the machine (percent) in turn, each for so many seconds, under a limit (s).

    With ``profile`` the optimiser chooses, from the unit times of that file; without one the
    graph keeps to the rates and levels it starts with. Without ``caps`` the state of the system is
    recorded but caps nothing, so that the processor alone has an effect.
    """

    shares: Sequence[float]
    seconds: float
    limit: float
    profile: Path | None = None
    caps: bool = False


class CpuStepRecord(LiveRecord):
    """What the report is made of; instants of the graph, not of the recording."""

    def __init__(self) -> None:
        super().__init__()
        self.decisions: list[Decision] = []
        self.configurations: list[Configuration] = []
        self.states: list[tuple[int, SystemState]] = []

    def add_decision(self, decision: Decision) -> None:
        """Take in a published decision; updates are none."""
        if decision.kind is ResultKind.DECISION:
            self.decisions.append(decision)

    def add_configuration(self, configuration: Configuration) -> None:
        """Take in a configuration."""
        self.configurations.append(configuration)

    def add_state(self, stamp_ns: int, state: SystemState) -> None:
        """Take in a state of the system."""
        self.states.append((stamp_ns, state))

    def add_features(self, features: Any) -> None:
        """Ignore units."""

    def add_receipt(self, receipt: Any) -> None:
        """Ignore receipts."""


def fly_cpu_steps(
    bag: Path,
    model: Path,
    plan: CpuStepPlan,
    on_phase: Callable[[float, float], None],
) -> tuple[CpuStepFlight, CpuStepRecord]:
    """Fly a recording over and over while the share of the processor steps.

    Player and recorder run outside of what is limited, as does the limiter.

    :param on_phase: called with the share done and the share of the machine that begins
    :raises ReplayError: when the recording cannot be used or the graph does not run
    """
    set_profile()
    with Recording(bag) as recording:
        nodes = bag_graph(
            recording,
            GraphOptions(
                detector=str(model),
                loop=True,
                wait_for=('recorder',),
                optimise=plan.profile is not None,
                profile=str(plan.profile or ''),
            ),
        )
    nodes = [_obeying(with_deadline(node, plan.limit), plan) for node in nodes]
    record = CpuStepRecord()
    with (
        tempfile.TemporaryDirectory(prefix='mmedge_') as scratch,
        limited_flight(nodes, partial(Recorder, record), Path(scratch)) as flight,
    ):
        flight.spin(lambda: bool(record.decisions), _START_TIME)
        flight.spin(after(_WARM_UP), _PATIENCE)
        phases = []
        for number, percent in enumerate(plan.shares):
            on_phase(number / len(plan.shares), percent)
            begin_ns = time.time_ns()
            flight.graph.limit(percent)
            flight.spin(after(plan.seconds), plan.seconds + _PATIENCE)
            phases.append(CpuStep(percent, begin_ns, time.time_ns()))
        # What was decided last is still on its way.
        flight.spin(after(2.0 * plan.limit), _PATIENCE)
    return CpuStepFlight(phases, record.decisions, record.configurations), record


def _obeying(node: NodeDescription, plan: CpuStepPlan) -> NodeDescription:
    """Give the optimiser the limit of the plan; return any other node as it is."""
    if node.executable != OPTIMIZER:
        return node
    caps = {} if plan.caps else without_caps()
    limit = {'adaptation.latency_limit': plan.limit}
    return replace(node, parameters={**node.parameters, **limit, **caps})


def without_caps() -> dict[str, Any]:
    """Return parameters of an optimiser that battery and computer do not cap."""
    caps = {
        f'adaptation.caps.{grade}.{name}': nothing
        for grade in ('worrying', 'bad')
        for name, nothing in (('camera_rate', 0.0), ('radar_rate', 0.0), ('level', ''))
    }
    power = {f'adaptation.power.{name}': 0.0 for name in ('reserve', 'high', 'low')}
    return {**caps, **power}
