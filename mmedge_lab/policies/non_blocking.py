"""Non-blocking: encodes on arrival, and decides at the window's end from whatever is ready."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mmedge_lab.policies.causality import Promise
from mmedge_lab.policies.encoder_servers import (
    Thinning,
    WindowQueue,
    Windows,
    encode_on_arrival,
)
from mmedge_lab.policies.schedule import (
    STREAM,
    Arrival,
    Encoding,
    PlannedDecision,
    Schedule,
    Use,
)
from mmedge_lab.policies.settings import PolicySettings


@dataclass(frozen=True)
class NonBlocking:
    """Never waits for a unit; what is not ready when the window ends serves later windows.

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
        protocol: str,
    ) -> Schedule:
        """Return what happens to the units of a recording.

        :param arrivals: by the time they are available
        """
        if not arrivals:
            return Schedule(self.name, protocol, (), ())
        windows = Windows(arrivals, settings.window_ns, settings.stride_ns)
        passing = Thinning(arrivals, periods).passing(settings.configuration)
        queue = WindowQueue(windows.ends)
        how = (settings.configuration, settings.times)
        is_stream = protocol == STREAM
        encodings = encode_on_arrival(passing, *how) if is_stream else []
        decisions: list[PlannedDecision] = []
        free_ns = 0
        while (end_ns := queue.next(free_ns)) is not None:
            own = windows.units(end_ns, passing)
            made = encodings
            if not is_stream:
                made = encode_on_arrival(own, *how, end_ns)
                encodings += made
            decision = self._decide(own, made, settings, end_ns, max(end_ns, free_ns))
            decisions.append(decision)
            free_ns = decision.published_ns if is_stream else 0
        return Schedule(
            self.name, protocol, tuple(decisions), tuple(encodings), tuple(queue.dropped)
        )

    def _decide(
        self,
        units: Sequence[Arrival],
        made: Sequence[Encoding],
        settings: PolicySettings,
        end_ns: int,
        decide_ns: int,
    ) -> PlannedDecision:
        ready = {}
        for encoding in made:
            if encoding.end_ns + settings.times.transport_ns(*encoding.unit) <= end_ns:
                ready[encoding.unit] = encoding.level
        uses = []
        newest_ready: dict[str, bool] = {}
        for unit in units:
            level = ready.get(unit.unit)
            newest_ready[unit.modality] = level is not None
            if level is not None:
                uses.append(Use(unit.modality, unit.sequence, level))
        missing = sorted(modality for modality, there in newest_ready.items() if not there)
        return PlannedDecision(
            end_ns,
            decide_ns,
            decide_ns + settings.decision_ns(end_ns),
            tuple(uses),
            settings.configuration,
            dict.fromkeys(newest_ready, 0.0),
            imputed=tuple(missing) if self.imputes else (),
        )
