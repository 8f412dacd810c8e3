"""Upper bounds on rates and levels from the state of battery and computer.

Every figure has a limit from which it is worrying and one from which it is bad, and the worst
of all decides which set of caps holds. A figure that was never known has no effect. One that
was known and is lost (a dead sensor, a silent monitor) keeps its grade for a while and is then
worrying until it is known again: a drone without a reading of its battery flies as if it was low.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from mmedge_ros.adaptation.battery_charge import EMPTY_CELL_VOLTS, FULL_CELL_VOLTS
from mmedge_ros.core.data_types import CAMERA, RADAR
from mmedge_ros.core.parameter import group, parameter
from mmedge_ros.monitoring.hysteresis import Hysteresis, Level, Limits
from mmedge_ros.monitoring.system_state import SystemState

# A slope looks so far back, and needs at least so much (s).
_SLOPE_SPAN, _SLOPE_SHORTEST, _MOST_VALUES = 8.0, 3.0, 200
# Scans are counted over this (s), stamps farther apart are of another clock. A change of the rate
# takes this long at most, and so does a lease; a radar that is silent for longer than this is lost
# whatever the reason. What a rate once brought is forgotten by this time constant.
_SCAN_SPAN, _MOST_SCANS = 1.5, 2000
_SCAN_JUMP, _SCAN_EXCUSE, _SCAN_SILENCE, _SCAN_FORGETTING = 2.0, 1.0, 1.8, 60.0


@dataclass(frozen=True)
class Caps:
    """Nothing above these may be chosen; what is not listed is free.

    ``rates`` in Hz and ``levels`` by modality. ``reasons`` name where the caps come from.
    ``reuse`` is the least by modality.
    """

    rates: Mapping[str, float] = field(default_factory=dict)
    levels: Mapping[str, str] = field(default_factory=dict)
    reasons: tuple[str, ...] = ()
    reuse: Mapping[str, int] = field(default_factory=dict)


NO_CAPS = Caps()


@dataclass(frozen=True)
class WorryingCaps:
    """What may still be chosen while a figure is worrying. 0 and '' leave it free."""

    # The highest rates, Hz.
    camera_rate: float = 20.0
    radar_rate: float = 10.0
    # The most expensive level; a modality that lacks it keeps to the next cheaper one.
    level: str = 'medium'


@dataclass(frozen=True)
class BadCaps(WorryingCaps):
    """What may still be chosen while a figure is bad."""

    camera_rate: float = 10.0
    radar_rate: float = 5.0
    level: str = 'small'


@dataclass(frozen=True)
class CapsParameters:
    """From when on the state of the system caps rates and levels, and how much."""

    cells: int = parameter(
        0,
        'cells of the flight battery in series; 0 guesses from the highest voltage seen',
        '',
        0,
        100,
    )
    # V, under load. A battery that is not nearly empty stays above the first; below the second
    # regulators begin to drop out.
    cell_voltage_worrying: float = 3.5
    cell_voltage_bad: float = 3.35
    # C, of the hottest zone. Jetsons throttle at 95 to 99.
    temperature_worrying: float = 80.0
    temperature_bad: float = 90.0
    # A temperature that rises counts as what it will be so much later (s).
    lookahead: float = 10.0
    # Load and memory in use, %. A busy GPU is never bad by itself; without memory the kernel ends
    # processes.
    gpu_worrying: float = 97.0
    memory_worrying: float = 85.0
    memory_bad: float = 95.0
    # Share of the scans of the radar that arrive; below it, its supply browns out.
    scans_worrying: float = 0.6
    # Caps are lifted, one step at a time, once a figure is back behind its limit by this share of
    # it for ``release`` (s): figures flicker around a limit.
    margin: float = 0.03
    release: float = 3.0
    # A state of the system older than this (s) is not used.
    stale: float = 2.0
    # A figure that is lost keeps its grade so long (s) before it is worrying.
    hold: float = 3.0
    worrying: WorryingCaps = group(WorryingCaps)
    bad: BadCaps = group(BadCaps)


class Slope:
    """A straight line through the last few seconds of a figure.

    :param ahead: s
    """

    def __init__(self, ahead: float) -> None:
        self._ahead = ahead
        self._recent: deque[tuple[float, float]] = deque(maxlen=_MOST_VALUES)

    def add(self, now: float, value: float) -> None:
        """Take a value at ``now`` (s, monotonic); one that is unknown starts all over."""
        if not math.isfinite(value) or (self._recent and now < self._recent[-1][0]):
            self._recent.clear()
        if math.isfinite(value):
            self._recent.append((now, value))
            while now - self._recent[0][0] > _SLOPE_SPAN:
                self._recent.popleft()

    def rise(self) -> float:
        """Return how much it will have risen ``ahead`` from now; 0 where too little is known."""
        if len(self._recent) < 3 or self._recent[-1][0] - self._recent[0][0] < _SLOPE_SHORTEST:
            return 0.0
        times, values = np.array(self._recent).T
        times -= times.mean()
        return float(self._ahead * (times @ values) / (times @ times))


class ScanShare:
    """The share of radar scans that come, of the most there lately were at the same rate.

    Scans are counted by their stamps: one that comes late, or many that come at once after a
    stall, say nothing of the radar. While the share is unknown it is what it was.
    """

    def __init__(self) -> None:
        self._stamps: deque[float] = deque(maxlen=_MOST_SCANS)
        self._begun = self._newest = -math.inf
        self._heard = self._looked = -math.inf
        self._most: dict[float, float] = {}
        self._rate = 0.0
        self._excused_until = -math.inf
        self._share = math.nan

    def arrived(self, now: float, stamp: float) -> None:
        """Enter that a unit arrived at ``now`` (s, monotonic), measured at ``stamp`` (s)."""
        self._heard = now
        if abs(stamp - self._newest) > _SCAN_JUMP:
            self._stamps.clear()
            self._begun = self._newest = stamp
        self._newest = max(self._newest, stamp)
        if stamp not in self._stamps:
            self._stamps.append(stamp)

    def configure(self, rate: float, now: float) -> None:
        """Enter another rate (Hz); it takes a while until scans come at it."""
        if rate != self._rate:
            self._rate = rate
            self._looked = max(self._looked, now)
            self.excuse(now + _SCAN_EXCUSE)

    def excuse(self, until: float) -> None:
        """Keep the share until a span after ``until`` (s, monotonic), as in a skip lease."""
        until = min(until, max(self._heard, self._looked) + _SCAN_EXCUSE)
        self._excused_until = max(self._excused_until, until + _SCAN_SPAN)

    def share(self, now: float) -> float:
        """Return the share over the last span, 0..1; NaN where unknown."""
        elapsed = now - self._looked if math.isfinite(self._looked) else 0.0
        self._looked = now
        while self._stamps and self._stamps[0] <= self._newest - _SCAN_SPAN:
            self._stamps.popleft()
        if now - self._heard > _SCAN_SILENCE and self._most:
            self._share = 0.0
        elif now >= self._excused_until and self._newest - self._begun >= _SCAN_SPAN:
            count = len(self._stamps)
            most = self._most.get(self._rate, 0.0)
            most -= (most - count) * min(elapsed / _SCAN_FORGETTING, 1.0)
            self._most[self._rate] = most = max(most, count)
            self._share = count / most
        return self._share


class _Figure(NamedTuple):
    """A figure with limits: its value now, and the words of a reason."""

    name: str
    limits: Limits
    value: Callable[[SystemState], float]
    words: Callable[[float], str]


class _Grade:
    """The grade of one figure over time, and why; NaN is unknown."""

    def __init__(self, figure: _Figure, hold: float) -> None:
        self._figure = figure
        self._hold = hold
        self._hysteresis = Hysteresis(figure.limits)
        self._known_at: float | None = None
        self._lost = False
        self.level = Level.OK
        self.reason = ''

    def update(self, state: SystemState, now: float) -> None:
        value = self._figure.value(state)
        if math.isfinite(value):
            self._known_at = now
            level = self._hysteresis.update(value, now)
            # The words stay those of the change: newer ones would change the reason every time.
            if level != self.level or self._lost:
                self.reason = self._figure.words(value) if level > Level.OK else ''
            self.level, self._lost = level, False
        elif self._known_at is not None and not self._lost and now - self._known_at >= self._hold:
            self._lost = True
            self._hysteresis = Hysteresis(self._figure.limits)
            self.level = max(self.level, Level.WARN)
            self.reason = f'{self._figure.name} unknown since it was lost'


class CapsPolicy:
    """Caps from the newest state of the system."""

    def __init__(self, parameters: CapsParameters | None = None) -> None:
        self._parameters = p = parameters or CapsParameters()
        self._state = SystemState()
        self._received = -math.inf
        self._highest_volts = 0.0
        self._slope = Slope(p.lookahead)
        self._scans = math.nan
        self._grades = [_Grade(figure, p.hold) for figure in self._figures(p)]

    def take(self, state: SystemState, now: float) -> None:
        """Take a state of the system at ``now`` (s, monotonic)."""
        self._state, self._received = state, now
        if math.isfinite(state.voltage):
            self._highest_volts = max(self._highest_volts, state.voltage)
        self._slope.add(now, state.temperature)

    def caps(self, now: float, scans: float = math.nan) -> Caps:
        """Return the caps at ``now`` (s, monotonic).

        :param scans: share of the radar's scans that came lately, NaN unknown
        """
        state = self._state if now - self._received < self._parameters.stale else SystemState()
        self._scans = scans
        for grade in self._grades:
            grade.update(state, now)
        worst = max(grade.level for grade in self._grades)
        if worst is Level.OK:
            return NO_CAPS
        chosen = self._parameters.bad if worst is Level.ERROR else self._parameters.worrying
        reasons = tuple(grade.reason for grade in self._grades if grade.level > Level.OK)
        return caps_of(chosen.camera_rate, chosen.radar_rate, chosen.level, reasons)

    def _figures(self, p: CapsParameters) -> list[_Figure]:
        def above(worrying: float, bad: float = math.nan) -> Limits:
            return Limits(worrying, bad, False, 0.0, p.margin, p.release)

        def below(worrying: float, bad: float = math.nan) -> Limits:
            return Limits(worrying, bad, True, 0.0, p.margin, p.release)

        return [
            _Figure(
                'voltage',
                below(p.cell_voltage_worrying, p.cell_voltage_bad),
                self._cell_volts,
                lambda v: f'voltage sag: {v:.2f} V per cell',
            ),
            _Figure(
                'temperature',
                above(p.temperature_worrying, p.temperature_bad),
                self._temperature,
                lambda v: f'temperature {v:.0f} C, now or soon',
            ),
            _Figure('throttling', above(0.5), _throttled, lambda _: 'the firmware throttles'),
            _Figure(
                'GPU load',
                above(p.gpu_worrying),
                lambda s: s.gpu,
                lambda v: f'GPU load {v:.0f} %',
            ),
            _Figure(
                'memory',
                above(p.memory_worrying, p.memory_bad),
                lambda s: s.memory,
                lambda v: f'memory {v:.0f} % used',
            ),
            _Figure(
                'radar scans',
                below(p.scans_worrying),
                lambda _: self._scans,
                lambda v: f'radar brown-out: {100 * v:.0f} % of its scans',
            ),
        ]

    def _temperature(self, state: SystemState) -> float:
        """Return the temperature soon; a predicted one alone is worrying, never bad."""
        coming = state.temperature + max(self._slope.rise(), 0.0)
        return max(state.temperature, min(coming, self._parameters.temperature_bad))

    def _cell_volts(self, state: SystemState) -> float:
        cells = self._parameters.cells or math.ceil(self._highest_volts / FULL_CELL_VOLTS)
        # A supply that is no flight battery, such as 5 V, is not graded.
        flies = cells > 0 and self._highest_volts >= cells * EMPTY_CELL_VOLTS
        return state.voltage / cells if flies else math.nan


def _throttled(state: SystemState) -> float:
    return math.nan if state.throttled is None else float(state.throttled)


def caps_of(
    camera_rate: float, radar_rate: float, level: str, reasons: tuple[str, ...], reuse: int = 1
) -> Caps:
    """Return caps on both modalities; rates (Hz) of 0 and a level of '' leave free."""
    rates = {CAMERA: camera_rate, RADAR: radar_rate}
    return Caps(
        {modality: rate for modality, rate in rates.items() if rate > 0.0},
        dict.fromkeys(rates, level) if level else {},
        reasons,
        {CAMERA: reuse} if reuse > 1 else {},
    )
