"""Sensing windows on a global grid, and the rule that closes them.

A window covers (end - window, end] by the *available* time of its units. It closes as soon as
every unit received by its end has been encoded, skipped or dropped, at the latest at
end + deadline, and never waits for a unit that has not been received.
"""

from __future__ import annotations

import bisect
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from mmedge_ros.data_types import NS_PER_S, UnitFeatures, UnitKey, UnitOutcome, UnitReceipt
from mmedge_ros.parameter import parameter

_CATCH_UP_NS = 2 * NS_PER_S
_JUMP_NS = NS_PER_S
_NEVER_NS = -(2**62)


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
    look_delay: float = parameter(
        0.002,
        'receipts of units that arrived just before the end are given this long to be heard of',
        's',
        0.0,
        0.05,
    )


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
    """What was counted while windows were assembled, per modality where it applies."""

    late: Counter[str] = field(default_factory=Counter)
    unheard: Counter[str] = field(default_factory=Counter)
    repeated: Counter[str] = field(default_factory=Counter)
    dropped_windows: int = 0
    ahead: int = 0
    restarts: int = 0


class WindowAssembler:
    """Collects receipts and features and closes windows in order, one per grid point."""

    def __init__(
        self,
        parameters: WindowParameters | None = None,
        modalities: Iterable[str] = (),
    ) -> None:
        """:param modalities: expected ones, reported lost even when never heard of."""
        p = parameters or WindowParameters()
        self._expected = tuple(modalities)
        self.stride_ns = round(p.stride * NS_PER_S)
        self.window_ns = round(p.window * NS_PER_S)
        self.deadline_ns = round(p.deadline * NS_PER_S)
        self.look_delay_ns = round(min(p.look_delay, p.deadline) * NS_PER_S)
        self.counts = AssemblerCounts()
        self.reset()

    def reset(self) -> None:
        """Forget all windows and units; counts are kept."""
        self._next_end_ns: int | None = None
        self._pending: dict[UnitKey, int] = {}
        self._late: set[UnitKey] = set()
        self._arrivals: list[_Arrival] = []
        self._skipped: dict[UnitKey, int] = {}
        self._settled: dict[UnitKey, int] = {}
        self._heard_ns = dict.fromkeys(self._expected, _NEVER_NS)

    def add_receipt(self, receipt: UnitReceipt, now_ns: int) -> None:
        """Enter what an encoder says of a unit."""
        if not self._begin(receipt.available_ns, now_ns):
            return
        key = receipt.key
        self._hear(receipt.modality, receipt.available_ns)
        if receipt.outcome is UnitOutcome.RECEIVED:
            if key not in self._settled:
                self._pending[key] = receipt.available_ns
            return
        self._settle(key, receipt.available_ns)
        if receipt.outcome is UnitOutcome.SKIPPED:
            self._skipped[key] = receipt.available_ns

    def add_features(self, features: UnitFeatures, now_ns: int) -> bool:
        """Enter an encoded unit, heard of before or not; returns False for one not to be used.

        Such are a repeated one, and one from the future.
        """
        if not self._begin(features.available_ns, now_ns):
            return False
        key = features.key
        if key in self._settled:
            self.counts.repeated[features.modality] += 1
            return False
        self._hear(features.modality, features.available_ns)
        self._settle(key, features.available_ns)
        bisect.insort(
            self._arrivals, _Arrival(features, now_ns), key=lambda a: a.features.stamp_ns
        )
        return True

    @property
    def next_end_ns(self) -> int | None:
        """End of the earliest window still open, None before the first unit."""
        return self._next_end_ns

    def next_poll_ns(self, now_ns: int) -> int | None:
        """Return when `poll` can next have something to do, or None before the first unit."""
        if self._next_end_ns is None:
            return None
        look_ns = self._next_end_ns + self.look_delay_ns
        return look_ns if now_ns < look_ns else self._next_end_ns + self.deadline_ns

    def poll(self, now_ns: int) -> list[ClosedWindow]:
        """Close every window that may be closed at ``now_ns``, in order."""
        closed: list[ClosedWindow] = []
        self._catch_up(now_ns)
        while self._next_end_ns is not None:
            end_ns = self._next_end_ns
            if now_ns < end_ns + self.look_delay_ns:
                break
            waiting = [key for key, available in self._pending.items() if available <= end_ns]
            if waiting and now_ns < end_ns + self.deadline_ns:
                break
            closed.append(self._close(end_ns, now_ns, waiting))
            self._next_end_ns = end_ns + self.stride_ns
            self._forget(end_ns)
        return closed

    def _begin(self, available_ns: int, now_ns: int) -> bool:
        """Fix the first window end; start over when the clock was set back.

        Returns False for a time that lies in the future: its encoder is on another clock,
        and such units would pile up here for ever.
        """
        if available_ns > now_ns + _JUMP_NS:
            self.counts.ahead += 1
            return False
        if self._next_end_ns is not None:
            if available_ns >= self._next_end_ns - self.window_ns - _JUMP_NS:
                return True
            self.counts.restarts += 1
            self.reset()
        self._next_end_ns = -(-available_ns // self.stride_ns) * self.stride_ns
        return True

    def _hear(self, modality: str, available_ns: int) -> None:
        self._heard_ns[modality] = max(available_ns, self._heard_ns.get(modality, 0))

    def _settle(self, key: UnitKey, available_ns: int) -> None:
        self._pending.pop(key, None)
        self._settled[key] = available_ns

    def _catch_up(self, now_ns: int) -> None:
        """Drop windows that nobody needs any more after the process was held up for long."""
        if self._next_end_ns is None or now_ns - self._next_end_ns < _CATCH_UP_NS:
            return
        newest_ns = now_ns // self.stride_ns * self.stride_ns - self.stride_ns
        missed = (newest_ns - self._next_end_ns) // self.stride_ns
        if missed > 0:
            self.counts.dropped_windows += missed
            self._next_end_ns += missed * self.stride_ns

    def _close(self, end_ns: int, now_ns: int, waiting: list[UnitKey]) -> ClosedWindow:
        for key in waiting:
            if key not in self._late:
                self._late.add(key)
                self.counts.late[key.modality] += 1
        begin_ns = end_ns - self.window_ns
        ripe = [a for a in self._arrivals if a.features.available_ns <= end_ns]
        fresh = [a for a in ripe if not a.given_out]
        for arrival in fresh:
            arrival.given_out = True
        critical = max(fresh, key=lambda a: a.arrived_ns, default=None)
        return ClosedWindow(
            end_ns,
            now_ns,
            tuple(a.features for a in fresh),
            tuple(a.features for a in ripe if a.features.available_ns > begin_ns),
            critical.features if critical else None,
            critical.arrived_ns if critical else now_ns,
            late=_modalities(waiting),
            skipped=_modalities(k for k, t in self._skipped.items() if begin_ns < t <= end_ns),
            lost=tuple(sorted(m for m, t in self._heard_ns.items() if t <= begin_ns)),
        )

    def _forget(self, end_ns: int) -> None:
        """Drop what no open window can contain; units still pending then are never coming."""
        horizon_ns = end_ns + self.stride_ns - self.window_ns
        for key in [k for k, t in self._pending.items() if t <= horizon_ns]:
            del self._pending[key]
            self._late.discard(key)
            self.counts.unheard[key.modality] += 1
        self._arrivals = [
            a for a in self._arrivals if not a.given_out or a.features.available_ns > horizon_ns
        ]
        # Settled keys are kept longer: a repeated message may be older than its window.
        settled_ns = horizon_ns - NS_PER_S
        self._settled = {k: t for k, t in self._settled.items() if t > settled_ns}
        self._skipped = {k: t for k, t in self._skipped.items() if t > horizon_ns}


def _modalities(keys: Iterable[UnitKey]) -> tuple[str, ...]:
    return tuple(sorted({key.modality for key in keys}))
