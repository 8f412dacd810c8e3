"""Sensing windows on a global grid, and the rule that closes them.

A window covers (end - window, end] by the *available* time of its units. It closes as soon as
every unit received by its end has been encoded, skipped or dropped, at the latest at
end + deadline less the time the work on it takes, and never waits for a unit that has not been
received. In flight it does not wait either for a unit that comes too late even if it is encoded
as fast as the fastest of those before it.
"""

from __future__ import annotations

import bisect
from collections import Counter, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from mmedge_ros.core.data_types import (
    NS_PER_S,
    STANDBY,
    UnitFeatures,
    UnitKey,
    UnitOutcome,
    UnitReceipt,
)
from mmedge_ros.core.parameter import parameter
from mmedge_ros.sensing.capture_control import ConfigurationSchedule

_CATCH_UP_NS = 2 * NS_PER_S
_JUMP_NS = NS_PER_S
# How long before its window a unit is still known by its key, so that a repetition is seen.
_MEMORY_NS = 5 * NS_PER_S
_NEVER_NS = -(2**62)
# Units of a modality whose fastest says how soon one can be encoded.
_RECENT = 10

# Far more than any rig has. Only a clock that stands still or a flood gets there, and neither
# may fill the memory.
_MOST_UNITS = 1000
_MOST_KEYS = 10_000
_MOST_MODALITIES = 16


@dataclass(frozen=True)
class WindowParameters:
    """When windows end and how long they may be waited for."""

    window: float = parameter(0.5, 'length of a sensing window', 's', 0.05, 10.0)
    stride: float = parameter(
        0.1, 'distance of window ends; a decision is published for each', 's', 0.01, 10.0
    )
    deadline: float = parameter(
        0.05, 'a decision is published at most this long after its window end', 's', 0.005, 5.0
    )
    # Receipts of units that arrived just before the end get this long to come in, s.
    look_delay: float = 0.002


@dataclass(frozen=True)
class ClosedWindow:
    """A window ready to be decided.

    ``fresh`` are the encoded units no earlier window has given out, ``members`` all encoded
    units inside the window; both by stamp. ``critical`` is the fresh unit that had to be
    waited for longest, ``critical_arrived_ns`` when its features came.
    """

    end_ns: int
    closed_ns: int
    fresh: tuple[UnitFeatures, ...]
    members: tuple[UnitFeatures, ...]
    critical: UnitFeatures | None
    critical_arrived_ns: int
    late: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()


@dataclass
class _Arrival:
    features: UnitFeatures
    arrived_ns: int
    given_out: bool = False


@dataclass
class AssemblerCounts:
    """What was counted while windows were assembled, per modality where it applies.

    late: not encoded when the first window the unit belongs to was closed; unheard: announced
    and never encoded while its windows were open; repeated: encoded twice. Not used at all
    are messages of units ``ahead`` of the clock or ``stale`` by seconds, and what
    ``overflows``: more units at once than any rig has.
    """

    late: Counter[str] = field(default_factory=Counter)
    unheard: Counter[str] = field(default_factory=Counter)
    repeated: Counter[str] = field(default_factory=Counter)
    dropped_windows: int = 0
    ahead: int = 0
    stale: int = 0
    overflows: int = 0
    restarts: int = 0


class WindowAssembler:
    """Collects receipts and features and closes windows in order, one per grid point.

    ``on_close`` is called with each window as it is closed.
    """

    def __init__(
        self,
        parameters: WindowParameters | None = None,
        modalities: Iterable[str] = (),
    ) -> None:
        """:param modalities: expected ones, reported lost even if no unit ever came."""
        p = parameters or WindowParameters()
        self._expected = tuple(modalities)
        self.stride_ns = round(p.stride * NS_PER_S)
        self.window_ns = round(p.window * NS_PER_S)
        self.deadline_ns = round(p.deadline * NS_PER_S)
        self.look_delay_ns = round(min(p.look_delay, p.deadline) * NS_PER_S)
        # A window that may still wait for its deadline is still needed.
        self._catch_up_ns = max(_CATCH_UP_NS, 2 * self.deadline_ns)
        # How long before its deadline a window closes: the measured time of the work on it.
        self.reserve_ns = 0
        # Whether units that cannot come in time are not waited for; in virtual time they are.
        self.gives_up = False
        self.counts = AssemblerCounts()
        self.on_close: Callable[[ClosedWindow], None] | None = None
        # Where known: a modality that stands by is not lost.
        self.schedule = ConfigurationSchedule()
        self.reset()

    def reset(self) -> None:
        """Forget all windows and units; counts are kept."""
        self._next_end_ns: int | None = None
        self._closed_ns = _NEVER_NS
        self._pending: dict[UnitKey, int] = {}
        self._late: dict[UnitKey, int] = {}
        self._arrivals: list[_Arrival] = []
        self._skipped: dict[UnitKey, int] = {}
        self._settled: dict[UnitKey, int] = {}
        self._took_ns: dict[str, deque[int]] = {}
        self._newest_ns = dict.fromkeys(self._expected, _NEVER_NS)

    def add_receipt(self, receipt: UnitReceipt, now_ns: int) -> None:
        """Enter what an encoder says of a unit."""
        key, available_ns = receipt.key, receipt.available_ns
        if not self._begin(key, available_ns, now_ns):
            return
        self._note_arrival(receipt.modality, available_ns)
        if receipt.outcome is UnitOutcome.RECEIVED:
            if key not in self._settled:
                self._note_if_late(key, available_ns)
                self._keep(self._pending, key, available_ns)
            return
        self._settle(key, available_ns)
        if receipt.outcome is UnitOutcome.SKIPPED:
            self._keep(self._skipped, key, available_ns)

    def add_features(self, features: UnitFeatures, now_ns: int) -> bool:
        """Enter an encoded unit, announced before or not; returns False for one not to be used.

        Such are a repeated one, and one whose times cannot be true.
        """
        key, available_ns = features.key, features.available_ns
        if not self._begin(key, available_ns, now_ns):
            return False
        if key in self._settled:
            self.counts.repeated[features.modality] += 1
            return False
        self._note_arrival(features.modality, available_ns)
        took = self._took_ns.setdefault(features.modality, deque(maxlen=_RECENT))
        took.append(now_ns - available_ns)
        self._note_if_late(key, available_ns)
        self._settle(key, available_ns)
        bisect.insort(
            self._arrivals, _Arrival(features, now_ns), key=lambda a: a.features.stamp_ns
        )
        if len(self._arrivals) > _MOST_UNITS:
            self.counts.overflows += not self._arrivals.pop(0).given_out
        return True

    @property
    def next_end_ns(self) -> int | None:
        """End of the earliest window still open, None before the first unit."""
        return self._next_end_ns

    def open_ends(self, available_ns: int) -> range:
        """Return the ends of all windows still open that a unit received then belongs to."""
        first_ns = -(-available_ns // self.stride_ns) * self.stride_ns
        first_ns = max(first_ns, self._next_end_ns or first_ns)
        return range(first_ns, available_ns + self.window_ns, self.stride_ns)

    def next_poll_ns(self, now_ns: int) -> int | None:
        """Return when `poll` can next have something to do, or None before the first unit."""
        if self._next_end_ns is None:
            return None
        look_ns = self._next_end_ns + self.look_delay_ns
        return look_ns if now_ns < look_ns else self.last_call_ns

    @property
    def last_call_ns(self) -> int | None:
        """When the earliest open window closes with what is ready, None before the first unit."""
        if self._next_end_ns is None:
            return None
        return self._next_end_ns + self._longest_wait_ns

    def quiet_until_ns(self, now_ns: int) -> int:
        """Return until when no window can close, if units come no faster than the last ones."""
        if self._next_end_ns is None:
            return now_ns
        look_ns = self._next_end_ns + self.look_delay_ns
        if now_ns < look_ns:
            return look_ns
        waiting = [
            available_ns + min(self._took_ns.get(key.modality, (0,)))
            for key, available_ns in self._pending.items()
            if available_ns <= self._next_end_ns
        ]
        return min(max(waiting, default=now_ns), self._next_end_ns + self._longest_wait_ns)

    @property
    def _longest_wait_ns(self) -> int:
        return max(self.deadline_ns - self.reserve_ns, self.look_delay_ns)

    def _can_come(self, key: UnitKey, until_ns: int) -> bool:
        """Tell whether a unit that was received may be encoded by then."""
        took = self._took_ns.get(key.modality) if self.gives_up else None
        return not took or self._pending[key] + min(took) < until_ns

    def poll(self, now_ns: int) -> list[ClosedWindow]:
        """Close every window that may be closed at ``now_ns``, in order."""
        closed: list[ClosedWindow] = []
        self._catch_up(now_ns)
        while self._next_end_ns is not None:
            end_ns = self._next_end_ns
            if now_ns < end_ns + self.look_delay_ns:
                break
            waiting = [key for key, available in self._pending.items() if available <= end_ns]
            last_call_ns = end_ns + self._longest_wait_ns
            if now_ns < last_call_ns and any(self._can_come(k, last_call_ns) for k in waiting):
                break
            closed.append(self._close(end_ns, now_ns, waiting))
            self._next_end_ns = end_ns + self.stride_ns
            self._forget(end_ns)
        return closed

    def close_early(self, now_ns: int) -> ClosedWindow | None:
        """Close the earliest open window before its end, with what has arrived.

        Nothing is late by that: what of it still arrives belongs to the windows after it.

        :return: None before the first unit
        """
        end_ns, closed_ns = self._next_end_ns, self._closed_ns
        if end_ns is None:
            return None
        window = self._close(end_ns, now_ns, [])
        self._closed_ns = closed_ns
        self._next_end_ns = end_ns + self.stride_ns
        self._forget(end_ns)
        return window

    def drop_overdue(self, now_ns: int) -> None:
        """Drop every window that is still open when the one after it has its last call."""
        last_call_ns = self.last_call_ns
        if self._next_end_ns is not None and last_call_ns is not None:
            behind = (now_ns - last_call_ns) // self.stride_ns
            self.drop_until(self._next_end_ns + behind * self.stride_ns)

    def drop_until(self, end_ns: int) -> None:
        """Drop the open windows that end before then; their units belong to those after them.

        :param end_ns: on the grid; before the first unit it is the end of the first window
        """
        if self._next_end_ns is None:
            self._next_end_ns = end_ns
        elif end_ns > self._next_end_ns:
            self.counts.dropped_windows += (end_ns - self._next_end_ns) // self.stride_ns
            self._next_end_ns = end_ns

    def _begin(self, key: UnitKey, available_ns: int, now_ns: int) -> bool:
        """Fix the first window end; start over when the clock was set back.

        Returns False for a message that must not be used. The clock of this process decides,
        not the message: one wrong time in a message must not cost the tracks.
        """
        self._catch_up(now_ns)
        end_ns = self._next_end_ns
        if end_ns is not None and now_ns < end_ns - self.stride_ns - _JUMP_NS:
            self.counts.restarts += 1
            self.reset()
        if max(available_ns, key.stamp_ns) > now_ns + _JUMP_NS:
            # Its encoder is on another clock; such units would pile up here for ever.
            self.counts.ahead += 1
            return False
        if self._next_end_ns is None:
            first_ns = max(available_ns, now_ns - _JUMP_NS)
            self._next_end_ns = -(-first_ns // self.stride_ns) * self.stride_ns
        if available_ns <= self._next_end_ns - self.window_ns - _MEMORY_NS:
            self.counts.stale += 1
            return False
        if key.modality not in self._newest_ns and len(self._newest_ns) >= _MOST_MODALITIES:
            self.counts.overflows += 1
            return False
        return True

    def _note_arrival(self, modality: str, available_ns: int) -> None:
        self._newest_ns[modality] = max(available_ns, self._newest_ns.get(modality, _NEVER_NS))

    def _settle(self, key: UnitKey, available_ns: int) -> None:
        self._pending.pop(key, None)
        self._keep(self._settled, key, available_ns)

    def _note_if_late(self, key: UnitKey, available_ns: int) -> None:
        """Count a unit whose first window was closed before it was even announced."""
        if available_ns <= self._closed_ns:
            self._count_late(key, available_ns)

    def _count_late(self, key: UnitKey, available_ns: int) -> None:
        if key not in self._late:
            self._keep(self._late, key, available_ns)
            self.counts.late[key.modality] += 1

    def _keep(self, keys: dict[UnitKey, int], key: UnitKey, available_ns: int) -> None:
        keys[key] = available_ns
        if len(keys) > _MOST_KEYS:
            del keys[next(iter(keys))]
            self.counts.overflows += 1

    def _catch_up(self, now_ns: int) -> None:
        """Drop windows that are not needed any more after the process was held up for long."""
        if self._next_end_ns is None or now_ns - self._next_end_ns < self._catch_up_ns:
            return
        newest_ns = now_ns // self.stride_ns * self.stride_ns - self.stride_ns
        missed = (newest_ns - self._next_end_ns) // self.stride_ns
        if missed > 0:
            self.counts.dropped_windows += missed
            self._next_end_ns += missed * self.stride_ns

    def _close(self, end_ns: int, now_ns: int, waiting: list[UnitKey]) -> ClosedWindow:
        self._closed_ns = end_ns
        for key in waiting:
            self._count_late(key, self._pending[key])
        begin_ns = end_ns - self.window_ns
        ripe = [a for a in self._arrivals if a.features.available_ns <= end_ns]
        fresh = [a for a in ripe if not a.given_out]
        for arrival in fresh:
            arrival.given_out = True
        critical = max(fresh, key=lambda a: a.arrived_ns, default=None)
        closed = ClosedWindow(
            end_ns,
            now_ns,
            tuple(a.features for a in fresh),
            tuple(a.features for a in ripe if a.features.available_ns > begin_ns),
            critical.features if critical else None,
            critical.arrived_ns if critical else now_ns,
            late=_modalities(waiting),
            skipped=_modalities(k for k, t in self._skipped.items() if begin_ns < t <= end_ns),
            lost=self._lost(begin_ns, end_ns),
        )
        if self.on_close is not None:
            self.on_close(closed)
        return closed

    def _lost(self, begin_ns: int, end_ns: int) -> tuple[str, ...]:
        """Return the modalities that sent nothing in a window, and should have."""
        silent = sorted(m for m, newest in self._newest_ns.items() if newest <= begin_ns)
        # What has just begun to be sensed again had no time to send anything.
        known = (self.schedule.at(begin_ns), self.schedule.at(end_ns)) if silent else ()
        return tuple(m for m in silent if all(c.of(m).rate != STANDBY for c in known))

    def _forget(self, end_ns: int) -> None:
        """Drop what no open window can contain; units still pending then are never coming."""
        horizon_ns = end_ns - max(self.window_ns - self.stride_ns, 0)
        for key in [k for k, t in self._pending.items() if t <= horizon_ns]:
            del self._pending[key]
            self.counts.unheard[key.modality] += 1
        self._arrivals = [a for a in self._arrivals if a.features.available_ns > horizon_ns]
        self._skipped = {k: t for k, t in self._skipped.items() if t > horizon_ns}
        # Kept longer: a message may be repeated, or come late, when its windows are closed.
        known_ns = horizon_ns - _MEMORY_NS
        self._settled = {k: t for k, t in self._settled.items() if t > known_ns}
        self._late = {k: t for k, t in self._late.items() if t > known_ns}


def _modalities(keys: Iterable[UnitKey]) -> tuple[str, ...]:
    return tuple(sorted({key.modality for key in keys}))
