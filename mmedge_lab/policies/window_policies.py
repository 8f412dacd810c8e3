"""Rivals that decide when a window has ended: blocking ones encode then, others before.

Each says of the units of a recording, by the time they are available, which are encoded when,
and when the decisions made of them are published.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from mmedge_lab.policies.causality import Promise
from mmedge_lab.policies.encoder_servers import CAPACITY, Thinning, WindowQueue, Windows, encode
from mmedge_lab.policies.schedule import (
    Arrival,
    Encoding,
    PlannedDecision,
    Schedule,
    UnitKey,
    Use,
)
from mmedge_lab.policies.settings import PolicySettings
from mmedge_lab.policies.steering import Course
from mmedge_ros.core.data_types import Configuration


@dataclass(frozen=True)
class NonBlocking:
    """Encodes on arrival, and decides at the window's end from whatever is ready.

    What is not ready then serves later windows.

    :param imputes: whether features of the newest unit of a modality are to be made up where
        they are not ready
    """

    name: str
    imputes: bool = False

    @property
    def promises(self) -> frozenset[Promise]:
        return frozenset((Promise.NEVER_WAITS, Promise.ONCE))

    def schedule(
        self,
        arrivals: Sequence[Arrival],
        periods: Mapping[str, int],
        settings: PolicySettings,
        *,
        alone: bool = False,
    ) -> Schedule:
        """Return what happens to the units; ``alone``: each window by idle servers."""
        windows = Windows(arrivals, settings.window_ns, settings.stride_ns)
        configuration, times = settings.configuration, settings.times
        passing = Thinning(arrivals, periods).passing(configuration)
        queue = WindowQueue(windows.ends)
        encodings = [] if alone else encode(passing, configuration, times, capacity=CAPACITY)
        decisions: list[PlannedDecision] = []
        free_ns = 0
        while (end_ns := queue.next(free_ns)) is not None:
            units, made = windows.units(end_ns, passing), encodings
            if alone:
                made = encode(units, configuration, times, 0, end_ns, CAPACITY)
                encodings += made
            ready = {
                encoding.unit: Use(*encoding.unit, encoding.level)
                for encoding in made
                if encoding.end_ns + times.transport_ns(*encoding.unit) <= end_ns
            }
            newest = {unit.modality: unit.unit for unit in units}
            missing = sorted(modality for modality, unit in newest.items() if unit not in ready)
            decide_ns = max(end_ns, free_ns)
            published_ns = decide_ns + settings.decision_ns(end_ns)
            uses = tuple(ready[unit.unit] for unit in units if unit.unit in ready)
            imputed = tuple(missing) if self.imputes else ()
            decisions.append(
                PlannedDecision(
                    end_ns, decide_ns, published_ns, uses, configuration, imputed=imputed
                )
            )
            free_ns = 0 if alone else published_ns
        return Schedule(self.name, tuple(decisions), tuple(encodings), tuple(queue.dropped), alone)


@dataclass(frozen=True)
class Blocking:
    """Waits for the window's end, and encodes then; steered where the settings say so.

    Every unit of a window is encoded anew, as a network that takes whole windows has to; with
    ``cached`` units, only those that are new since the window before. Windows whose turn does not
    come soon enough are dropped.

    Units of the modality ``first`` are encoded before the configuration is chosen, so that the
    chooser knows their content. Units of the others that are not taken then stay untaken: no
    later window makes up for them.
    """

    name: str
    cached: bool = False
    first: str = ''

    @property
    def promises(self) -> frozenset[Promise]:
        once = Promise.ONCE if self.cached else Promise.ANEW
        return frozenset((Promise.WAITS_FOR_THE_END, once))

    def schedule(
        self,
        arrivals: Sequence[Arrival],
        periods: Mapping[str, int],
        settings: PolicySettings,
        *,
        alone: bool = False,
    ) -> Schedule:
        """Return what happens to the units; ``alone``: each window by idle servers.

        A cached unit was then encoded at the end of its first window.
        """
        if not arrivals:
            return Schedule(self.name, (), (), alone=alone)
        windows = Windows(arrivals, settings.window_ns, settings.stride_ns)
        thinning = Thinning(arrivals, periods)
        course = Course(settings, arrivals[0].available_ns)
        run = _Run(settings, course, self.cached, alone)
        queue = WindowQueue(windows.ends)
        free_ns = before_ns = 0
        while (end_ns := queue.next(free_ns)) is not None:
            begin_ns = max(end_ns, free_ns)
            inside = windows.units(end_ns, arrivals)
            if self.first:
                passing = windows.units(end_ns, thinning.passing(course.current))
                ahead = [unit for unit in passing if unit.modality == self.first]
                run.encode(inside, ahead, course.current, begin_ns, end_ns)
                begin_ns = max([begin_ns, *(run.ready[u.unit][0] for u in ahead)])
            configuration = course.at(begin_ns)
            passing = windows.units(end_ns, thinning.passing(configuration))
            rested: tuple[str, ...] = ()
            if self.first:
                new = [u for u in inside if u.available_ns > before_ns]
                passing = [u for u in passing if u in new and u.modality != self.first]
                taken = {self.first, *(u.modality for u in passing)}
                rested = tuple(sorted({u.modality for u in new} - taken))
            encoded_ns = run.encode(inside, passing, configuration, begin_ns, end_ns)
            decide_ns = run.decide(inside, configuration, begin_ns, end_ns, rested)
            before_ns = end_ns
            free_ns = 0 if alone else max(encoded_ns, decide_ns)
        return Schedule(
            self.name, tuple(run.decisions), tuple(run.encodings), tuple(queue.dropped), alone
        )


@dataclass
class _Run:
    """What was done so far. ``ready`` says of each encoded unit when, and with which level."""

    settings: PolicySettings
    course: Course
    cached: bool
    alone: bool
    encodings: list[Encoding] = field(default_factory=list)
    decisions: list[PlannedDecision] = field(default_factory=list)
    ready: dict[UnitKey, tuple[int, str]] = field(default_factory=dict)

    def encode(
        self,
        inside: Sequence[Arrival],
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
        own_ns = None if self.cached else end_ns
        made = encode(units.values(), configuration, times, begin_ns, own_ns)
        for encoding in made:
            ready_ns = encoding.end_ns + times.transport_ns(*encoding.unit)
            self.ready[encoding.unit] = (ready_ns, encoding.level)
            self.course.encoded(units[encoding.unit], encoding)
        self.encodings += made
        self.ready = {u.unit: self.ready[u.unit] for u in inside if u.unit in self.ready}
        return max((encoding.end_ns for encoding in made), default=begin_ns)

    def decide(
        self,
        inside: Sequence[Arrival],
        configuration: Configuration,
        begin_ns: int,
        end_ns: int,
        rested: tuple[str, ...],
    ) -> int:
        """Decide a window; returns when its own work begins."""
        used = [(u.unit, *self.ready[u.unit]) for u in inside if u.unit in self.ready]
        decide_ns = max([begin_ns, *(ready_ns for _, ready_ns, _ in used)])
        if self.decisions and not self.alone:
            decide_ns = max(decide_ns, self.decisions[-1].published_ns)
        decision = PlannedDecision(
            end_ns,
            decide_ns,
            decide_ns + self.settings.decision_ns(end_ns),
            tuple(Use(*unit, level) for unit, _, level in used),
            configuration,
            rested,
        )
        self.decisions.append(decision)
        last = max(used, key=lambda u: u[1], default=None)
        self.course.decided(decision, last[0] if last else None)
        return decide_ns
