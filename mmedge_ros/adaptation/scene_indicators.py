"""Collects cheap figures of the present scene from units and decisions.

The same object is used in flight, in replays and for training samples, so that a predictor has
the inputs that it was trained with.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from mmedge_ros.adaptation.accuracy_predictor import Indicators
from mmedge_ros.core.data_types import CAMERA, RADAR, Appearance, Box, UnitFeatures

_VELOCITY, _SNR = 3, 4
# A return is moving where its velocity differs so much from the median, m/s.
_MOVING = 0.5


class BoxedTrack(Protocol):
    """The part of a track that is used."""

    @property
    def box(self) -> Box | None: ...

    @property
    def box_velocity(self) -> tuple[float, float]: ...

    @property
    def score(self) -> float: ...


class SceneIndicators:
    """The present scene by units and decisions; ``now`` holds the indicators."""

    def __init__(self) -> None:
        self.now = Indicators()
        self._embeddings: dict[str, NDArray[np.float32]] = {}

    def encoded(self, unit: UnitFeatures) -> None:
        """Take an encoded unit; costs some 30 microseconds."""
        if unit.modality == CAMERA and not unit.followed:
            self.take_appearance(unit.appearance)
        elif unit.modality == RADAR:
            self.take_returns(unit.returns)
        self.take_embedding(unit.modality, unit.embedding)

    def take_appearance(self, appearance: Appearance) -> None:
        """Take how the newest picture looks."""
        self.now = self.now._replace(
            brightness=appearance.brightness,
            contrast=appearance.contrast,
            sharpness=appearance.sharpness,
        )

    def take_returns(self, returns: NDArray[np.float32]) -> None:
        """Take the returns (N, 5) of the newest scan."""
        velocities = _finite(returns[:, _VELOCITY])
        moving = np.abs(velocities - np.median(velocities)) > _MOVING if len(velocities) else ()
        self.now = self.now._replace(
            returns=float(len(returns)),
            moving=float(np.count_nonzero(moving)),
            snr=_mean(_finite(returns[:, _SNR])),
        )

    def take_embedding(self, modality: str, embedding: NDArray[np.float32]) -> None:
        """Take the embedding (E,) of the newest unit of a modality; empty where there is none."""
        if embedding.size:
            self._embeddings[modality] = embedding
            self.now = self.now._replace(consistency=self._consistency())

    def decided(self, tracks: Sequence[BoxedTrack]) -> None:
        """Take the tracks of a decision."""
        boxes = [(t.box, t) for t in tracks if t.box is not None and t.box.height > 0.0]
        heights = _finite(np.array([box.height for box, _ in boxes]))
        speeds = [math.hypot(*track.box_velocity) / box.height for box, track in boxes]
        self.now = self.now._replace(
            tracks=float(len(boxes)),
            track_height=_mean(heights),
            smallest=float(heights.min()) if len(heights) else math.nan,
            score=_mean(_finite(np.array([track.score for _, track in boxes]))),
            motion=_mean(_finite(np.array(speeds))),
        )

    def _consistency(self) -> float:
        camera, radar = (self._embeddings.get(modality) for modality in (CAMERA, RADAR))
        if camera is None or radar is None or camera.shape != radar.shape:
            return math.nan
        lengths = math.sqrt(float(camera @ camera) * float(radar @ radar))
        cosine = float(camera @ radar) / lengths if lengths > 0.0 else math.nan
        return cosine if math.isfinite(cosine) else math.nan


def _finite(values: NDArray[np.floating]) -> NDArray[np.floating]:
    finite: NDArray[np.floating] = values[np.isfinite(values)]
    return finite


def _mean(values: NDArray[np.floating]) -> float:
    return float(values.mean()) if len(values) else math.nan
