"""What a flight took of the battery, by part: as it was measured, else by a stated model."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from mmedge_ros.core.data_types import NS_PER_S, FloatArray
from mmedge_ros.core.run_record import RunRecord
from mmedge_ros.monitoring.system_state import SystemState

FUSION, IDLE = 'fusion', 'idle'
# A gap between states is filled up to this long, s.
_LONGEST_GAP = 5.0
# A longer flight is not drawn second by second: its clock is wrong.
_MOST_SECONDS = 86_400
# Stages of a unit in which its encoder is at work.
_WORK = ('encode', 'follow')


@dataclass(frozen=True)
class EnergyModel:
    """Power in W: ``idle`` all the time, ``busy`` more for each processor second of work.

    An assumption, no measurement: the Jetson Orin Nano has power modes of 7 and 15 W. A waiting
    graph takes the lower, two encoders at work all the time the higher. So joules compare
    policies; they predict no battery.
    """

    idle: float = 7.0
    busy: float = 4.0

    def joules(self, processor_seconds: float, duration: float) -> float:
        """Return the energy of a flight of that duration, s, for all work of the processor."""
        return self.idle * duration + self.busy * processor_seconds

    @property
    def words(self) -> str:
        """What is assumed."""
        return (
            f'a model, not measured: {self.idle:g} W all the time and {self.busy:g} W more for '
            'each processor second of work'
        )


class _Work(NamedTuple):
    part: str
    end_ns: int
    seconds: float


def energy_report(record: RunRecord) -> dict[str, Any]:
    """Return joules by part by the model, and those of each rail that was measured."""
    model = EnergyModel()
    parts: dict[str, float] = {}
    for work in _works(record):
        parts[work.part] = parts.get(work.part, 0.0) + model.busy * work.seconds
    return {
        'model': model.words,
        'model_j': parts | {IDLE: model.idle * record.duration},
        'measured_j': {
            'computer': _joules(record, computer_watts),
            'battery': _joules(record, _battery_watts),
        },
    }


def watts_over_time(record: RunRecord, zero_ns: int) -> tuple[FloatArray, dict[str, FloatArray]]:
    """Return the middles of seconds (N,) and what each part took in them beside idling, W."""
    works = list(_works(record))
    last = max(((work.end_ns - zero_ns) / NS_PER_S for work in works), default=0.0)
    edges = np.arange(0.0, min(max(math.ceil(last), 1), _MOST_SECONDS) + 1.0)
    watts = {}
    for part in dict.fromkeys(work.part for work in works):
        own = [work for work in works if work.part == part]
        ends = [(work.end_ns - zero_ns) / NS_PER_S for work in own]
        seconds = np.histogram(ends, edges, weights=[work.seconds for work in own])[0]
        watts[part] = EnergyModel().busy * seconds
    return edges[:-1] + 0.5, watts


def computer_watts(state: SystemState) -> float:
    """Return what the computer draws, W; NaN where only that of the whole drone is known."""
    # Without a flight battery the power that is told is the module's own.
    known = math.isfinite(state.module_power) or math.isfinite(state.voltage)
    return state.module_power if known else state.power


def _works(record: RunRecord) -> Iterator[_Work]:
    for unit in record.features:
        for stage in unit.trail:
            if stage.stage in _WORK:
                seconds = (stage.end_ns - stage.begin_ns) / NS_PER_S
                yield _Work(f'{unit.modality} encoder', stage.end_ns, seconds)
    for decision in record.decisions:
        if decision.trail and decision.trail[-1].stage == FUSION:
            stage = decision.trail[-1]
            yield _Work(FUSION, stage.end_ns, (stage.end_ns - stage.begin_ns) / NS_PER_S)


def _battery_watts(state: SystemState) -> float:
    return state.power if math.isfinite(state.voltage) else math.nan


def _joules(record: RunRecord, watts_of: Callable[[SystemState], float]) -> float:
    """Integrate a rail over the states; NaN where it was never measured."""
    states = [(stamp_ns / NS_PER_S, watts_of(state)) for stamp_ns, state in record.states]
    known = [(second, watts) for second, watts in states if math.isfinite(watts)]
    if len(known) < 2:
        return math.nan
    return sum(
        watts * min(max(later - earlier, 0.0), _LONGEST_GAP)
        for (earlier, watts), (later, _) in pairwise(known)
    )
