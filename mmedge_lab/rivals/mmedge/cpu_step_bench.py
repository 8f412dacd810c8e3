"""A live flight whose share of the processor steps, with adaptation and without.

Fixed configurations flown under each share, the cheapest and one in the middle, say whether a
share is enough. Player, recorder and limiter run outside of what is limited.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from operator import methodcaller
from pathlib import Path
from typing import Any, NamedTuple

from mmedge_lab.judging.bench import Bench, BenchRequest, Figure, Row, Subject, Sums, listed
from mmedge_lab.rivals.mmedge.held_bench import SHARES
from mmedge_lab.simulation.flight import DEMO_FLIGHT, kept_flight
from mmedge_lab.worker_processes import OnShare
from mmedge_ros.adaptation.configuration_space import ConfigurationSpace
from mmedge_ros.adaptation.profiling import ProfilePhase, profile_phases
from mmedge_ros.commands.profile import chosen_space, made_profile
from mmedge_ros.core.data_types import NS_PER_S, Configuration, Decision, ResultKind
from mmedge_ros.core.device_profile import write_profile
from mmedge_ros.monitoring.machine import machine_description
from mmedge_ros.replay.live_record import LiveRecord
from mmedge_ros.replay.recording import Recording
from mmedge_ros.ros.graph.description import OPTIMIZER, NodeDescription
from mmedge_ros.ros.graph.middleware_profile import set_profile
from mmedge_ros.ros.graph.options import GraphOptions
from mmedge_ros.ros.graph.perception_graph import bag_graph
from mmedge_ros.ros.recording.recorder import Recorder
from mmedge_ros.ros.sessions.own_context import limited_flight
from mmedge_ros.ros.sessions.profile_session import PhaseDuration, after, measure, with_deadline

ADAPTIVE, KEPT = 'with adaptation', 'without'
_OF_SPACE = {'the cheapest configuration, fixed': 0.0, 'one in the middle, fixed': 0.5}
# Decisions do not count for so long after a step of the processor, s.
SETTLING = 2.0
_STRIDE = 0.1
# How much of the flight is simulated at most; it is flown over and over (s).
_LONGEST_FLIGHT = 60.0
# How long each level is measured at least and at most, per share of the machine (s).
_PROFILE_SECONDS = PhaseDuration(4.0, 60.0)
_START_TIME = 120.0
# With all of the machine, before the first phase (s).
_WARM_UP = 5.0
_PATIENCE = 60.0
_FIGURES = {
    'in_time': Figure('in time, %', 'in_time', 'windows', 1, scale=100.0),
    'p50': Figure('p50, ms', 'latency', digits=1, quantile=0.5),
    'p95': Figure('p95, ms', 'latency', digits=1, quantile=0.95),
    'without_units': Figure('decided without units, %', 'without', 'decisions', 1, scale=100.0),
    'changes': Figure('changes a minute', 'changes', 'seconds', 1, scale=60.0),
}


class CpuStep(NamedTuple):
    """A phase of a flight under one share of the machine; instants on the clock of the graph."""

    begin_ns: int
    end_ns: int

    @property
    def seconds(self) -> float:
        """How long it lasted."""
        return (self.end_ns - self.begin_ns) / NS_PER_S


@dataclass(frozen=True)
class CpuStepPlan:
    """Shares of the machine (percent) in turn, each for so many seconds, under a limit (s).

    Without ``saves`` the battery caps nothing, so that the processor alone has an effect.
    ``profile`` is that of this machine; '' to measure it first.
    """

    out: Path
    flight: Path
    detector: str
    shares: tuple[float, ...]
    seconds: float
    limit: float
    saves: bool = False
    profile: str = ''

    def __call__(self, _: Subject, rows: Sequence[Row], on_share: OnShare) -> CpuStepRuns:
        """Fly all ways; what is measured of this machine goes first.

        :raises ReplayError: when the recording cannot be used or the graph does not run
        """
        model, space = chosen_space(self.flight, self.detector)
        profile = Path(self.profile) if self.profile else self.out / 'profile.yaml'
        fixed = self._measured(model, space, None if self.profile else profile)
        flown = {}
        for number, name in enumerate((KEPT, ADAPTIVE), 1):
            if any(row.name == name for row in rows):
                used = profile if name == ADAPTIVE else None
                flown[name] = fly_cpu_steps(self, model, used)
            on_share((1 + number) / 3.0)
        return CpuStepRuns(self, flown, fixed)

    def _measured(
        self, model: Path, space: ConfigurationSpace, profile: Path | None
    ) -> dict[tuple[str, float], list[float]]:
        """Return latencies (s) of fixed configurations by share; write the profile."""
        fixed = {
            (name, percent): ProfilePhase(
                space.parts(int(part * len(space))), percent, is_check=True
            )
            for name, part in _OF_SPACE.items()
            for percent in dict.fromkeys(self.shares)
        }
        different = list(dict.fromkeys([100.0, *self.shares]))
        levels = profile_phases(space, different, 0) if profile else []
        phases = [*levels, *fixed.values()]
        measured = measure(self.flight, model, space, phases, _PROFILE_SECONDS, lambda *_: None)
        if profile:
            write_profile(made_profile(model, space, measured), profile)
        return {
            key: [
                latency
                for phase, samples in measured
                if phase == wanted
                for latency in samples.latencies
            ]
            for key, wanted in fixed.items()
        }


class CpuStepRecord(LiveRecord):
    """What is judged; instants of the graph, not of the recording."""

    def __init__(self) -> None:
        super().__init__()
        self.decisions: list[Decision] = []
        self.configurations: list[Configuration] = []
        self.phases: list[CpuStep] = []

    def add_decision(self, decision: Decision) -> None:
        """Take in a published decision; updates are none."""
        if decision.kind is ResultKind.DECISION:
            self.decisions.append(decision)

    def add_configuration(self, configuration: Configuration) -> None:
        """Take in a configuration."""
        self.configurations.append(configuration)

    def add_features(self, features: Any) -> None:
        """Ignore units."""

    def add_receipt(self, receipt: Any) -> None:
        """Ignore receipts."""


class CpuStepRuns(NamedTuple):
    """What was flown by name, and latencies (s) of fixed configurations by name and share."""

    plan: CpuStepPlan
    flown: dict[str, CpuStepRecord]
    fixed: dict[tuple[str, float], list[float]]

    def sums(self, name: str, number: int) -> Sums:
        """Return the sums of a row in a phase."""
        if name in self.flown:
            return step_sums(self.flown[name], number, self.plan.limit)
        latencies = self.fixed[name, self.plan.shares[number]]
        return {
            'windows': len(latencies),
            'in_time': sum(latency <= self.plan.limit for latency in latencies),
            'latency': [1e3 * latency for latency in latencies],
        }


def bench(
    request: BenchRequest,
    *,
    shares: str = '100,50,30,100',
    phase_seconds: float = 15.0,
    limit_ms: float = 100.0,
    saves: bool = False,
    profile: str = '',
) -> Bench:
    """Fly live while the processor is taken away in steps, with adaptation and without.

    :param shares: of the machine in turn, percent by commas
    :param phase_seconds: how long each share holds
    :param limit_ms: latency that decisions have to keep
    :param saves: the battery of the flight caps configurations, too
    :param profile: of this machine, measured with the same shares; measured first without it
    """
    steps = listed('shares', shares, *SHARES)
    seconds = 6.0 if request.quick else phase_seconds
    if request.inputs:
        flight = request.inputs[0]
    else:
        length = min(seconds * len(steps), _LONGEST_FLIGHT)
        flight = kept_flight(
            request.out / 'flight', replace(DEMO_FLIGHT, seconds=length), lambda _: None
        )
    plan = CpuStepPlan(
        request.out, flight, request.detector, steps, seconds, limit_ms / 1e3, saves, profile
    )
    rows = [
        Row(name, methodcaller('sums', name, n), group=f'{n + 1}: {percent:g} % of the machine')
        for n, percent in enumerate(steps)
        for name in (ADAPTIVE, KEPT, *_OF_SPACE)
    ]
    machine = machine_description()
    return Bench(
        'A processor that is taken away in steps, live',
        tuple(rows),
        _FIGURES,
        request.repetitions(1),
        plan,
        about={
            'flight': flight.name,
            'limit': f'{limit_ms:g} ms, from {SETTLING:g} s after a step',
            'machine': f'{machine["processor"]}, {machine["cores"]} processors',
        },
    )


def step_sums(record: CpuStepRecord, number: int, limit: float) -> Sums:
    """Return how many decisions were in time, outside the first 2 s of a phase.

    Every window end counts: one for which nothing was ever published is late, too. ``without``
    counts decisions that could not wait for units still in work.
    """
    phase = record.phases[number]
    stride_ns = round(_STRIDE * NS_PER_S)
    begin_ns = phase.begin_ns + round(SETTLING * NS_PER_S)
    within = [d for d in record.decisions if begin_ns < d.window_end_ns <= phase.end_ns]
    return {
        'windows': max(phase.end_ns // stride_ns - begin_ns // stride_ns, 0),
        'decisions': len(within),
        'in_time': sum(d.latency <= limit for d in within),
        'latency': [1e3 * d.latency for d in within],
        'without': sum(bool(d.late) for d in within),
        'changes': sum(
            phase.begin_ns <= at_ns < phase.end_ns for at_ns in changes(record.configurations)
        ),
        'seconds': phase.seconds,
    }


def changes(configurations: Iterable[Configuration]) -> list[int]:
    """Return when rates or levels changed; a new reason alone is no change."""
    ordered = sorted(configurations, key=lambda c: c.id)
    return [
        after.effective_from_ns
        for before, after in pairwise(ordered)
        if after.modalities != before.modalities
    ]


def fly_cpu_steps(plan: CpuStepPlan, model: Path, profile: Path | None) -> CpuStepRecord:
    """Fly a recording over and over while the share of the processor steps.

    :param profile: the optimiser chooses, from the unit times of that file; without one the graph
        keeps to the rates and levels it starts with
    :raises ReplayError: when the recording cannot be used or the graph does not run
    """
    set_profile()
    options = GraphOptions(
        detector=str(model),
        loop=True,
        wait_for=('recorder',),
        optimise=profile is not None,
        profile=str(profile or ''),
    )
    with Recording(plan.flight) as recording:
        nodes = bag_graph(recording, options)
    nodes = [_obeying(with_deadline(node, plan.limit), plan) for node in nodes]
    record = CpuStepRecord()
    with (
        tempfile.TemporaryDirectory(prefix='mmedge_') as scratch,
        limited_flight(nodes, partial(Recorder, record), Path(scratch)) as flight,
    ):
        flight.spin(lambda: bool(record.decisions), _START_TIME)
        flight.spin(after(_WARM_UP), _PATIENCE)
        for percent in plan.shares:
            begin_ns = time.time_ns()
            flight.graph.limit(percent)
            flight.spin(after(plan.seconds), plan.seconds + _PATIENCE)
            record.phases.append(CpuStep(begin_ns, time.time_ns()))
        # What was decided last is still on its way.
        flight.spin(after(2.0 * plan.limit), _PATIENCE)
    return record


def _obeying(node: NodeDescription, plan: CpuStepPlan) -> NodeDescription:
    """Give the optimiser the limit of the plan; return any other node as it is."""
    if node.executable != OPTIMIZER:
        return node
    saving = {} if plan.saves else without_saving()
    limit = {'adaptation.latency_limit': plan.limit}
    return replace(node, parameters={**node.parameters, **limit, **saving})


def without_saving() -> dict[str, Any]:
    """Return parameters of an optimiser that the charge of a battery does not cap."""
    return {f'adaptation.power.{name}': 0.0 for name in ('reserve', 'high', 'low')}
