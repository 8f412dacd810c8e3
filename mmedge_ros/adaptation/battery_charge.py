"""The charge of the flight battery: as it reports it, else from a voltage without its sag.

Motors pull the voltage down while they draw current. What they take off is the internal resistance
times the current; the resistance is learned from how both vary together. Without a current the
highest voltages of the last while are taken, and what hovering takes off is a guess: such a charge
is rough.
"""

from __future__ import annotations

import math
from collections import deque
from typing import NamedTuple

import numpy as np

from mmedge_ros.core.data_types import FloatArray
from mmedge_ros.monitoring.system_state import SystemState

# Open-circuit volts of a lithium polymer cell, and its charge there.
_CELL_VOLTS = (3.27, 3.61, 3.69, 3.73, 3.77, 3.80, 3.84, 3.87, 3.95, 4.02, 4.11, 4.20)
_CHARGES = (0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
# A full cell; a little above, as meters are off. Below the other one nobody flies.
FULL_CELL_VOLTS, EMPTY_CELL_VOLTS = 4.25, 3.0
# Voltages are looked at over so long (s), and from so many on; where there is no current, only
# once they have lasted so long (s): a flight may begin with a climb.
_SPAN, _MOST, _FEWEST, _LEAST_SPAN = 60.0, 600, 8, 20.0
# Where the current varies less (A), it says nothing of the resistance; more ohms per cell than
# this are no battery's.
_LEAST_SPREAD, _MOST_OHMS = 1.0, 0.05
# Of the voltages without a current this quantile is that in hover, which takes off so much per
# cell (V).
_IN_HOVER, _HOVER_SAG = 0.9, 0.15


class Charge(NamedTuple):
    """A charge, 0..1, NaN where it is not known; ``is_rough`` where it is guessed."""

    value: float
    is_rough: bool = False


_UNKNOWN = Charge(math.nan)


class BatteryCharge:
    """Follows the charge of one battery.

    :param cells: in series; 0 guesses from the highest voltage seen
    """

    def __init__(self, cells: int = 0) -> None:
        self._cells = cells
        self._highest = 0.0
        self._recent: deque[tuple[float, float, float]] = deque(maxlen=_MOST)

    def update(self, state: SystemState, now: float) -> Charge:
        """Take a state of the system at ``now`` (s, monotonic); return the charge."""
        if math.isfinite(state.charge):
            return Charge(min(max(state.charge, 0.0), 1.0))
        if not math.isfinite(state.voltage) or state.voltage <= 0.0:
            self._recent.clear()
            return _UNKNOWN
        self._highest = max(self._highest, state.voltage)
        if self._recent and now < self._recent[-1][0]:
            self._recent.clear()
        self._recent.append((now, state.voltage, state.current))
        while now - self._recent[0][0] > _SPAN:
            self._recent.popleft()
        cells = self._cells or math.ceil(self._highest / FULL_CELL_VOLTS)
        # A supply that is no flight battery, such as 5 V, has no charge.
        if len(self._recent) < _FEWEST or self._highest < cells * EMPTY_CELL_VOLTS:
            return _UNKNOWN
        times, volts, amperes = np.array(self._recent).T
        if np.isfinite(amperes).sum() >= _FEWEST:
            return _charge_at(_at_rest(volts, amperes, cells) / cells)
        if times[-1] - times[0] < _LEAST_SPAN:
            return _UNKNOWN
        guessed = _charge_at(float(np.quantile(volts, _IN_HOVER)) / cells + _HOVER_SAG)
        return guessed._replace(is_rough=True)


def _charge_at(cell_volts: float) -> Charge:
    return Charge(float(np.interp(cell_volts, _CELL_VOLTS, _CHARGES)))


def _at_rest(volts: FloatArray, amperes: FloatArray, cells: int) -> float:
    """Return the voltage (V) that there would be without a current."""
    known = np.isfinite(amperes)
    volts, amperes = volts[known], amperes[known]
    spread = amperes - amperes.mean()
    if np.ptp(amperes) < _LEAST_SPREAD:
        return float(np.median(volts))
    # Numbers that no battery has make an unknown charge.
    with np.errstate(over='ignore', invalid='ignore'):
        ohms = -float(spread @ (volts - volts.mean())) / float(spread @ spread)
    ohms = min(max(ohms, 0.0), _MOST_OHMS * cells)
    return float(np.median(volts + ohms * amperes))
