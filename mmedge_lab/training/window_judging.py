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
from mmedge_ros.core.data_types import Detection, FloatArray
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


class Judgement:
    """Detections and truths, counted for any threshold."""

    def __init__(self) -> None:
        self._pairs: list[tuple[Sequence[Detection], TrueFrame]] = []

    def add(self, maps: Maps, size: tuple[int, int], truth: TrueFrame) -> None:
        """Enter maps (54, 30, 40) of pictures of a size, and what is true at their instant."""
        parameters = DecodingParameters(_LOWEST, labels=(PERSON,))
        self._pairs.append((decode_maps(maps, size, parameters), truth))

    def at(self, threshold: float) -> Figures:
        """Return the figures of the boxes that score so much or more."""
        sums, errors = np.zeros(6), np.zeros(0)
        for detected, truth in self._pairs:
            kept = [d for d in detected if d.score >= threshold]
            match = match_boxes(truth, np.array([d.box for d in kept], np.float64).reshape(-1, 4))
            people, met = counted_people(truth), match.partners >= 0
            tall = truth.heights[people] >= TALL
            overlaps = match.overlaps
            whole = len(tall), tall.sum(), overlaps.sum(), overlaps[tall].sum()
            sums += (*whole, match.hits, match.false)
            distances = np.array([kept[place].distance for place in match.partners[met]])
            with np.errstate(invalid='ignore', divide='ignore'):
                errors = np.append(errors, distances / truth.ranges[people][met] - 1.0)
        count, tall_ones, iou, iou_tall, hits, wrong = sums.tolist()
        return Figures(
            threshold,
            int(count),
            int(tall_ones),
            iou,
            iou_tall,
            int(hits),
            int(wrong),
            errors[np.isfinite(errors)],
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


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else np.nan
