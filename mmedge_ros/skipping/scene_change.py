"""When a rest has to end at once: something new moves, or a track gets uncertain."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from mmedge_ros.parameter import parameter
from mmedge_ros.tracking.track import TrackerState, TrackState


@dataclass(frozen=True)
class SceneChangeParameters:
    """What counts as a change while a sensor rests."""

    hits: int = parameter(
        2,
        'detections after which a new track ends a rest; a ghost is rarely seen twice',
        '',
        1,
        50,
    )
    growth: float = parameter(
        2.0,
        'a rest ends when the standard deviation of a position has grown by this factor and by '
        '0.2 m',
        '',
        1.0,
        100.0,
    )


_LEAST_GROWTH = 0.2


@dataclass(frozen=True)
class SceneChange:
    """What was known when a sensor began to rest: standard deviation (m) by track."""

    parameters: SceneChangeParameters
    deviations: Mapping[int, float]

    @staticmethod
    def since(parameters: SceneChangeParameters, state: TrackerState) -> SceneChange:
        """Remember a state to compare later ones with.

        Who was seen too rarely to be believed is still to come.
        """
        known = [t for t in state.tracks if t.confirmed or t.hits >= parameters.hits]
        return SceneChange(parameters, {t.id: _deviation(t) for t in known})

    def is_in(self, state: TrackerState) -> bool:
        """Whether somebody new is there, or somebody known might be elsewhere."""
        p = self.parameters
        for track in state.tracks:
            before = self.deviations.get(track.id)
            if before is None:
                if track.hits >= p.hits:
                    return True
            elif track.confirmed:
                now = _deviation(track)
                if now > p.growth * before and now > before + _LEAST_GROWTH:
                    return True
        return False


def _deviation(track: TrackState) -> float:
    """Largest standard deviation of the position on the ground, m."""
    a, b, c = (float(track.covariance[i, j]) for i, j in ((0, 0), (0, 1), (1, 1)))
    return math.sqrt(max((a + c) / 2 + math.hypot((a - c) / 2, b), 0.0))
