"""How long the last unit of a window takes when units may have to queue.

Unit i arrives at a_i and takes e_i: it is finished at f_i = max(f_(i-1), a_i) + e_i (MMEdge,
the queueing recursion behind max(L_E, L_S) x N). Below saturation only the last unit's own time
is left after the window; above it, the queue of a whole window.

Windows end on a grid of time, and a rate below the sensor's own passes of each slot of such a grid
the unit that arrives last (`sensing.rate_control`). Where slots end elsewhere than windows the
last unit of a window arrives earlier, time in which it is encoded. What every rate would have
passed follows from the stamps of all units that arrive.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmedge_ros.core.data_types import NS_PER_S
from mmedge_ros.sensing.rate_control import (
    PASS_ALL_FROM,
    earliest_phase_ns,
    lead_ns,
    native_period_ns,
    nominal_rate,
)

FloatArray = NDArray[np.float64]

# Ends of windows that are looked at, and how far back units are remembered for them.
_LOOKED_AT_NS = NS_PER_S
_REMEMBERED_NS = 8 * NS_PER_S // 5
_MOST = 1000
# As many delays as a capture control knows.
_RECENT = 32
# Units, and the time they span, that are needed.
_LEAST_UNITS, _LEAST_SPAN_NS = 6, NS_PER_S * 2 // 5
# Of what is seen, in units per period of a rate: less, and units are missing that it would pass.
_SEEN_FROM = 0.9


def last_unit_quantiles(
    service: FloatArray,
    scatter: FloatArray,
    ignorance: FloatArray,
    interval: FloatArray,
    standard_scores: Sequence[FloatArray | float],
    units: FloatArray,
    capacity: int,
    ahead: FloatArray | float = 0.0,
    reuse: FloatArray | float = 1.0,
    followed: FloatArray | float = 1.0,
    after: FloatArray | float = 0.0,
    last: FloatArray | float = 0.0,
) -> FloatArray:
    """Return quantiles of the time from a window's end until its last unit is finished.

    Unrolled, the recursion is f_N - a_N = max over k of (e_(N-k) + ... + e_N - k d) for
    units that arrive every d seconds, the last of them as the window ends. The quantile of
    each sum is that of a normal distribution (scatter averages out over a sum, ignorance does
    not), and the largest is taken: exact without scatter, a little low near saturation. A
    queue that drops its oldest unit bounds the sum by ``capacity`` units that wait and the one
    in work.

    :param service: (size,) time per unit, s
    :param scatter: (size,) its standard deviation from unit to unit, s
    :param ignorance: (size,) standard deviation of what is known of ``service``, s
    :param interval: (size,) time between units, s
    :param standard_scores: (n,) of the quantiles, 1.645 for 95 %; each (size,) or one for all
    :param units: (size,) how many units a queue can have been growing for
    :param capacity: units that can wait
    :param ahead: (`queue_lengths`, size) s, by how much earlier than that the last so many
        units begin to arrive; times are negative for a unit that is finished before the end
    :param reuse: (size,) of so many units one is encoded, and others are followed; ``ahead`` is
        that of the last one that is encoded
    :param followed: (size,) time of a followed unit, as a share of ``service``
    :param after: (size,) how many units are followed after that one
    :param last: (size,) s, by how much before the window's end the last of all arrives
    :return: (n, size)
    """
    count = queue_lengths(max(int(units.max(initial=1.0)), 1))
    full = capacity + 1.0
    early = np.broadcast_to(ahead, (len(count), len(service)))
    work, full_work = (_work(n, reuse, followed) for n in (count, full))
    own_work = np.maximum(1.0, followed)
    waited = work * service - (count - 1.0) * interval - early
    mean = np.where(count <= units, waited, -np.inf)
    spread, full_spread, own_spread = (
        _spread(n, scatter, ignorance) for n in (work, full_work, own_work)
    )
    finished = []
    for score in standard_scores:
        longest = (mean + score * spread).max(axis=0)
        bound = full_work * service + score * full_spread - early[0]
        own = own_work * service + score * own_spread - early[0]
        encoded = np.maximum(np.minimum(longest, bound), own)
        done = np.maximum(encoded + after * followed * service, followed * service - last)
        finished.append(np.where(np.equal(reuse, 1.0), encoded, done))
    return np.stack(finished)


def _work(
    count: FloatArray | float, reuse: FloatArray | float, followed: FloatArray | float
) -> FloatArray | float:
    """Return how long so many units take, as a multiple of the time of an encoded one."""
    encoded = np.ceil(count / np.asarray(reuse))
    work: FloatArray = encoded + (count - encoded) * followed
    return work


def _spread(count: FloatArray | float, scatter: FloatArray, ignorance: FloatArray) -> FloatArray:
    """Return the standard deviation of the sum of so many units, s."""
    spread: FloatArray = np.sqrt(count * scatter**2 + (count * ignorance) ** 2)
    return spread


@lru_cache(maxsize=64)
def queue_lengths(longest: int) -> FloatArray:
    """Return (n, 1) lengths of a queue; it grows steadily, so not every one is looked at."""
    return np.unique(np.geomspace(1.0, longest, min(longest, 12)).round())[:, None]


class LastUnits(NamedTuple):
    """How long before the ends of windows the last units come, in the worst window lately, s.

    ``ahead`` (counts, rates, reuses): of the n-th last unit until the last one that is encoded,
    more than n - 1 intervals. ``after`` (rates, reuses): how many are followed after that one.
    ``last`` (rates, reuses): of the last of all.
    """

    ahead: FloatArray
    after: FloatArray
    last: FloatArray


class ArrivalTimes:
    """Remembers when the units of one modality came.

    :param rates: Hz
    :param counts: (n,) numbers of last units, ascending: 1 is the last one alone
    :param stride: between the ends of windows, s; they are its multiples
    """

    def __init__(self, rates: Sequence[float], counts: FloatArray, stride: float) -> None:
        self._rates = tuple(rates)
        self._before = np.asarray(counts, np.float64).ravel() - 1.0
        self._stride_ns = max(round(stride * NS_PER_S), 1)
        self._units: deque[tuple[int, int]] = deque(maxlen=_MOST)
        self._is_new = False

    def arrived(self, stamp_ns: int, available_ns: int) -> None:
        """Enter a unit that came, whether or not it is encoded; costs about a microsecond."""
        if stamp_ns <= 0 or available_ns < stamp_ns:
            return
        if self._units and abs(available_ns - self._units[-1][1]) > _REMEMBERED_NS:
            self._units.clear()  # a gap, or another clock
        self._units.append((stamp_ns, available_ns))
        self._is_new = True

    def look(self, reuses: Sequence[int] = (1,)) -> LastUnits:
        """Return when the last units come, at every rate and reuse.

        It is the least of any window of the last second; 0 where too little is known, and where
        nothing came since the last call.
        """
        size = (len(self._rates), len(reuses))
        seen = LastUnits(np.zeros((len(self._before), *size)), np.zeros(size), np.zeros(size))
        is_new, self._is_new = self._is_new, False
        if not is_new:
            return seen
        newest_ns = self._units[-1][1]
        while self._units[0][1] < newest_ns - _REMEMBERED_NS:
            self._units.popleft()
        stamps, available = np.array(self._units, np.int64).T
        if len(stamps) < _LEAST_UNITS or newest_ns - available[0] < _LEAST_SPAN_NS:
            return seen
        native_ns = native_period_ns(stamps.tolist())
        ends = self._ends(newest_ns, int(available[0]))
        if native_ns is None or not len(ends):
            return seen
        lead = lead_ns((available - stamps)[-_RECENT:].tolist())
        for place, rate in enumerate(self._rates):
            share = rate * native_ns / NS_PER_S
            if share > 1.0 / _SEEN_FROM:
                continue  # more would pass than is seen now
            taken = np.arange(len(stamps))
            if share < PASS_ALL_FROM:
                slot_ns = round(NS_PER_S / rate)
                taken = _taken(stamps, slot_ns, earliest_phase_ns(slot_ns, native_ns, lead))
            passing = np.sort(available[taken])
            least = self._least(passing, ends, 1.0 / rate)
            for way, reuse in enumerate(reuses):
                if reuse == 1:
                    seen.ahead[:, place, way] = least
                    continue
                # As the object memory has it: the first picture of each slot.
                pictures = min(rate, nominal_rate(native_ns))
                encoded = taken[_taken(stamps[taken], round(NS_PER_S / (pictures / reuse)))]
                early, after = _last_encoded(np.sort(available[encoded]), passing, ends)
                seen.ahead[:, place, way] = early
                seen.after[place, way] = after
                seen.last[place, way] = least[0]
        return seen

    def _ends(self, newest_ns: int, oldest_ns: int) -> NDArray[np.int64]:
        """Return the ends of windows in the time that is looked at, with units before them."""
        stride = self._stride_ns
        first_ns = max(newest_ns - _LOOKED_AT_NS, oldest_ns + _LEAST_SPAN_NS // 2)
        return np.arange(-(-first_ns // stride), newest_ns // stride + 1, dtype=np.int64) * stride

    def _least(
        self, passing: NDArray[np.int64], ends: NDArray[np.int64], interval: float
    ) -> FloatArray:
        last = np.searchsorted(passing, ends, 'right') - 1
        if not len(passing) or (last < 0).any():
            return np.zeros(len(self._before))
        wanted = last[:, None] - self._before[None, :].astype(np.int64)
        # What came before anything remembered is taken to have come evenly.
        known = np.maximum(wanted, 0)
        since = (ends[:, None] - passing[known]) / NS_PER_S
        since += (known - wanted) * interval
        least: FloatArray = since.min(axis=0) - self._before * interval
        return least


def _last_encoded(
    encoded: NDArray[np.int64], passing: NDArray[np.int64], ends: NDArray[np.int64]
) -> tuple[float, int]:
    """Return how long before a window's end the latest encoded unit comes, s, and how many after.

    :param encoded: when units that are encoded arrive, ns, of all that are ``passing``
    """
    if not len(encoded) or not len(ends):
        return 0.0, 0
    last = np.searchsorted(encoded, ends, 'right') - 1
    if (last < 0).any():
        return 0.0, 0
    since = ends - encoded[last]
    worst = int(since.argmin())
    inside = (passing > encoded[last[worst]]) & (passing <= ends[worst])
    return float(since[worst]) / NS_PER_S, int(np.count_nonzero(inside))


def _taken(stamps: NDArray[np.int64], slot_ns: int, earliest_ns: int = 0) -> NDArray[np.intp]:
    """Return which units `RateControl` lets through: of each slot the first late enough in it."""
    slots, phases = np.divmod(stamps, slot_ns)
    near = np.flatnonzero(phases >= earliest_ns)
    _, first = np.unique(slots[near], return_index=True)
    return near[first]
