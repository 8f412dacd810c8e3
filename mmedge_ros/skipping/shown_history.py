"""The tracks shown in the last second, and how well they predicted the present."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from dataclasses import dataclass
from itertools import pairwise

from mmedge_ros.data_types import NS_PER_S
from mmedge_ros.skipping.track_facts import MovingBox, StateFacts

_KEPT_NS = NS_PER_S
_MOST_KEPT = 200
_LATELY_NS = 300_000_000
# How long before now an early decision would have been made, and the share of earlier pictures'
# figures that is forgotten with each picture.
_LEADS_NS = (30_000_000, 60_000_000, 100_000_000, 180_000_000)
_MIDDLES_NS = [(a + b) // 2 for a, b in pairwise(_LEADS_NS)]
_FORGOTTEN = 0.1
# Boxes that fit worse than this are not the same as a decision shows them.
_DIFFERENT = 0.3


@dataclass(slots=True, eq=False)
class _Shown:
    """Who was shown at an instant, and where; ``changed``: not the same people as before.

    ``newest_ns`` is the newest stamp of this and all before: where that is too old, so is
    whatever came earlier, in whichever order the stamps came.
    """

    stamp_ns: int
    newest_ns: int
    people: dict[int, MovingBox]
    changed: bool


_NOBODY = _Shown(0, 0, {}, False)


class ShownHistory:
    """Remembers the tracks shown in the last second."""

    def __init__(self) -> None:
        self._shown: deque[_Shown] = deque(maxlen=_MOST_KEPT)
        # When a track came or went last.
        self._changed_ns = 0
        # Running means over pictures, for each lead: the worst fit (1 - IoU), and whether it was
        # no match.
        self._fits = [0.5] * len(_LEADS_NS)
        self._errors = [0.5] * len(_LEADS_NS)

    def add(self, facts: StateFacts) -> None:
        """Remember the tracks that are shown."""
        shown, stamp_ns = self._shown, facts.stamp_ns
        people = {person.id: person.moving for person in facts.people}
        newest_ns, changed = stamp_ns, False
        if shown:
            last = shown[-1]
            newest_ns = last.newest_ns if last.newest_ns > stamp_ns else stamp_ns
            changed = last.people.keys() != people.keys()
            if changed and stamp_ns > self._changed_ns:
                self._changed_ns = stamp_ns
        shown.append(_Shown(stamp_ns, newest_ns, people, changed))
        while stamp_ns - shown[0].stamp_ns > _KEPT_NS:
            shown.popleft()

    def learn(self, facts: StateFacts) -> None:
        """Learn from a picture how well it could have been predicted."""
        fits, errors, stamp_ns = self._fits, self._errors, facts.stamp_ns
        earlier = reversed(self._shown)
        then = next(earlier, _NOBODY)
        for place, lead_ns in enumerate(_LEADS_NS):
            # As in `_at`; the leads are ever longer.
            while then.stamp_ns > stamp_ns - lead_ns:
                before = next(earlier, None)
                if before is None:
                    break
                then = before
            fit = _misfit(facts, then)
            fits[place] += _FORGOTTEN * (fit - fits[place])
            errors[place] += _FORGOTTEN * ((fit > _DIFFERENT) - errors[place])

    def usual(self, lead_ns: int) -> tuple[float, float]:
        """Return the usual worst fit, and how usual no match is, of the lead that is nearest."""
        place = bisect_left(_MIDDLES_NS, lead_ns)
        return self._fits[place], self._errors[place]

    def hindsight(self, facts: StateFacts, lead_ns: int) -> float:
        """How wrong a decision would have been that was made so long ago for now."""
        return _misfit(facts, self._at(facts.stamp_ns - lead_ns))

    def people_at(self, at_ns: int) -> dict[int, MovingBox]:
        """Return the tracks shown at an instant, or the first that are known."""
        return self._at(at_ns).people

    def changes(self, state_ns: int) -> float:
        """How often the set of shown tracks changed lately."""
        since_ns = state_ns - _LATELY_NS
        if self._changed_ns < since_ns:
            return 0.0
        count, first = 0, False
        for shown in reversed(self._shown):
            if shown.newest_ns < since_ns:
                break
            if shown.stamp_ns >= since_ns:
                first = shown.changed
                count += first
        # What the first of them changed was before that.
        return float(count - first)

    def _at(self, at_ns: int) -> _Shown:
        """Return what was shown at an instant, or is known first."""
        for shown in reversed(self._shown):
            if shown.stamp_ns <= at_ns:
                return shown
        return self._shown[0] if self._shown else _NOBODY


def _misfit(facts: StateFacts, then: _Shown) -> float:
    """Return the worst fit (1 - IoU) of the tracks shown now with what was expected then.

    :return: 1 if they are not the same people
    """
    if len(then.people) != len(facts.people):
        return 1.0
    dt = (facts.stamp_ns - then.stamp_ns) / NS_PER_S
    least = 1.0
    # `overlap` written out: most of what taking in a picture costs is here.
    for person in facts.people:
        old = then.people.get(person.id)
        if old is None:
            return 1.0
        x, y, half_width, half_height, right, down = old
        # Like in the tracker's reports, the size stays.
        x, y = x + dt * right, y + dt * down
        ax0, ay0, ax1, ay1 = x - half_width, y - half_height, x + half_width, y + half_height
        bx0, by0, bx1, by1 = person.corners
        width = (bx1 if bx1 < ax1 else ax1) - (bx0 if bx0 > ax0 else ax0)
        height = (by1 if by1 < ay1 else ay1) - (by0 if by0 > ay0 else ay0)
        if width <= 0.0 or height <= 0.0:
            return 1.0
        shared = width * height
        fit = shared / ((ax1 - ax0) * (ay1 - ay0) + person.area - shared)
        if fit < least:
            least = fit
    return 1.0 - least
