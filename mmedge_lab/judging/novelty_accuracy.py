"""Whether what is new in view is announced, in time, and whether what is announced is new.

New is an appearance of a class of which no object was visible for a minute (`appearances`). It is
announced in time by a novelty of its class within a second; a later one, before the class is gone
again, is late. A novelty that belongs to no such appearance is false.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from mmedge_ros.data_types import NS_PER_S, Novelty
from mmedge_ros.report.appearances import CLASS_UNSEEN, Appearance

IN_TIME = 1.0  # s


class NoveltyCounts(NamedTuple):
    """New appearances by what became of them, and false novelties; ``minutes`` of flight."""

    in_time: int
    late: int
    missed: int
    false: int
    minutes: float
    delays: tuple[float, ...] = ()

    def report(self) -> dict[str, Any]:
        """Return the counts, the share that was announced in time, and false ones per minute."""
        new = self.in_time + self.late + self.missed
        return {
            'new': new,
            'in_time': self.in_time,
            'late': self.late,
            'missed': self.missed,
            'false': self.false,
            'share_in_time': self.in_time / new if new else None,
            'false_per_minute': self.false / self.minutes if self.minutes else None,
            'delays_s': [round(delay, 2) for delay in self.delays],
        }


def novelty_counts(
    known: Sequence[Appearance], novelties: Sequence[Novelty], minutes: float
) -> NoveltyCounts:
    """Compare novelties with the appearances of a flight.

    :param minutes: how long the flight was
    """
    # Several that come at once are one new class.
    new = {(o.label, o.begin_ns): o for o in known if o.class_away >= CLASS_UNSEEN}.values()
    left = sorted(novelties, key=lambda novelty: novelty.stamp_ns)
    in_time = late = missed = 0
    delays = []
    for one in new:
        until_ns = _last_seen_ns(one, known)
        own = [n for n in left if n.label == one.label and one.begin_ns <= n.stamp_ns <= until_ns]
        if not own:
            missed += 1
            continue
        delay = (own[0].stamp_ns - one.begin_ns) / NS_PER_S
        delays.append(delay)
        in_time += delay <= IN_TIME
        late += delay > IN_TIME
        left.remove(own[0])
    return NoveltyCounts(in_time, late, missed, len(left), minutes, tuple(delays))


def _last_seen_ns(one: Appearance, known: Sequence[Appearance]) -> int:
    """Return when the class of a new appearance was last in view before its next absence."""
    last_ns = one.end_ns
    for other in known:
        if other.label != one.label or other.begin_ns < one.begin_ns:
            continue
        if other.begin_ns > last_ns + round(CLASS_UNSEEN * NS_PER_S):
            break
        last_ns = max(last_ns, other.end_ns)
    return last_ns
