"""Causality of schedules: nothing is used before it is there, no server does two things at once.

The check knows no policy's code, only its promises.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise

from mmedge_lab.policies.schedule import (
    Arrival,
    Encoding,
    PlannedDecision,
    Schedule,
    UnitKey,
    Use,
)
from mmedge_ros.core.data_types import NS_PER_S


class Promise(Enum):
    """What holds for the schedules of a policy."""

    WAITS_FOR_THE_END = 'encodes nothing before the window it is for has ended'
    ANEW = 'encodes every unit of a window anew'
    ONCE = 'encodes each unit once'
    NEVER_WAITS = 'decides at the end of the window'


def check(
    schedule: Schedule,
    arrivals: Sequence[Arrival],
    promises: Iterable[Promise] = (),
    window_ns: int | None = None,
) -> list[str]:
    """Return a sentence for each impossible event and each broken promise.

    :param promises: of the policy, beyond what holds for all
    :param window_ns: length of a window, to report units that are too old for theirs
    """
    return list(_Checker(schedule, arrivals, frozenset(promises), window_ns).violations())


@dataclass
class _Checker:
    schedule: Schedule
    arrivals: Sequence[Arrival]
    promises: frozenset[Promise]
    window_ns: int | None

    def __post_init__(self) -> None:
        self.known = {arrival.unit: arrival for arrival in self.arrivals}
        self.runs: dict[Use, list[Encoding]] = {}
        for encoding in self.schedule.encodings:
            self.runs.setdefault(Use(*encoding.unit, encoding.level), []).append(encoding)
        # The window that a unit was encoded for where the encoding does not say: the first.
        self.first_end: dict[UnitKey, int] = {}
        for decision in self.schedule.decisions:
            for use in decision.uses:
                end_ns = self.first_end.get(use.unit, decision.window_end_ns)
                self.first_end[use.unit] = min(end_ns, decision.window_end_ns)

    def violations(self) -> Iterator[str]:
        for encoding in self.schedule.encodings:
            yield from self._of_encoding(encoding)
        yield from self._of_servers()
        for decision in self.schedule.decisions:
            yield from self._of_decision(decision)
            for use in decision.uses:
                yield from self._of_use(decision, use)
        yield from self._of_order()

    def _of_encoding(self, encoding: Encoding) -> Iterator[str]:
        name, unit = _named(encoding), self.known.get(encoding.unit)
        if unit is None:
            yield f'{name} is encoded and never arrived'
            return
        if encoding.end_ns < encoding.begin_ns:
            yield f'the encoding of {name} ends before it begins'
        if encoding.begin_ns < unit.available_ns:
            early = _ms(unit.available_ns - encoding.begin_ns)
            yield f'{name} is encoded {early} before it is available'
        end_ns = self._made_for(encoding)
        waits = Promise.WAITS_FOR_THE_END in self.promises
        if waits and end_ns is not None and encoding.begin_ns < end_ns:
            early = _ms(end_ns - encoding.begin_ns)
            yield f'{name} is encoded {early} before the end of its window {end_ns}'

    def _of_servers(self) -> Iterator[str]:
        # Alone, each window has its own servers, and may have its own copy.
        apart = Promise.ONCE not in self.promises or self.schedule.alone
        counts: Counter[tuple[UnitKey, int | None]] = Counter()
        servers: dict[tuple[str, int | None], list[Encoding]] = {}
        for encoding in self.schedule.encodings:
            counts[encoding.unit, encoding.window_end_ns if apart else None] += 1
            own = self._made_for(encoding) if self.schedule.alone else None
            servers.setdefault((encoding.modality, own), []).append(encoding)
        for ((modality, sequence), _), count in counts.items():
            if count > 1:
                yield f'{modality} {sequence} is encoded {count} times'
        for (modality, _), work in servers.items():
            for before, after in pairwise(sorted(work, key=lambda e: (e.begin_ns, e.end_ns))):
                if after.begin_ns < before.end_ns:
                    yield (
                        f'the {modality} encoder does two things at once: {_named(after)} begins '
                        f'{_ms(before.end_ns - after.begin_ns)} before {_named(before)} is done'
                    )

    def _of_decision(self, decision: PlannedDecision) -> Iterator[str]:
        end_ns = decision.window_end_ns
        if decision.published_ns < decision.decide_ns:
            early = _ms(decision.decide_ns - decision.published_ns)
            yield f'the window {end_ns} is published {early} before its work begins'
        if Promise.WAITS_FOR_THE_END in self.promises and decision.decide_ns < end_ns:
            early = _ms(end_ns - decision.decide_ns)
            yield f'the window {end_ns} is decided {early} before its end, not after it'

    def _of_use(self, decision: PlannedDecision, use: Use) -> Iterator[str]:
        what, end_ns = f'the window {decision.window_end_ns} uses', decision.window_end_ns
        name, unit = _named(use), self.known.get(use.unit)
        if unit is None:
            yield f'{what} {name}, which never arrived'
            return
        if unit.available_ns > end_ns:
            late = _ms(unit.available_ns - end_ns)
            yield f'{what} {name}, which was available {late} after its end'
        if self.window_ns is not None and unit.available_ns <= end_ns - self.window_ns:
            yield f'{what} {name}, which is older than the window'
        windows = (end_ns,) if Promise.ANEW in self.promises else (None, end_ns)
        ready = [
            encoding.end_ns
            for encoding in self.runs.get(use, ())
            if encoding.window_end_ns in windows
        ]
        if not ready:
            yield f'{what} {name}, which was not encoded for it'
        elif min(ready) > decision.decide_ns:
            early = _ms(min(ready) - decision.decide_ns)
            yield f'{what} {name} {early} before its features are ready'

    def _of_order(self) -> Iterator[str]:
        free_ns, before_ns = 0, -1
        for decision in self.schedule.decisions:
            end_ns = decision.window_end_ns
            if end_ns <= before_ns:
                yield f'the window {end_ns} is decided out of order'
            elif decision.decide_ns < free_ns:
                both = _ms(free_ns - decision.decide_ns)
                yield f'the work on the window {end_ns} begins {both} before the last one is done'
            late_ns = decision.decide_ns - max(end_ns, free_ns)
            if Promise.NEVER_WAITS in self.promises and late_ns > 0:
                yield f'the window {end_ns} is decided {_ms(late_ns)} later than it could be'
            before_ns = end_ns
            free_ns = 0 if self.schedule.alone else decision.published_ns
        ends = {decision.window_end_ns for decision in self.schedule.decisions}
        for end_ns in sorted(ends.intersection(self.schedule.dropped)):
            yield f'the window {end_ns} was dropped and decided'

    def _made_for(self, encoding: Encoding) -> int | None:
        """Return the window an encoding was made for; None where no decision used it."""
        if encoding.window_end_ns is not None:
            return encoding.window_end_ns
        return self.first_end.get(encoding.unit)


def _named(of: Encoding | Use) -> str:
    return f'{of.modality} {of.sequence}'


def _ms(duration_ns: int) -> str:
    return f'{1e3 * duration_ns / NS_PER_S:.3g} ms'
