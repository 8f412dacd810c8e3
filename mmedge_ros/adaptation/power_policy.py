"""Three states of power by the charge of the battery, and what each leaves to perception.

After Nanomind: above a high charge nothing is held back (UNCONSTRAINED), below a low one
perception may stand by and wake for events (CRITICAL), and between them (PROPORTIONAL) a number
alpha falls from 1 to 0. There the rate is not interpolated, as that breaks tracking: pictures are
encoded less often instead, and objects followed in the others.

What each state leaves can be read off `power_caps`. Its order is that of measured curves
(docs/adaptation.md): encoding fewer pictures and following objects in the others costs the least
accuracy for the time it saves, then the largest level, then scans of the radar, which save supply
more than time. The policy advises perception; it never speaks to the flight controller.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import IntEnum

from mmedge_ros.adaptation.battery_charge import BatteryCharge, Charge
from mmedge_ros.adaptation.caps_policy import NO_CAPS, Caps, caps_of
from mmedge_ros.core.parameter import parameter
from mmedge_ros.monitoring.system_state import SystemState

# At alpha 0 one picture of so many is encoded.
SPARSEST = 6
# From this alpha down, the most expensive level is not used any more; and the radar's rates (Hz).
_LEVEL_ALPHA, _LEVEL = 1.0, 'medium'
_RADAR = ((0.25, 5.0), (0.5, 10.0))
# While perception is awake in CRITICAL.
BURST_RATE = 10.0
_CRITICAL_RADAR_RATE = 10.0
# What nobody's safety hangs on comes this seldom (s) when nothing is left.
_RAREST = 1.0
# Where a battery was heard and is silent now.
_LOST_ALPHA = 0.5


class PowerMode(IntEnum):
    """The values are those of PowerState.msg."""

    UNCONSTRAINED = 0
    PROPORTIONAL = 1
    CRITICAL = 2


@dataclass(frozen=True)
class PowerParameters:
    """From which charge on perception saves."""

    reserve: float = parameter(
        0.2,
        'charge that the way home needs; what is said of charge below counts from it',
        '',
        0,
        0.9,
    )
    high: float = parameter(
        0.6, 'usable charge up to which perception saves, the more the lower it is', '', 0.0, 1.0
    )
    low: float = parameter(0.25, 'usable charge at which it saves all it can', '', 0.0, 1.0)
    standby: bool = parameter(
        False,
        'below that the camera stands by and wakes for events, and sees a sixth of the people',
    )
    # To be better again, charge must be above a limit by this much,
    hysteresis: float = 0.03
    # and any state but CRITICAL must be due for so long (s) before it is taken.
    dwell: float = 5.0
    # Alpha falls in steps of at least this, and rises only by more than the hysteresis: what
    # follows from it must not flicker.
    step: float = 0.02
    # A battery that is lost keeps its state so long (s).
    hold: float = 5.0


# With all three states.
STANDING_BY = PowerParameters(standby=True)
# What never saves, as long as the battery is not empty.
NEVER = PowerParameters(reserve=0.0, high=0.0, low=0.0)


@dataclass(frozen=True)
class PowerState:
    """What the battery leaves to perception; ``charge`` 0..1 is NaN where it is not known.

    ``alpha`` is 1 in UNCONSTRAINED and 0 in CRITICAL.
    """

    mode: PowerMode = PowerMode.UNCONSTRAINED
    alpha: float = 1.0
    charge: float = math.nan
    reason: str = 'no battery was heard'


class PowerPolicy:
    """The state of power over time; instants are seconds on the monotonic clock."""

    def __init__(self, parameters: PowerParameters | None = None, cells: int = 0) -> None:
        self._p = parameters or PowerParameters()
        self._charge = BatteryCharge(cells)
        self._known_at: float | None = None
        self._due: tuple[PowerMode, float] | None = None
        self.state = PowerState()

    def take(self, state: SystemState, now: float) -> None:
        """Take a state of the system."""
        charge = self._charge.update(state, now)
        if math.isfinite(charge.value):
            is_first, self._known_at = self._known_at is None, now
            self._step(charge, now, is_first)

    def update(self, now: float) -> PowerState:
        """Return the state of power at ``now``."""
        if self._known_at is not None and now - self._known_at >= self._p.hold:
            # Never without a bound, and never blind either.
            self._due = None
            alpha = min(self.state.alpha, _LOST_ALPHA)
            self.state = PowerState(
                PowerMode.PROPORTIONAL, alpha, math.nan, 'the battery was heard and is silent now'
            )
        return self.state

    def usable(self, charge: float) -> float:
        """Return the charge above the reserve, as a share of all that is above it."""
        return max((charge - self._p.reserve) / (1.0 - self._p.reserve), 0.0)

    def _step(self, charge: Charge, now: float, is_first: bool) -> None:
        wanted = self._wanted(self.usable(charge.value))
        if wanted is PowerMode.CRITICAL and (charge.is_rough or not self._p.standby):
            # A guess may make perception save, and not blind it.
            wanted = PowerMode.PROPORTIONAL
        present = self.state.mode
        if wanted is present:
            self._due = None
        elif wanted is PowerMode.CRITICAL or is_first:
            present, self._due = wanted, None
        elif self._due is None or self._due[0] is not wanted:
            self._due = wanted, now
        elif now - self._due[1] >= self._p.dwell:
            present, self._due = wanted, None
        self.state = self._made(present, charge.value)

    def _wanted(self, usable: float) -> PowerMode:
        """Return the state that a usable charge asks for, with hysteresis towards better ones."""
        p, present = self._p, self.state.mode
        low = p.low + (p.hysteresis if present is PowerMode.CRITICAL else 0.0)
        saves = present is not PowerMode.UNCONSTRAINED
        high = p.high + (p.hysteresis if saves and p.high > p.low else 0.0)
        if usable > high:
            return PowerMode.UNCONSTRAINED
        return PowerMode.CRITICAL if usable <= low else PowerMode.PROPORTIONAL

    def _made(self, mode: PowerMode, charge: float) -> PowerState:
        usable = self.usable(charge)
        percent = f'{100 * charge:.0f} % charge'
        if mode is PowerMode.UNCONSTRAINED:
            return PowerState(mode, 1.0, charge, f'{percent} is plenty')
        if mode is PowerMode.CRITICAL:
            words = f'{percent} is what the way home needs, and little more'
            return PowerState(mode, 0.0, charge, words)
        span = max(self._p.high - self._p.low, 1e-9)
        alpha = min(max((usable - self._p.low) / span, 0.0), 1.0)
        rise = alpha - self.state.alpha
        if self.state.mode is mode and -self._p.step < rise < self._p.hysteresis / span:
            alpha = self.state.alpha
        return PowerState(mode, alpha, charge, f'{percent}: saving in proportion')


def least_gap(alpha: float) -> float:
    """Return the least time (s) between annotated pictures, or remembered ones; 0 at alpha 1."""
    return _RAREST * (1.0 - alpha) if 0.0 <= alpha <= 1.0 else 0.0


def power_caps(state: PowerState) -> Caps:
    """Return what a state of power leaves to sensing, in CRITICAL while perception is awake.

    The reason is without figures that change while the bounds do not.
    """
    if state.mode is PowerMode.UNCONSTRAINED:
        return NO_CAPS
    if state.mode is PowerMode.CRITICAL:
        # In few pictures people must be found and confirmed: every one is encoded.
        words = f'power critical: bursts of {BURST_RATE:g} Hz'
        return caps_of(BURST_RATE, _CRITICAL_RADAR_RATE, _LEVEL, (words,))
    reuse = 1 + round((SPARSEST - 1) * (1.0 - state.alpha))
    level = _LEVEL if state.alpha < _LEVEL_ALPHA else ''
    radar_rate = next((rate for alpha, rate in _RADAR if state.alpha < alpha), 0.0)
    held = [
        f'1 of {reuse} encoded at most' if reuse > 1 else '',
        f'level {level} at most' if level else '',
        f'radar {radar_rate:g} Hz at most' if radar_rate else '',
    ]
    said = ', '.join(filter(None, held))
    return caps_of(0.0, radar_rate, level, (f'saving power: {said}',), reuse) if said else NO_CAPS
