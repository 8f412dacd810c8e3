"""A battery from full to nearly empty, as an autopilot reports it, and what a policy makes of it.

The pack sags under climbs and gusts: an open-circuit voltage that falls with the charge, less the
current times the internal resistance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mmedge_ros.monitoring.system_state import SystemState
from mmedge_ros.power.power_allowance import allowance_of
from mmedge_ros.power.power_policy import (
    STANDING_BY,
    PowerMode,
    PowerPolicy,
    PowerState,
)

# Open-circuit volts of a lithium polymer cell at charges of 0, 10, 20 ... 100 %.
_CELL_VOLTS = (3.3, 3.65, 3.71, 3.75, 3.78, 3.81, 3.86, 3.93, 4.0, 4.08, 4.18)
_CELLS, _OHMS = 4, 0.048
_HOVER, _CLIMB, _NOISE = 18.0, 42.0, 1.2  # A
_CLIMB_EVERY, _CLIMB_FOR = 45.0, 8.0  # s
_RATE = 4.0  # Hz
_EMPTY = 0.05
WHOLE, NO_PERCENTAGE, VOLTAGE_ALONE = 'percentage', 'voltage and current', 'voltage alone'
REPORTS = (WHOLE, NO_PERCENTAGE, VOLTAGE_ALONE)


class Moment(NamedTuple):
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
    def modes(self) -> list[PowerMode]:
        """The states in the order in which they were taken."""
        modes = [state.mode for state in self.states]
        return [m for n, m in enumerate(modes) if n == 0 or m is not modes[n - 1]]

    @property
    def reuse(self) -> list[int]:
        return [allowance_of(state).reuse for state in self.states]


def discharge(report: str = WHOLE, amp_hours: float = 5.2, seed: int = 1) -> list[Moment]:
    """Return a discharge in hover with climbs, four times a second.

    :param report: what the autopilot says of the battery, one of `REPORTS`
    """
    random = np.random.default_rng(seed)
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
        moments.append(Moment(time, charge, state))
        charge -= amperes / _RATE / (3600.0 * amp_hours)
        time += 1.0 / _RATE
    return moments


def flown(moments: Sequence[Moment]) -> Discharge:
    """Return what a new policy with all three states makes of a discharge."""
    policy, states = PowerPolicy(STANDING_BY), []
    for moment in moments:
        policy.take(moment.state, moment.time)
        states.append(policy.update(moment.time))
    times, charges = (np.array([m[place] for m in moments]) for place in (0, 1))
    return Discharge(times, charges, states)


def changes(found: Discharge) -> dict[str, object]:
    """Return how often states changed, and the largest step of alpha within PROPORTIONAL."""
    alphas = np.array([s.alpha for s in found.states if s.mode is PowerMode.PROPORTIONAL])
    rises = np.diff(np.array(found.reuse)[: len(found.states)])
    critical = [n for n, s in enumerate(found.states) if s.mode is PowerMode.CRITICAL]
    before = rises[: critical[0] - 1] if critical else rises
    return {
        'states': [mode.name for mode in found.modes],
        'changes': len(found.modes) - 1,
        'largest_step_of_alpha': float(-np.diff(alphas).min()) if len(alphas) > 1 else None,
        'times_reuse_fell_before_critical': int((before < 0).sum()),
        'charge_at_changes': [
            round(float(found.charges[n]), 3)
            for n in range(1, len(found.states))
            if found.states[n].mode is not found.states[n - 1].mode
        ],
    }
