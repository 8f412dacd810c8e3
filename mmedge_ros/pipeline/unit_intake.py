"""The door of an encoder: admission, a bounded queue, and receipts for fusion."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from typing import NamedTuple

from mmedge_ros.core.data_types import (
    NS_PER_S,
    ModalityConfiguration,
    StageTiming,
    Trail,
    Unit,
    UnitOutcome,
    UnitReceipt,
)
from mmedge_ros.pipeline.overload_pace import OverloadPace
from mmedge_ros.sensing.capture_control import Admission, CaptureControl

_LONGEST_FLIGHT_NS = 2 * NS_PER_S
_CLOCK_TOLERANCE_NS = NS_PER_S // 100


class Admitted(NamedTuple):
    """A unit with the configuration it was taken under."""

    unit: Unit
    configuration: ModalityConfiguration
    configuration_id: int


def acquisition_trail(stamp_ns: int, sent_ns: int, received_ns: int) -> Trail:
    """Begin a trail from the header stamp, the source's and the receiver's time.

    Middleware times that are missing or out of order are left out rather than believed. A
    stamp slightly in the future (two clocks) makes empty stages, not negative ones.
    """
    received_ns = max(received_ns, stamp_ns)
    sent_ns = min(max(sent_ns, stamp_ns), received_ns)
    return (
        StageTiming('acquisition', stamp_ns, sent_ns),
        StageTiming('transport', sent_ns, received_ns),
    )


def plausible_stamp(stamp_ns: int, available_ns: int) -> bool:
    """Tell whether a measurement time can belong to a unit received at ``available_ns``.

    A stamp at zero, in the future, or older than any sensor's delay cannot.
    """
    return -_CLOCK_TOLERANCE_NS <= available_ns - stamp_ns <= _LONGEST_FLIGHT_NS


class UnitIntake:
    """Admits units of one modality to an encoder that works on one at a time.

    The queue is bounded: when it is full all units in it are dropped, counted and reported, and
    until the encoder finds none waiting each unit replaces the one before it: the encoder is too
    slow, and a fresh unit is worth more than old ones. Where this goes on without reuse, units are
    taken at a rate that the encoder can keep up with, and the others are dropped. Not thread-safe
    by itself.
    """

    def __init__(
        self,
        modality: str,
        capacity: int = 2,
        native_period_ns: int | None = None,
    ) -> None:
        self.control = CaptureControl(modality, native_period_ns)
        self.received = 0
        self.thinned = 0
        self.skipped = 0
        self.dropped = 0
        self.implausible_stamps = 0
        self._capacity = capacity
        self._queue: deque[Admitted] = deque()
        self._keeps_newest = False
        self._busy = False
        self._pace = OverloadPace()
        self._paced: ModalityConfiguration | None = None

    def __len__(self) -> int:
        return len(self._queue)

    def offer(self, unit: Unit) -> list[UnitReceipt]:
        """Take in a unit; return the receipts that fusion must see before anything else."""
        unit = self._with_usable_stamp(unit)
        self.received += 1
        verdict = self.control.admit(unit.stamp_ns, unit.available_ns)
        if verdict is Admission.THINNED:
            self.thinned += 1
            return [receipt_of(unit, UnitOutcome.THINNED)]
        if verdict is Admission.SKIPPED:
            self.skipped += 1
            return [receipt_of(unit, UnitOutcome.SKIPPED)]
        configuration = self.control.schedule.at(unit.stamp_ns)
        part = configuration.of(unit.modality)
        if part != self._paced:
            # What was too much for another level or reuse says nothing of this one.
            self._pace, self._paced = OverloadPace(), part
        # With reuse most units cost little, and which are encoded follows from all of them.
        if part.reuse <= 1 and not self._pace.admits(unit.stamp_ns):
            # Receipts announce every unit that arrives, whatever becomes of it.
            self.dropped += 1
            return [receipt_of(unit), receipt_of(unit, UnitOutcome.DROPPED)]
        receipts = [receipt_of(unit)]
        self._keeps_newest |= len(self._queue) >= self._capacity
        old = [each.unit for each in self._queue]
        if self._keeps_newest:
            self._queue.clear()
            self.dropped += len(old)
            receipts += [receipt_of(each, UnitOutcome.DROPPED) for each in old]
        if self._busy:
            self._pace.waits(len(old) if self._keeps_newest else 0)
        self._queue.append(Admitted(unit, part, configuration.id))
        return receipts

    def take(self) -> Admitted | None:
        """Return the next unit to encode, or None; an encoder asks before it waits for one."""
        self._busy = bool(self._queue)
        if self._queue:
            self._pace.begins()
            return self._queue.popleft()
        self._keeps_newest = False
        return None

    def _with_usable_stamp(self, unit: Unit) -> Unit:
        """Replace a stamp that cannot be true by the time of arrival, and count it."""
        if plausible_stamp(unit.stamp_ns, unit.available_ns):
            return unit
        self.implausible_stamps += 1
        trail = acquisition_trail(unit.available_ns, unit.available_ns, unit.available_ns)
        return replace(unit, stamp_ns=unit.available_ns, trail=trail)


def receipt_of(
    unit: Unit, outcome: UnitOutcome = UnitOutcome.RECEIVED, reason: str = ''
) -> UnitReceipt:
    """Make the receipt of a unit."""
    return UnitReceipt(
        unit.modality, unit.sequence, unit.stamp_ns, unit.available_ns, outcome, reason
    )
