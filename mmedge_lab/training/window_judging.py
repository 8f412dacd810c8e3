"""How right boxes are at the instants of windows, to choose the best network and a threshold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmedge_lab.training.window_set import (
    Window,
    WindowBatch,
    WindowConfiguration,
    WindowSet,
    joined,
)
from mmedge_ros.core.data_types import FloatArray
from mmedge_ros.encoding.feature_grid import (
    MAP_SHAPE,
    SEMANTIC_CHANNELS,
    empty_semantics,
)
from mmedge_ros.replay.ground_truth import PERSON, TrueFrame
from mmedge_ros.report.truth_matching import counted_people, match_boxes
from mmedge_ros.tracking.map_decoding import DecodingParameters, decode_maps

TALL = 20.0
_LOWEST = 0.05
THRESHOLDS = tuple(np.arange(0.1, 0.75, 0.05).round(2).tolist())
# What is judged: everything, and the least of it.
JUDGED_CONFIGURATIONS = {
    'full': WindowConfiguration(),
    'least': WindowConfiguration(10.0, 'small', 5.0, 'small'),
}
_BATCH = 8
_DIGITS = 4

Maps = NDArray[np.float32]
RunNetwork = Callable[[WindowBatch], Maps]


class Figures(NamedTuple):
    """How right boxes of people are from one threshold on, as sums and what follows from them.

    ``people`` to detect, those of 20 px and more (``tall``), the sums of IoU of both, people met,
    wrong boxes, and the errors of ranges (N,) as shares of the true ones, signed.
    """

    threshold: float
    people: int
    tall: int
    iou: float
    iou_tall: float
    hits: int
    wrong: int
    errors: FloatArray

    @property
    def worth(self) -> float:
        """The sum of IoU of all people over their number and that of the wrong boxes."""
        return _ratio(self.iou, self.people + self.wrong)

    def plain(self) -> dict[str, float]:
        """Return the figures that are known; ``mean_iou`` is of people of 20 px and more.

        ``range_error`` is the median error of ranges as a share, ``range_deviation`` the root of
        the mean square of ln(range / true range).
        """
        errors = self.errors if len(self.errors) else np.full(1, np.nan)
        figures = {
            'threshold': self.threshold,
            'people': self.tall,
            'mean_iou': _ratio(self.iou_tall, self.tall),
            'recall': _ratio(self.hits, self.people),
            'precision': _ratio(self.hits, self.hits + self.wrong),
            'worth': self.worth,
            'range_error': float(np.median(np.abs(errors))),
            'range_deviation': float(np.sqrt(np.square(np.log1p(errors)).mean())),
        }
        known = {name: value for name, value in figures.items() if value == value}
        return {k: round(v, _DIGITS) if isinstance(v, float) else v for k, v in known.items()}


class _Detected(NamedTuple):
    """People detected in maps at one instant: boxes (M, 4), scores (M,), distances (M,)."""

    boxes: FloatArray
    scores: FloatArray
    distances: FloatArray


class Judgement:
    """Detections and truths, counted for any threshold."""

    def __init__(self) -> None:
        self._pairs: list[tuple[_Detected, TrueFrame]] = []

    def add(self, maps: Maps, size: tuple[int, int], truth: TrueFrame) -> None:
        """Enter maps (54, 30, 40) of pictures of a size, and what is true at their instant."""
        parameters = DecodingParameters(_LOWEST, labels=(PERSON,))
        detected = decode_maps(maps, size, parameters)
        boxes = np.array([d.box for d in detected], np.float64).reshape(-1, 4)
        scores, distances = (
            np.array([getattr(d, field) for d in detected], np.float64)
            for field in ('score', 'distance')
        )
        self._pairs.append((_Detected(boxes, scores, distances), truth))

    def at(self, threshold: float) -> Figures:
        """Return the figures of the boxes that score so much or more."""
        rows = [_count(detected, truth, threshold) for detected, truth in self._pairs]
        sums = np.sum([row[:-1] for row in rows], axis=0).tolist() if rows else [0] * 6
        people, tall, iou, iou_tall, hits, wrong = sums
        errors = np.concatenate([np.zeros(0), *(row[-1] for row in rows)])
        return Figures(
            threshold, int(people), int(tall), iou, iou_tall, int(hits), int(wrong), errors
        )

    def best(self) -> Figures:
        """Return the figures of the threshold with the greatest worth."""
        return max((self.at(t) for t in THRESHOLDS), key=lambda f: (f.worth == f.worth, f.worth))


def judge(
    windows: WindowSet, chosen: Sequence[Window], run: RunNetwork | None
) -> tuple[Judgement, Judgement]:
    """Compare fused maps, and those of the newest picture alone, with the truth.

    :param run: None where only the newest picture is judged
    :return: of the fused maps, and of the newest picture's own
    """
    fused, alone = Judgement(), Judgement()
    for first in range(0, len(chosen), _BATCH):
        part = chosen[first : first + _BATCH]
        batch = joined(windows, part)
        maps = None if run is None else run(batch)
        for row, window in enumerate(part):
            flight = windows.flights[window.flight]
            truth = flight.truth.at(windows.reference_ns(window))
            if maps is not None:
                fused.add(maps[row], flight.size, truth)
            own = np.zeros(MAP_SHAPE, np.float32)
            seen = batch.camera.valid[row, -1] > 0.0
            newest = batch.camera.grids[row, -1] if seen else empty_semantics()
            own[:SEMANTIC_CHANNELS] = newest[:SEMANTIC_CHANNELS]
            alone.add(own, flight.size, truth)
    return fused, alone


def _count(
    detected: _Detected, truth: TrueFrame, threshold: float
) -> tuple[float, float, float, float, float, float, FloatArray]:
    """Return the sums of `Figures` at one instant."""
    kept = detected.scores >= threshold
    match = match_boxes(truth, detected.boxes[kept])
    people = counted_people(truth)
    tall = truth.heights[people] >= TALL
    met = match.partners >= 0
    with np.errstate(invalid='ignore', divide='ignore'):
        ratios = detected.distances[kept][match.partners[met]] / truth.ranges[people][met]
    errors = ratios - 1.0
    return (
        len(tall),
        int(tall.sum()),
        float(match.overlaps.sum()),
        float(match.overlaps[tall].sum()),
        match.hits,
        match.false,
        errors[np.isfinite(errors)],
    )


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else np.nan
