"""What trained rivals plug in: a chooser of configurations, an imputer of missing features.

Both are told only what is known at the moment they are asked.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Protocol

from mmedge_ros.data_types import Configuration, SkipDecision, Track, Trail, UnitFeatures

_MOST_KEPT = 200


@dataclass(frozen=True)
class Facts:
    """What can be known at ``now_ns``.

    ``features`` are, by modality, units of the flight whose features became ready in the last
    ``window_ns``, in that order. ``latencies`` (s) are those of decisions published by now, the
    newest last. ``current`` is in use; None before the first choice.
    """

    now_ns: int
    window_ns: int
    features: Mapping[str, Sequence[UnitFeatures]] = field(
        default_factory=lambda: MappingProxyType({})
    )
    latencies: Sequence[float] = ()
    current: Configuration | None = None


class Chooser(Protocol):
    """Chooses rates and levels: modality gating and model selection are choosers."""

    def configuration(self, facts: Facts) -> Configuration:
        """Return what to use from now on; only its ``modalities`` count.

        It is asked first when nothing is known, with ``current`` None. It keeps nothing between
        flights: each flight begins with such a question.
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


class ChooserSteering:
    """Asks a chooser, with the facts of the moment.

    :param window_ns: how far back facts reach
    :param lead_ns: how long after it is chosen a configuration holds
    """

    def __init__(self, chooser: Chooser, window_ns: int, lead_ns: int = 0) -> None:
        self._chooser = chooser
        self._window_ns = window_ns
        self._lead_ns = lead_ns
        self._features: deque[tuple[int, UnitFeatures]] = deque(maxlen=_MOST_KEPT)
        self._latencies: deque[float] = deque(maxlen=_MOST_KEPT)
        self._current: Configuration | None = None

    def unit_arrived(
        self, modality: str, now_ns: int, stamp_ns: int = 0, available_ns: int = 0
    ) -> None:
        """A chooser is told of features only."""

    def features_ready(self, features: UnitFeatures, now_ns: int) -> None:
        self._features.append((now_ns, features))

    def resting(self, skip: SkipDecision, now_ns: int) -> None:
        """Rivals let no sensor rest."""

    def decided(self, latency: float, trail: Trail, now_ns: int) -> None:  # noqa: ARG002
        self._latencies.append(latency)

    def tracked(self, tracks: Sequence[Track], now_ns: int) -> None:
        """Rivals look at units only."""

    def update(self, now_ns: int) -> Configuration | None:
        known: dict[str, list[UnitFeatures]] = {}
        for ready_ns, features in self._features:
            if now_ns - self._window_ns < ready_ns <= now_ns:
                known.setdefault(features.modality, []).append(features)
        before = self._current
        facts = Facts(now_ns, self._window_ns, known, tuple(self._latencies), before)
        wanted = self._chooser.configuration(facts)
        if before is not None and before.modalities == wanted.modalities:
            return None
        self._current = replace(
            wanted,
            id=1 if before is None else before.id + 1,
            effective_from_ns=now_ns + self._lead_ns,
        )
        return self._current
