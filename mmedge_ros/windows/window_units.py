"""Which units of a modality were sensed in which window, and which modality is the slow one."""

from __future__ import annotations

import statistics
from collections import deque
from typing import NamedTuple

from mmedge_ros.core.data_types import NS_PER_S, UnitFeatures, UnitKey

_MOST_KEPT = 1000
_FEWEST_GAPS = 4
_KEPT_GAPS = 15
# The median of the shortest gaps: those over a rest or a loss are longer.
_SHORTER = 0.5
# Durations (s) of units: how many are kept, how few say nothing, and which cannot be true.
_KEPT_DURATIONS = 30
_FEWEST_DURATIONS = 3
_LONGEST_DURATION = 10.0
# The other modality must be slower by this factor before the roles change: no flapping.
_HYSTERESIS = 1.5


class _Sensed(NamedTuple):
    key: UnitKey
    available_ns: int
    rate: float
    level: str


class WindowUnits:
    """Counts the units of one modality by window.

    :param period_ns: native distance of units; learned where it is not known
    """

    def __init__(self, window_ns: int, period_ns: int | None = None) -> None:
        self._window_ns = window_ns
        self._native_ns = period_ns
        self.reset()

    def reset(self) -> None:
        """Forget all units."""
        self._units: deque[_Sensed] = deque(maxlen=_MOST_KEPT)
        self._keys: set[UnitKey] = set()
        self._gaps: deque[int] = deque(maxlen=_KEPT_GAPS)
        self._newest_ns: int | None = None
        self._delays: deque[int] = deque(maxlen=_KEPT_GAPS)

    def add(self, unit: UnitFeatures) -> bool:
        """Enter an encoded unit; returns False for one that is known already."""
        if unit.key in self._keys:
            return False
        if len(self._units) == _MOST_KEPT:
            self._keys.discard(self._units[0].key)
        self._units.append(_Sensed(unit.key, unit.available_ns, unit.rate, unit.level))
        self._keys.add(unit.key)
        if self._newest_ns is not None and unit.stamp_ns > self._newest_ns:
            self._gaps.append(unit.stamp_ns - self._newest_ns)
        self._newest_ns = max(unit.stamp_ns, self._newest_ns or unit.stamp_ns)
        self._delays.append(max(unit.available_ns - unit.stamp_ns, 0))
        return True

    def forget(self, horizon_ns: int) -> None:
        """Let go of units received until then: no open window holds them."""
        while self._units and self._units[0].available_ns <= horizon_ns:
            self._keys.discard(self._units.popleft().key)

    def sensed(self, end_ns: int) -> int:
        """Return how many units of the window that ends then were sensed and encoded."""
        return len(self._within(end_ns))

    def expected(self) -> int:
        """Return how many units a window has when nothing is skipped or lost, 0 if unknown."""
        period_ns = self._period_ns()
        return round(self._window_ns / period_ns) if period_ns else 0

    def is_uniform(self, end_ns: int) -> bool:
        """Whether all units of the window were taken at one rate and level."""
        return len({(unit.rate, unit.level) for unit in self._within(end_ns)}) <= 1

    @property
    def delay_ns(self) -> int:
        """The longest delay from measurement to reception lately."""
        return max(self._delays, default=0)

    @property
    def level(self) -> str:
        """The level of the newest unit."""
        return self._units[-1].level if self._units else ''

    def _within(self, end_ns: int) -> list[_Sensed]:
        begin_ns = end_ns - self._window_ns
        return [unit for unit in self._units if begin_ns < unit.available_ns <= end_ns]

    def _period_ns(self) -> int:
        """Return the distance of units: that of the sensor, longer where the rate is bounded."""
        native_ns = self._native_ns or 0
        if not native_ns and len(self._gaps) >= _FEWEST_GAPS:
            gaps = sorted(self._gaps)
            native_ns = round(statistics.median(gaps[: max(round(_SHORTER * len(gaps)), 1)]))
        rate = self._units[-1].rate if self._units else 0.0
        bound_ns = round(NS_PER_S / rate) if rate > 0.0 else 0
        # Without a rate of its own a modality is not known until its sensor is.
        return max(native_ns, bound_ns) if native_ns else 0


class SlowModality:
    """Chooses by the seconds a unit takes from reception until its features are there."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget what was measured, and the choice."""
        self._durations: dict[str, deque[float]] = {}
        self._chosen = ''

    def observe(self, unit: UnitFeatures, now_ns: int) -> None:
        """Learn from a unit whose features arrived now."""
        duration = (now_ns - unit.available_ns) / NS_PER_S
        if 0.0 <= duration <= _LONGEST_DURATION:
            self._durations.setdefault(unit.modality, deque(maxlen=_KEPT_DURATIONS)).append(
                duration
            )

    def choose(self) -> str:
        """Return the slow modality, '' while fewer than two are known."""
        seconds = {
            modality: statistics.median(durations)
            for modality, durations in self._durations.items()
            if len(durations) >= _FEWEST_DURATIONS
        }
        if len(seconds) < 2:
            return ''
        slowest = max(sorted(seconds), key=seconds.__getitem__)
        chosen = seconds.get(self._chosen)
        if chosen is None or seconds[slowest] > _HYSTERESIS * chosen:
            self._chosen = slowest
        return self._chosen
