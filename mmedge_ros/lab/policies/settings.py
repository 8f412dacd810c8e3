"""What all policies are run with, and how they hear of what happens."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from mmedge_ros.data_types import (
    NS_PER_S,
    Configuration,
    ModalityConfiguration,
    StageTiming,
    Trail,
    UnitFeatures,
    extend_trail,
)
from mmedge_ros.lab.evaluation import EvaluationError
from mmedge_ros.lab.policies.schedule import Arrival, Encoding, PlannedDecision
from mmedge_ros.lab.policies.service_times import ServiceTimes
from mmedge_ros.pipeline.unit_intake import acquisition_trail
from mmedge_ros.pipeline.window_assembler import WindowParameters
from mmedge_ros.replay.steered_replay import Steering

# Of units and of windows alike: what waits longer is of no use when its turn comes.
CAPACITY = 2
_HEAD_START_NS = 3 * NS_PER_S

FeaturesOf = Callable[[Arrival, ModalityConfiguration], UnitFeatures | None]


def no_content(unit: Arrival, part: ModalityConfiguration) -> UnitFeatures:
    """Return features without content: enough where only times matter."""
    return UnitFeatures(
        unit.modality,
        unit.sequence,
        unit.stamp_ns,
        unit.available_ns,
        '',
        acquisition_trail(unit.stamp_ns, unit.stamp_ns, unit.available_ns),
        part.rate,
        part.level,
    )


@dataclass(frozen=True)
class PolicySettings:
    """What a policy has to do with.

    ``configuration`` is used where nobody steers; ``make_steering`` makes who does, anew for
    each flight. ``windows.deadline`` is the latency limit. ``features`` says what encoders make
    of a unit, for those who steer by it. ``capacity`` is how many windows, or units of a
    modality, may wait; of more the oldest is dropped.
    """

    times: ServiceTimes
    configuration: Configuration
    windows: WindowParameters = field(default_factory=WindowParameters)
    make_steering: Callable[[], Steering] | None = None
    features: FeaturesOf = no_content
    capacity: int = CAPACITY

    @property
    def window_ns(self) -> int:
        return round(self.windows.window * NS_PER_S)

    @property
    def stride_ns(self) -> int:
        return round(self.windows.stride * NS_PER_S)

    def decision_ns(self, end_ns: int) -> int:
        """Return how long the decision of a window takes."""
        return self.times.decision_ns(end_ns, self.stride_ns)


class Course:
    """The configuration over time: fixed, or steered by what has happened by then.

    :param arrivals: where units are encoded as they come: all of them, from which who steers
        learns how long before a window's end they do
    """

    def __init__(
        self, settings: PolicySettings, first_ns: int, arrivals: Sequence[Arrival] = ()
    ) -> None:
        self._settings = settings
        self._steering = settings.make_steering() if settings.make_steering else None
        self._happens: list[tuple[int, int, Callable[..., None], tuple[Any, ...]]] = []
        self._order = itertools.count()
        self.current = settings.configuration
        if self._steering is not None:
            first = self._steering.update(first_ns - _HEAD_START_NS)
            if first is None:
                raise EvaluationError('who chooses configurations has none to begin with')
            self.current = first
        self._knows_arrivals = bool(arrivals)
        for unit in arrivals:
            self._arrived(unit, unit.stamp_ns, unit.available_ns)

    def at(self, now_ns: int) -> Configuration:
        """Return what is used from now on; who steers knows all that has happened by now."""
        if self._steering is None:
            return self.current
        while self._happens and self._happens[0][0] <= now_ns:
            when_ns, _, tell, told = heapq.heappop(self._happens)
            tell(*told, when_ns)
        made = self._steering.update(now_ns)
        if made is not None:
            self.current = made
        return self.current

    def encoded(self, unit: Arrival, encoding: Encoding, ready_ns: int) -> None:
        """Enter that a unit's features will be ready."""
        if self._steering is None:
            return
        if not self._knows_arrivals:
            self._arrived(unit)
        part = ModalityConfiguration(unit.modality, 0.0, encoding.level)
        features = self._settings.features(unit, part)
        if features is not None:
            self._at(ready_ns, self._steering.features_ready, with_trail(features, encoding))

    def decided(self, decision: PlannedDecision, transport_ns: int) -> None:
        """Enter that a decision will be published.

        :param transport_ns: how long the features of its last unit travelled
        """
        if self._steering is not None:
            trail = (
                StageTiming(
                    'transport_features', decision.decide_ns - transport_ns, decision.decide_ns
                ),
                StageTiming('fusion', decision.decide_ns, decision.published_ns),
            )
            self._at(decision.published_ns, self._steering.decided, decision.latency, trail)

    def _arrived(self, unit: Arrival, stamp_ns: int = 0, available_ns: int = 0) -> None:
        def tell(now_ns: int) -> None:
            if self._steering is not None:
                self._steering.unit_arrived(unit.modality, now_ns, stamp_ns, available_ns)

        self._at(unit.available_ns, tell)

    def _at(self, when_ns: int, tell: Callable[..., None], *told: Any) -> None:
        heapq.heappush(self._happens, (when_ns, next(self._order), tell, told))


def with_trail(features: UnitFeatures, encoding: Encoding) -> UnitFeatures:
    """Return features whose trail goes on to the end of their encoding."""
    begun: Trail = extend_trail(features.trail, 'queue', encoding.begin_ns)
    return replace(features, trail=extend_trail(begun, 'encode', encoding.end_ns))
