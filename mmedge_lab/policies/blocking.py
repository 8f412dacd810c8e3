"""Blocking: waits for the window's end, and encodes then.

Without a cache every unit of the window is encoded anew, as a network that takes whole windows
has to; with one each unit is encoded once, and only those that are new since the window before
are left to do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from mmedge_lab.policies.causality import Promise
from mmedge_lab.policies.encoder_servers import Thinning, WindowQueue, Windows, encode_all
from mmedge_lab.policies.schedule import (
    STREAM,
    Arrival,
    Encoding,
    PlannedDecision,
    Schedule,
    UnitKey,
    Use,
    waited_for,
)
from mmedge_lab.policies.settings import PolicySettings
from mmedge_lab.policies.steering import Course
from mmedge_ros.data_types import Configuration


@dataclass(frozen=True)
class Blocking:
    """Blocking, with or without ``cached`` units; steered where the settings say so.

    In the stream protocol windows whose turn does not come soon enough are dropped. In the
    sample protocol a cached unit was encoded at the end of its first window, by an idle server.

    Units of the modality ``first`` are encoded before the configuration is chosen, so that the
    chooser knows their content. Units of the others that are not taken then stay untaken: no
    later window makes up for them.
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
        queue = WindowQueue(windows.ends)
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
    """What was done so far. ``ready`` says of each encoded unit when, and with which level."""

    settings: PolicySettings
    course: Course
    cached: bool
    encodings: list[Encoding] = field(default_factory=list)
    decisions: list[PlannedDecision] = field(default_factory=list)
    ready: dict[UnitKey, tuple[int, str]] = field(default_factory=dict)

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
        units = {u.unit: u for u in passing if u.unit not in self.ready}
        made = encode_all(
            units.values(), configuration, times, begin_ns, None if self.cached else end_ns
        )
        for encoding in made:
            ready_ns = encoding.end_ns + times.transport_ns(*encoding.unit)
            self.ready[encoding.unit] = (ready_ns, encoding.level)
            self.course.encoded(units[encoding.unit], encoding)
        self.encodings += made
        inside = {u.unit for u in known}
        self.ready = {unit: ready for unit, ready in self.ready.items() if unit in inside}
        return max((encoding.end_ns for encoding in made), default=begin_ns)

    def ready_ns(self, units: Sequence[Arrival], begin_ns: int) -> int:
        """Return when the features of all these units are there, not before ``begin_ns``."""
        ready = (self.ready[u.unit][0] for u in units if u.unit in self.ready)
        return max(begin_ns, max(ready, default=begin_ns))

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
        used = [(u, *self.ready[u.unit]) for u in known if u.unit in self.ready]
        decide_ns = max([begin_ns, *(ready_ns for _, ready_ns, _ in used)])
        if is_stream and self.decisions:
            decide_ns = max(decide_ns, self.decisions[-1].published_ns)
        decision = PlannedDecision(
            end_ns,
            decide_ns,
            decide_ns + self.settings.decision_ns(end_ns),
            tuple(Use(*unit.unit, level) for unit, _, level in used),
            configuration,
            waited_for(end_ns, ((unit.modality, ready_ns) for unit, ready_ns, _ in used)),
            rested,
        )
        self.decisions.append(decision)
        last = max(used, key=lambda u: u[1], default=None)
        self.course.decided(decision, last[0].unit if last else None)
        return decide_ns
