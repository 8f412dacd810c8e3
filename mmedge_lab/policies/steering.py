"""What chooses configurations over time, and the parts that rivals are trained to bring.

A part is given only what is known at the moment at which it is called.
"""

from __future__ import annotations

import heapq
import itertools
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Protocol

from mmedge_lab.judging import EvaluationError
from mmedge_lab.judging.steered_replay import Steering
from mmedge_lab.policies.schedule import Arrival, Encoding, PlannedDecision, UnitKey
from mmedge_lab.policies.settings import PolicySettings, with_trail
from mmedge_ros.core.data_types import (
    NS_PER_S,
    Configuration,
    ModalityConfiguration,
    StageTiming,
    UnitFeatures,
)

_MOST_KEPT = 200
_HEAD_START_NS = 3 * NS_PER_S


@dataclass(frozen=True)
class Facts:
    """What can be known at ``now_ns``.

    ``features`` are, by modality, units of the flight whose features became ready in the last
    window, in that order.
    """

    now_ns: int
    features: Mapping[str, Sequence[UnitFeatures]] = field(
        default_factory=lambda: MappingProxyType({})
    )


class Chooser(Protocol):
    """Chooses rates and levels: modality gating and model selection are choosers."""

    def configuration(self, facts: Facts) -> Configuration:
        """Return what to use from now on; only its ``modalities`` count.

        The first call of a flight knows nothing. Nothing may be kept between flights.
        """


class Imputer(Protocol):
    """Makes up the features of units that are not ready when a window ends."""

    def impute(
        self, missing: UnitFeatures, ready: Mapping[str, Sequence[UnitFeatures]]
    ) -> UnitFeatures | None:
        """Return made-up features with ``detections``, None to do without.

        :param missing: key, times, frame and picture size of the unit, nothing of its content
        :param ready: features of the window's units that are ready, by modality, by stamp
        """


@dataclass(frozen=True)
class Plugins:
    """What is there; a policy that needs something that is not is refused."""

    modality_gating: Chooser | None = None
    model_selection: Chooser | None = None
    imputation: Imputer | None = None


class ChooserSteering(Steering):
    """Steers by a chooser, given the facts of the moment.

    :param window_ns: how far back facts reach
    """

    def __init__(self, chooser: Chooser, window_ns: int) -> None:
        self._chooser = chooser
        self._window_ns = window_ns
        self._features: deque[tuple[int, UnitFeatures]] = deque(maxlen=_MOST_KEPT)
        self._current: Configuration | None = None

    def features_ready(self, features: UnitFeatures, now_ns: int) -> None:
        self._features.append((now_ns, features))

    def update(self, now_ns: int) -> Configuration | None:
        known: dict[str, list[UnitFeatures]] = {}
        for ready_ns, features in self._features:
            if now_ns - self._window_ns < ready_ns <= now_ns:
                known.setdefault(features.modality, []).append(features)
        before, wanted = self._current, self._chooser.configuration(Facts(now_ns, known))
        if before is not None and before.modalities == wanted.modalities:
            return None
        number = 1 if before is None else before.id + 1
        self._current = replace(wanted, id=number, effective_from_ns=now_ns)
        return self._current


class Course:
    """The configuration over time: fixed, or steered by what has happened by then."""

    def __init__(self, settings: PolicySettings, first_ns: int) -> None:
        self._settings = settings
        self._steering = settings.make_steering() if settings.make_steering else None
        self._events: list[tuple[int, int, Callable[..., None], tuple[Any, ...]]] = []
        self._order = itertools.count()
        self.current = settings.configuration
        if self._steering is not None:
            first = self._steering.update(first_ns - _HEAD_START_NS)
            if first is None:
                raise EvaluationError('the steering has no configuration to begin with')
            self.current = first

    def at(self, now_ns: int) -> Configuration:
        """Return what is used from now on; steering knows all that has happened by now."""
        if self._steering is None:
            return self.current
        while self._events and self._events[0][0] <= now_ns:
            when_ns, _, report, details = heapq.heappop(self._events)
            report(*details, when_ns)
        self.current = self._steering.update(now_ns) or self.current
        return self.current

    def encoded(self, unit: Arrival, encoding: Encoding) -> None:
        """Note when a unit's features will be ready: encoded, and sent to fusion."""
        if self._steering is None:
            return
        self._at(unit.available_ns, self._steering.unit_arrived, unit.modality)
        part = ModalityConfiguration(unit.modality, 0.0, encoding.level)
        features = self._settings.features(unit, part)
        if features is not None:
            ready_ns = encoding.end_ns + self._settings.times.transport_ns(*encoding.unit)
            self._at(ready_ns, self._steering.features_ready, with_trail(features, encoding))

    def decided(self, decision: PlannedDecision, last: UnitKey | None) -> None:
        """Note when a decision will be published; its ``last`` unit's features travelled last."""
        if self._steering is not None:
            transport_ns = self._settings.times.transport_ns(*last) if last else 0
            begin_ns = decision.decide_ns
            trail = (
                StageTiming('transport_features', begin_ns - transport_ns, begin_ns),
                StageTiming('fusion', begin_ns, decision.published_ns),
            )
            self._at(decision.published_ns, self._steering.decided, decision.latency, trail)

    def _at(self, when_ns: int, report: Callable[..., None], *details: Any) -> None:
        heapq.heappush(self._events, (when_ns, next(self._order), report, details))
