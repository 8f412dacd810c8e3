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
    PROTOCOLS,
    SAMPLE,
    STREAM,
    Arrival,
    Encoding,
    PlannedDecision,
    Schedule,
    UnitKey,
    Use,
)
from mmedge_ros.data_types import NS_PER_S


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
        self.encoded: dict[Use, list[Encoding]] = {}
        for encoding in self.schedule.encodings:
            use = Use(*encoding.unit, encoding.level)
            self.encoded.setdefault(use, []).append(encoding)
        # The window that a unit was encoded for where the encoding does not say: the first.
        self.first_end: dict[UnitKey, int] = {}
        for decision in self.schedule.decisions:
            for use in decision.uses:
                end_ns = self.first_end.get(use.unit, decision.window_end_ns)
                self.first_end[use.unit] = min(end_ns, decision.window_end_ns)

    def violations(self) -> Iterator[str]:
        if self.schedule.protocol not in PROTOCOLS:
            yield f'there is no protocol {self.schedule.protocol!r}'
        for encoding in self.schedule.encodings:
            yield from self._of_encoding(encoding)
        yield from self._of_repetition()
        yield from self._of_servers()
        for decision in self.schedule.decisions:
            yield from self._of_decision(decision)
            for use in decision.uses:
                yield from self._of_use(decision, use)
        yield from self._of_order()

    def _of_encoding(self, encoding: Encoding) -> Iterator[str]:
        name = _named(encoding)
        unit = self.known.get(encoding.unit)
        if unit is None:
            yield f'{name} is encoded and never arrived'
            return
        if encoding.end_ns < encoding.begin_ns:
            yield f'the encoding of {name} ends before it begins'
        if encoding.begin_ns < unit.available_ns:
            early = _ms(unit.available_ns - encoding.begin_ns)
            yield f'{name} is encoded {early} before it is available'
        if Promise.WAITS_FOR_THE_END in self.promises:
            end_ns = self._made_for(encoding)
            if end_ns is not None and encoding.begin_ns < end_ns:
                early = _ms(end_ns - encoding.begin_ns)
                yield (
                    f'{name} is encoded {early} before the end of its window {end_ns}, by a '
                    'policy that waits for it'
                )

    def _of_repetition(self) -> Iterator[str]:
        # Alone, each window has its own servers, and may have its own copy.
        apart = Promise.ONCE not in self.promises or self.schedule.protocol == SAMPLE
        counts = Counter(
            (*encoding.unit, encoding.window_end_ns if apart else None)
            for encoding in self.schedule.encodings
        )
        for (modality, sequence, end_ns), count in counts.items():
            if count > 1:
                where = f' for the window {end_ns}' if end_ns is not None else ''
                yield f'{modality} {sequence} is encoded {count} times{where}'

    def _of_servers(self) -> Iterator[str]:
        servers: dict[tuple[str, int | None], list[tuple[int, int, str]]] = {}
        for encoding in self.schedule.encodings:
            own = self._made_for(encoding) if self.schedule.protocol == SAMPLE else None
            servers.setdefault((encoding.modality, own), []).append(
                (encoding.begin_ns, encoding.end_ns, _named(encoding))
            )
        for (modality, _), work in servers.items():
            for before, after in pairwise(sorted(work)):
                if after[0] < before[1]:
                    yield (
                        f'the {modality} encoder does two things at once: {after[2]} begins '
                        f'{_ms(before[1] - after[0])} before {before[2]} is done'
                    )

    def _of_decision(self, decision: PlannedDecision) -> Iterator[str]:
        end_ns = decision.window_end_ns
        if decision.published_ns < decision.decide_ns:
            early = _ms(decision.decide_ns - decision.published_ns)
            yield f'the window {end_ns} is published {early} before its work begins'
        if Promise.NEVER_WAITS in self.promises:
            if any(waited > 0.0 for waited in decision.waited.values()):
                yield f'the window {end_ns} waited for units, by a policy that never waits'
            if self.schedule.protocol == SAMPLE and decision.decide_ns != end_ns:
                late = _ms(abs(decision.decide_ns - end_ns))
                yield f'the window {end_ns} is decided {late} off its end, not at it'
        if Promise.WAITS_FOR_THE_END in self.promises and decision.decide_ns < end_ns:
            early = _ms(end_ns - decision.decide_ns)
            yield f'the window {end_ns} is decided {early} before its end, not after it'

    def _of_use(self, decision: PlannedDecision, use: Use) -> Iterator[str]:
        name, end_ns = _named(use), decision.window_end_ns
        unit = self.known.get(use.unit)
        if unit is None:
            yield f'the window {end_ns} uses {name}, which never arrived'
            return
        if unit.available_ns > end_ns:
            late = _ms(unit.available_ns - end_ns)
            yield f'the window {end_ns} uses {name}, which was available {late} after its end'
        if self.window_ns is not None and unit.available_ns <= end_ns - self.window_ns:
            yield f'the window {end_ns} uses {name}, which is older than the window'
        usable = [
            encoding
            for encoding in self.encoded.get(use, ())
            if encoding.window_end_ns in (None, end_ns)
        ]
        if Promise.ANEW in self.promises:
            usable = [encoding for encoding in usable if encoding.window_end_ns == end_ns]
        if not usable:
            yield f'the window {end_ns} uses {name}, which was not encoded for it'
        elif min(encoding.end_ns for encoding in usable) > decision.decide_ns:
            early = _ms(min(encoding.end_ns for encoding in usable) - decision.decide_ns)
            yield f'the window {end_ns} uses {name} {early} before its features are ready'

    def _of_order(self) -> Iterator[str]:
        for before, after in pairwise(self.schedule.decisions):
            names = f'the windows {before.window_end_ns} and {after.window_end_ns}'
            if after.window_end_ns <= before.window_end_ns:
                yield f'{names} are decided out of order'
            elif self.schedule.protocol == STREAM and after.decide_ns < before.published_ns:
                both = _ms(before.published_ns - after.decide_ns)
                yield f'the work on the decisions of {names} overlaps by {both}'
        if Promise.NEVER_WAITS in self.promises and self.schedule.protocol == STREAM:
            free_ns = 0
            for decision in self.schedule.decisions:
                if decision.decide_ns > max(decision.window_end_ns, free_ns):
                    late = _ms(decision.decide_ns - max(decision.window_end_ns, free_ns))
                    yield (
                        f'the window {decision.window_end_ns} is decided {late} later than it '
                        'could be, by a policy that never waits'
                    )
                free_ns = decision.published_ns
        ends = {decision.window_end_ns for decision in self.schedule.decisions}
        for end_ns in self.schedule.dropped:
            if end_ns in ends:
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
