"""The latency that a consumer of decisions leaves to perception.

A consumer, such as a language model, announces how long it takes and by when its own result is
wanted; what remains is the limit of perception (MMEdge, 6.5.4). An announcement is a lease: a
consumer that dies or falls silent shortens the limit for a few seconds only.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from mmedge_ros.core.untrusted_files import shown

_MOST_CONSUMERS = 16
_LONGEST_NAME = 64


@dataclass(frozen=True)
class LatencyBudgetParameters:
    """How far consumers of decisions may shorten the latency limit."""

    # The limit is never made shorter than this (s), whatever consumers announce.
    floor: float = 0.02
    # An announcement that claims to hold for longer (s) is not used: a consumer that dies holds
    # the limit short for no more than this.
    longest_lease: float = 5.0
    # Nor is one with a longer duration in it (s), which cannot be meant.
    longest: float = 60.0
    # The limit is shortened in steps of this (s), so that a consumer whose time varies a little
    # changes nothing.
    step: float = 0.005


class LatencyDemand(NamedTuple):
    """What a consumer announces; durations in s.

    ``decode_time`` passes from a decision to the consumer's result, ``total_limit`` may pass
    from the end of a window to it. ``lease`` is how long this holds from its receipt.
    """

    source: str
    decode_time: float
    total_limit: float
    lease: float


class _Held(NamedTuple):
    left: float
    until: float


class LatencyBudget:
    """The latency limit by the announcements that hold, and why it is shorter.

    Instants are seconds on the monotonic clock.
    """

    def __init__(self, parameters: LatencyBudgetParameters | None = None) -> None:
        self._parameters = parameters or LatencyBudgetParameters()
        self._held: dict[str, _Held] = {}
        self.taken = 0
        self.refused = 0
        self.problem = ''

    def consumers(self, now: float) -> tuple[str, ...]:
        """Return the names of consumers whose announcements hold."""
        self._forget(now)
        return tuple(sorted(self._held))

    def take(self, demand: LatencyDemand, now: float) -> bool:
        """Take an announcement; an impossible one is not used, and ``problem`` is set.

        What the same consumer announced before then goes on holding until its lease ends.
        """
        self._forget(now)
        problem = self._problem_of(demand)
        if problem:
            self.refused += 1
            self.problem = problem
            return False
        self.taken += 1
        left = demand.total_limit - demand.decode_time
        self._held[demand.source] = _Held(left, now + demand.lease)
        return True

    def limit(self, usual: float, now: float) -> tuple[float, tuple[str, ...]]:
        """Return the limit that holds, never above the usual one (s), and why it is shorter.

        The consumer that leaves least decides; the words name it, without figures that would
        change every time.
        """
        self._forget(now)
        if not self._held:
            return usual, ()
        source = min(sorted(self._held), key=lambda name: self._held[name].left)
        p = self._parameters
        # A share of a step, so that 0.08 stays 0.08 whatever its last bit is.
        left = math.floor(self._held[source].left / p.step + 1e-3) * p.step
        words = f'latency budget: {source} leaves {1e3 * left:.0f} ms'
        if left < p.floor:
            left = p.floor
            words = f'latency budget: {source} leaves less than the least, {1e3 * left:.0f} ms'
        if not left < usual:
            return usual, ()
        return left, (words,)

    def _problem_of(self, demand: LatencyDemand) -> str:
        p = self._parameters
        name = shown(demand.source)
        if not demand.source or len(demand.source) > _LONGEST_NAME:
            return f'a source named {name}; name it with 1 to {_LONGEST_NAME} characters'
        for field, value in (
            ('decode_time', demand.decode_time),
            ('total_limit', demand.total_limit),
        ):
            if not 0.0 <= value <= p.longest:
                return f'{name}: a {field} of {value:g} s; it must be in 0..{p.longest:g}'
        if demand.total_limit <= 0.0:
            return f'{name}: a total_limit of 0 s; say how late its own result may be'
        if not demand.lease > 0.0:
            return f'{name}: valid_until had passed; announce it anew before it does'
        if demand.lease > p.longest_lease:
            return (
                f'{name}: valid_until is {demand.lease:.3g} s ahead; announce at most '
                f'{p.longest_lease:g} s at a time'
            )
        if demand.source not in self._held and len(self._held) >= _MOST_CONSUMERS:
            return f'{name}: more than {_MOST_CONSUMERS} consumers at once'
        return ''

    def _forget(self, now: float) -> None:
        self._held = {name: held for name, held in self._held.items() if now < held.until}
