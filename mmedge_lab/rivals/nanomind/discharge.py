"""A battery from full to nearly empty, as an autopilot reports it, and what a policy makes of it.

The pack sags under climbs and gusts: an open-circuit voltage that falls with the charge, less the
current times the internal resistance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mmedge_ros.adaptation.power_policy import (
    STANDING_BY,
    PowerMode,
    PowerPolicy,
    PowerState,
    power_caps,
)
from mmedge_ros.core.data_types import CAMERA
from mmedge_ros.monitoring.system_state import SystemState

# Open-circuit volts of a lithium polymer cell at charges of 0, 10, 20 ... 100 %.
_CELL_VOLTS = (3.3, 3.65, 3.71, 3.75, 3.78, 3.81, 3.86, 3.93, 4.0, 4.08, 4.18)
_CELLS, _OHMS, _AMPERE_HOURS = 4, 0.048, 5.2
_HOVER, _CLIMB, _NOISE = 18.0, 42.0, 1.2  # A
_CLIMB_EVERY, _CLIMB_FOR = 45.0, 8.0  # s
_RATE = 4.0  # Hz
_EMPTY = 0.05
WHOLE, NO_PERCENTAGE, VOLTAGE_ALONE = 'percentage', 'voltage and current', 'voltage alone'
REPORTS = (WHOLE, NO_PERCENTAGE, VOLTAGE_ALONE)


class ChargeMoment(NamedTuple):
    """An instant of a discharge; ``time`` in s, ``charge`` 0..1 as it is."""

    time: float
    charge: float
    state: SystemState


@dataclass(frozen=True)
class Discharge:
    """What a policy made of a discharge: times (s), true charges and states."""

    times: np.ndarray
    charges: np.ndarray
    states: Sequence[PowerState]

    @property
    def reuse(self) -> list[int]:
        return [power_caps(state).reuse.get(CAMERA, 1) for state in self.states]


def discharge(report: str = WHOLE) -> list[ChargeMoment]:
    """Return a discharge in hover with climbs, four times a second.

    :param report: what the autopilot says of the battery, one of `REPORTS`
    """
    random = np.random.default_rng(1)
    moments, charge, time = [], 1.0, 0.0
    while charge > _EMPTY:
        climbs = time % _CLIMB_EVERY < _CLIMB_FOR
        amperes = (_CLIMB if climbs else _HOVER) + random.normal(0.0, _NOISE)
        rest = _CELLS * float(np.interp(charge, np.linspace(0.0, 1.0, 11), _CELL_VOLTS))
        volts = rest - _OHMS * amperes + random.normal(0.0, 0.02)
        state = SystemState(
            voltage=volts,
            current=amperes if report != VOLTAGE_ALONE else float('nan'),
            # Autopilots report whole percent.
            charge=round(charge, 2) if report == WHOLE else float('nan'),
        )
        moments.append(ChargeMoment(time, charge, state))
        charge -= amperes / _RATE / (3600.0 * _AMPERE_HOURS)
        time += 1.0 / _RATE
    return moments


def flown(moments: Sequence[ChargeMoment]) -> Discharge:
    """Return what a new policy with all three states makes of a discharge."""
    policy, states = PowerPolicy(STANDING_BY), []
    for moment in moments:
        policy.take(moment.state, moment.time)
        states.append(policy.update(moment.time))
    times, charges = (np.array([m[place] for m in moments]) for place in (0, 1))
    return Discharge(times, charges, states)


def change_words(found: Discharge) -> str:
    """Say at which charge states changed, and how often fewer pictures were followed meanwhile."""
    states = found.states
    places = [n for n in range(1, len(states)) if states[n].mode is not states[n - 1].mode]
    words = [f'{states[n].mode.name} at {100.0 * found.charges[n]:.1f} %' for n in places]
    critical = next((n for n, s in enumerate(states) if s.mode is PowerMode.CRITICAL), None)
    fell = int((np.diff(found.reuse[:critical]) < 0).sum())
    return f'{", ".join(words) or "no change"}; reuse fell {fell} times before CRITICAL'
