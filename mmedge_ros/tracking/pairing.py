"""Which radar scans are fused with which picture, whatever order units arrive in.

Units within the lag are kept in the order of their stamps. A unit that comes late is put in its
place, and the groups after it are made again, so that the result is the one an undisturbed
stream would have given.
"""

from __future__ import annotations

import bisect
import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from mmedge_ros.core.data_types import CAMERA, NS_PER_S, UnitFeatures

# Ten times what any rig sends within the lag; a flood must not fill the memory.
_MOST_UNITS = 1000


@dataclass(frozen=True)
class PairedUnits:
    """Units that are measured together: a picture with its scans, or one scan alone."""

    camera: UnitFeatures | None
    scans: tuple[UnitFeatures, ...]

    @property
    def stamp_ns(self) -> int:
        return self.camera.stamp_ns if self.camera else self.scans[-1].stamp_ns

    @property
    def size(self) -> int:
        """How many units it holds."""
        return len(self.scans) + (self.camera is not None)


class Regrouped(NamedTuple):
    """The first ``kept`` groups are as before; ``groups`` take the place of those after them."""

    kept: int
    groups: Sequence[PairedUnits]


class UnitPairing:
    """Keeps the units of the last moments, in groups.

    :param pairing: how long before a picture a scan may be to be fused with it, s
    :param lag: units older than the newest by more than this are too late, s
    """

    def __init__(self, pairing: float = 0.1, lag: float = 0.5) -> None:
        self.too_late = 0
        self._pairing_ns = round(pairing * NS_PER_S)
        self._lag_ns = round(lag * NS_PER_S)
        self.reset()

    def reset(self) -> None:
        """Forget every unit."""
        self._begin_ns = 0
        self._units: list[UnitFeatures] = []
        self._groups: list[PairedUnits] = []

    def fork(self) -> UnitPairing:
        """Return one that goes on by itself from here."""
        other = copy.copy(self)
        other.__dict__.update(_units=list(self._units), _groups=list(self._groups))
        return other

    @property
    def newest_ns(self) -> int:
        """Stamp of the newest unit taken in, 0 before the first."""
        return self._units[-1].stamp_ns if self._units else self._begin_ns

    def add(self, units: Sequence[UnitFeatures]) -> Regrouped:
        """Take in units of any order and modality; those that come too late are counted."""
        first = len(self._units)
        for unit in units:
            if unit.stamp_ns <= max(self._begin_ns, self.newest_ns - self._lag_ns):
                self.too_late += 1
                continue
            place = bisect.bisect_right(self._units, _order(unit), key=_order)
            self._units.insert(place, unit)
            first = min(first, place)
        kept, begin = self._settled(first)
        groups = pair_units(self._units[begin:], self._pairing_ns)
        again = 0
        while kept < len(self._groups) and again < len(groups):
            if self._groups[kept] != groups[again]:
                break
            kept, again = kept + 1, again + 1
        self._groups[kept:] = groups[again:]
        return Regrouped(kept, groups[again:])

    def forget(self) -> int:
        """Let go of groups so old that no unit can come before them, or join them, any more.

        :return: how many groups
        """
        horizon_ns = self.newest_ns - self._lag_ns - self._pairing_ns
        forgotten = 0
        while len(self._groups) > 1 and (
            self._groups[0].stamp_ns < horizon_ns or len(self._units) > _MOST_UNITS
        ):
            group = self._groups.pop(0)
            self._begin_ns = group.stamp_ns
            del self._units[: group.size]
            forgotten += 1
        return forgotten

    def _settled(self, first: int) -> tuple[int, int]:
        """Return how many groups nothing new can change, and how many units they hold.

        Those are the groups up to the last picture before the unit at ``first``; scans after it
        may go with another picture now.
        """
        count, units = len(self._groups), sum(group.size for group in self._groups)
        while count and (units > first or self._groups[count - 1].camera is None):
            count -= 1
            units -= self._groups[count].size
        return count, units


def pair_units(units: Sequence[UnitFeatures], pairing_ns: int) -> list[PairedUnits]:
    """Pair each scan with the next picture, if that follows within ``pairing_ns``.

    Depends on stamps alone. Scans that no picture follows are groups of their own; when their
    picture comes after all, pairing again gives them to it.
    """
    groups: list[PairedUnits] = []
    waiting: list[UnitFeatures] = []
    for unit in units:
        if unit.modality != CAMERA:
            waiting.append(unit)
            continue
        near = [s for s in waiting if unit.stamp_ns - s.stamp_ns <= pairing_ns]
        alone = waiting[: len(waiting) - len(near)]
        groups += [PairedUnits(None, (scan,)) for scan in alone]
        groups.append(PairedUnits(unit, tuple(near)))
        waiting = []
    return groups + [PairedUnits(None, (scan,)) for scan in waiting]


def _order(unit: UnitFeatures) -> tuple[int, bool, str, int]:
    # A scan of the very same stamp goes before the picture, so that it is fused with it.
    return (unit.stamp_ns, unit.modality == CAMERA, unit.modality, unit.sequence)
