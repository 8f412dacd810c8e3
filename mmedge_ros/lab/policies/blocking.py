"""Blocking: waits for the window's end, and encodes then.

Without a cache every unit of the window is encoded anew, as a network that takes whole windows
has to; with one each unit is encoded once, and only those that are new since the window before
are left to do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from mmedge_ros.data_types import NS_PER_S, Configuration
from mmedge_ros.lab.policies.causality import Promise
from mmedge_ros.lab.policies.queueing import Thinning, WindowQueue, Windows, encode_all
from mmedge_ros.lab.policies.schedule import (
    STREAM,
    Arrival,
    Encoding,
    PlannedDecision,
    Schedule,
    Use,
)
from mmedge_ros.lab.policies.settings import PolicySettings
from mmedge_ros.lab.policies.steering import Course

Place = tuple[str, int]


@dataclass(frozen=True)
class Blocking:
    """Blocking, with or without ``cached`` units; steered where the settings say so.

    In the stream protocol windows whose turn does not come soon enough are dropped. In the
    sample protocol a cached unit was encoded at the end of its first window, by an idle server.

    Where a modality is named as ``first``, its units are encoded first, and only then the
    configuration is chosen: who chooses knows what they show. Units of the others that are not
    taken then stay untaken: no later window makes up for them.
    """

    name: str
    cached: bool = False
    first: str = ''

    @property
    def promises(self) -> frozenset[Promise]:
        return frozenset(
            (Promise.WAITS_FOR_THE_END, Promise.ONCE if self.cached else Promise.ANEW)
        )

    def schedule(
        self,
        arrivals: Sequence[Arrival],
        periods: Mapping[str, int],
        settings: PolicySettings,
        protocol: str,
    ) -> Schedule:
        """Return what happens to the units of a recording.

        :param arrivals: by the time they are available
        """
        windows = Windows(arrivals, settings.window_ns, settings.stride_ns)
        if not arrivals:
            return Schedule(self.name, protocol, (), ())
        thinning = Thinning(arrivals, periods)
        course = Course(settings, arrivals[0].available_ns)
        run = _Run(settings, course, self.cached)
        is_stream = protocol == STREAM
        queue = WindowQueue(windows.ends, settings.capacity)
        free_ns = before_ns = 0
        while (end_ns := queue.next(free_ns)) is not None:
            begin_ns = max(end_ns, free_ns)
            known = windows.units(end_ns, arrivals)
            if self.first:
                passing = windows.units(end_ns, thinning.passing(course.current))
                ahead = [unit for unit in passing if unit.modality == self.first]
                run.encode(known, ahead, course.current, begin_ns, end_ns)
                begin_ns = run.ready_ns(ahead, begin_ns)
            configuration = course.at(begin_ns)
            passing = windows.units(end_ns, thinning.passing(configuration))
            if self.first:
                passing = [u for u in passing if u.available_ns > before_ns]
                passing = [u for u in passing if u.modality != self.first]
            encoded_ns = run.encode(known, passing, configuration, begin_ns, end_ns)
            rested = self._rested(known, passing, before_ns)
            decide_ns = run.decide(known, configuration, begin_ns, end_ns, is_stream, rested)
            before_ns = end_ns
            if is_stream:
                free_ns = max(encoded_ns, decide_ns)
        return Schedule(
            self.name, protocol, tuple(run.decisions), tuple(run.encodings), tuple(queue.dropped)
        )

    def _rested(
        self, known: Sequence[Arrival], passing: Sequence[Arrival], before_ns: int
    ) -> tuple[str, ...]:
        """Return the modalities of which something is new and nothing was taken."""
        if not self.first:
            return ()
        new = {unit.modality for unit in known if unit.available_ns > before_ns}
        taken = {unit.modality for unit in passing}
        return tuple(sorted(new - taken - {self.first}))


@dataclass
class _Run:
    """What was done so far. ``ready_ns`` says of each unit encoded when, and with which level."""

    settings: PolicySettings
    course: Course
    cached: bool
    encodings: list[Encoding] = field(default_factory=list)
    decisions: list[PlannedDecision] = field(default_factory=list)
    ready: dict[Place, tuple[int, str]] = field(default_factory=dict)

    def encode(
        self,
        known: Sequence[Arrival],
        passing: Sequence[Arrival],
        configuration: Configuration,
        begin_ns: int,
        end_ns: int,
    ) -> int:
        """Encode what a window needs; returns when the last encoder is free again."""
        times = self.settings.times
        if not self.cached:
            self.ready = {}
        units = {_place(u): u for u in passing if _place(u) not in self.ready}
        made = encode_all(
            units.values(), configuration, times, begin_ns, None if self.cached else end_ns
        )
        for encoding in made:
            place = (encoding.modality, encoding.sequence)
            ready_ns = encoding.end_ns + times.transport_ns(*place)
            self.ready[place] = (ready_ns, encoding.level)
            self.course.encoded(units[place], encoding, ready_ns)
        self.encodings += made
        inside = {_place(u) for u in known}
        self.ready = {place: found for place, found in self.ready.items() if place in inside}
        return max((encoding.end_ns for encoding in made), default=begin_ns)

    def ready_ns(self, units: Sequence[Arrival], begin_ns: int) -> int:
        """Return when the features of all these units are there, not before ``begin_ns``."""
        found = (self.ready[_place(unit)][0] for unit in units if _place(unit) in self.ready)
        return max(begin_ns, max(found, default=begin_ns))

    def decide(
        self,
        known: Sequence[Arrival],
        configuration: Configuration,
        begin_ns: int,
        end_ns: int,
        is_stream: bool,
        rested: tuple[str, ...] = (),
    ) -> int:
        """Decide a window; returns when its own work begins."""
        used = [(unit, self.ready[_place(unit)]) for unit in known if _place(unit) in self.ready]
        decide_ns = max([begin_ns, *(ready_ns for _, (ready_ns, _) in used)])
        if is_stream and self.decisions:
            decide_ns = max(decide_ns, self.decisions[-1].published_ns)
        waited: dict[str, float] = {}
        for unit, (ready_ns, _) in used:
            late = max(ready_ns - end_ns, 0) / NS_PER_S
            waited[unit.modality] = max(waited.get(unit.modality, 0.0), late)
        decision = PlannedDecision(
            end_ns,
            decide_ns,
            decide_ns + self.settings.decision_ns(end_ns),
            tuple(Use(unit.modality, unit.sequence, level) for unit, (_, level) in used),
            configuration,
            waited,
            rested,
        )
        self.decisions.append(decision)
        last = max(used, key=lambda u: u[1][0], default=None)
        transport_ns = 0
        if last is not None:
            transport_ns = self.settings.times.transport_ns(*_place(last[0]))
        self.course.decided(decision, transport_ns)
        return decide_ns


def _place(unit: Arrival) -> Place:
    return unit.modality, unit.sequence
