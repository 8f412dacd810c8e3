"""What is true at the instants that windows of a flight refer to, as arrays on disk."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mmedge_lab.training.picture_set import CLASSES
from mmedge_ros.replay.ground_truth import GroundTruth, TrueFrame

FloatRows = NDArray[np.float32]


class WindowTruth:
    """Objects in the picture by instant.

    ``rows`` (R, 7) float32 are place in CLASSES, x0, y0, x1, y1 (px), range (m, NaN where it is
    not known) and visibility; ``ends`` (T,) where the rows of each of the ``instants_ns`` (T,)
    end.
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

    def at(self, stamp_ns: int) -> TrueFrame:
        """Return the objects at one of the instants; where in the world they are is left out.

        :raises KeyError: if nothing is known of it
        """
        place = self._places[stamp_ns]
        begin = int(self.ends[place - 1]) if place else 0
        return true_frame(self.rows[begin : int(self.ends[place])])


def true_frame(rows: FloatRows) -> TrueFrame:
    """Return the objects of some rows of `WindowTruth`."""
    values, nowhere = rows.astype(np.float64), np.zeros((len(rows), 3))
    return TrueFrame(
        np.arange(len(rows)),
        np.array(CLASSES)[rows[:, 0].astype(int)],
        values[:, 1:5],
        values[:, 6],
        nowhere,
        nowhere,
        values[:, 5],
    )


def window_truth(truth: GroundTruth, instants_ns: Sequence[int]) -> WindowTruth:
    """Look the truth up at instants; those without a known truth are left out."""
    known = {stamp_ns: truth.frame_at(stamp_ns) for stamp_ns in sorted(set(instants_ns))}
    tables = {stamp_ns: _rows(frame) for stamp_ns, frame in known.items() if frame is not None}
    return WindowTruth(
        np.array([*tables], np.int64),
        np.cumsum([len(rows) for rows in tables.values()], dtype=np.int64),
        np.concatenate([np.zeros((0, 7), np.float32), *tables.values()]),
    )


def _rows(frame: TrueFrame) -> FloatRows:
    known = np.isin(frame.labels, CLASSES) & np.isfinite(frame.boxes).all(axis=1)
    chosen = frame.select(known)
    classes = np.array([CLASSES.index(str(label)) for label in chosen.labels], np.float64)
    columns = (classes, *chosen.boxes.T, chosen.ranges, chosen.visibility)
    return np.stack(columns, axis=1).astype(np.float32)
