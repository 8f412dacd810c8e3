"""Which modality is the slow one: what its units cost, by the latency model or as measured."""

from __future__ import annotations

import statistics
from collections import deque
from collections.abc import Callable, Mapping

from mmedge_ros.data_types import NS_PER_S, UnitFeatures

_KEPT = 30
_FEWEST = 3
_LONGEST = 10.0
# Before the roles change the other must be slower by this much: no flapping between two alike.
_HYSTERESIS = 1.5

UnitSeconds = Callable[[], Mapping[str, float]]


class SlowModality:
    """Chooses by the seconds a unit takes from reception until its features are there.

    :param predicted: of a latency model, the seconds of a unit by modality; what is measured
        stands in where it says nothing
    """

    def __init__(self, predicted: UnitSeconds | None = None) -> None:
        self._predicted = predicted
        self.reset()

    def reset(self) -> None:
        """Forget what was measured, and the choice."""
        self._durations: dict[str, deque[float]] = {}
        self._chosen = ''

    def observe(self, unit: UnitFeatures, now_ns: int) -> None:
        """Learn from a unit whose features arrived now."""
        duration = (now_ns - unit.available_ns) / NS_PER_S
        if 0.0 <= duration <= _LONGEST:
            self._durations.setdefault(unit.modality, deque(maxlen=_KEPT)).append(duration)

    def choose(self) -> str:
        """Return the slow modality, '' while fewer than two are known."""
        seconds = {
            modality: statistics.median(durations)
            for modality, durations in self._durations.items()
            if len(durations) >= _FEWEST
        }
        if self._predicted is not None:
            # Who is not heard of cannot rest.
            known = self._predicted().items()
            seconds.update((m, s) for m, s in known if m in self._durations and s > 0.0)
        if len(seconds) < 2:
            return ''
        slowest = max(sorted(seconds), key=seconds.__getitem__)
        chosen = seconds.get(self._chosen)
        if chosen is None or seconds[slowest] > _HYSTERESIS * chosen:
            self._chosen = slowest
        return self._chosen
