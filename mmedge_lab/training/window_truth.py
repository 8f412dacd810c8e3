"""What is true at the instants that windows of a flight refer to, as arrays on disk."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmedge_lab.training.picture_set import CLASSES
from mmedge_ros.replay.ground_truth import GroundTruth, TrueFrame
from mmedge_ros.report.truth_matching import MINIMUM_HEIGHT, MINIMUM_VISIBILITY

FloatRows = NDArray[np.float32]


class TrueObjects(NamedTuple):
    """The N objects in the picture at one instant.

    ``classes`` (N,) places in CLASSES; ``boxes`` (N, 4) px of the picture; ``ranges`` (N,) m,
    NaN where not known; ``clear`` (N,) marks those to be detected, the others are ignored.
    """

    classes: NDArray[np.int64]
    boxes: FloatRows
    ranges: FloatRows
    visibility: FloatRows
    clear: NDArray[np.bool_]

    @property
    def heights(self) -> FloatRows:
        """Heights of the boxes (N,), px."""
        tall: FloatRows = self.boxes[:, 3] - self.boxes[:, 1]
        return tall


class WindowTruth:
    """Objects by instant.

    ``rows`` (R, 8) float32 are class, x0, y0, x1, y1, range, visibility and clear (0 or 1),
    ``ends`` (T,) where the rows of each of the ``instants_ns`` (T,) end.
    """

    def __init__(
        self, instants_ns: NDArray[np.int64], ends: NDArray[np.int64], rows: FloatRows
    ) -> None:
        self.instants_ns = instants_ns
        self.ends = ends
        self.rows = rows
        self._places = {int(stamp): place for place, stamp in enumerate(instants_ns.tolist())}

    def __contains__(self, stamp_ns: int) -> bool:
        return stamp_ns in self._places

    def at(self, stamp_ns: int) -> TrueObjects:
        """Return the objects at one of the instants.

        :raises KeyError: if nothing is known of it
        """
        place = self._places[stamp_ns]
        begin = int(self.ends[place - 1]) if place else 0
        rows = self.rows[begin : int(self.ends[place])]
        return TrueObjects(
            rows[:, 0].astype(np.int64), rows[:, 1:5], rows[:, 5], rows[:, 6], rows[:, 7] > 0.5
        )


def window_truth(truth: GroundTruth, instants_ns: Sequence[int]) -> WindowTruth:
    """Look the truth up at instants; those without a known truth are left out."""
    kept: list[int] = []
    ends: list[int] = []
    tables: list[FloatRows] = []
    count = 0
    for stamp_ns in sorted(set(instants_ns)):
        frame = truth.frame_at(stamp_ns)
        if frame is None:
            continue
        rows = _rows(frame)
        count += len(rows)
        kept.append(stamp_ns)
        ends.append(count)
        tables.append(rows)
    return WindowTruth(
        np.array(kept, np.int64),
        np.array(ends, np.int64),
        np.concatenate([np.zeros((0, 8), np.float32), *tables]),
    )


def _rows(frame: TrueFrame) -> FloatRows:
    known = np.isin(frame.labels, CLASSES) & np.isfinite(frame.boxes).all(axis=1)
    chosen = frame.select(known)
    classes = np.array([CLASSES.index(str(label)) for label in chosen.labels], np.float64)
    clear = (chosen.heights >= MINIMUM_HEIGHT) & (chosen.visibility >= MINIMUM_VISIBILITY)
    columns = (classes, *chosen.boxes.T, chosen.ranges, chosen.visibility, clear)
    return np.stack(columns, axis=1).astype(np.float32)
