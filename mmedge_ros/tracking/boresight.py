"""Whether radar and camera look the way their transforms say: how far returns lie beside boxes.

Returns that are as far away as a box are its own, or another person's. Those of others lie
anywhere beside it; its own lie at one angle, 0 where the transforms are right. So the angles of
all of them have one peak, whoever is where.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from mmedge_ros.core.data_types import FloatArray
from mmedge_ros.tracking.box_placement import PlacedBoxes
from mmedge_ros.tracking.box_ranges import RangeReading
from mmedge_ros.tracking.return_placement import PlacedReturns

_WIDEST = 15  # degrees to either side
_EDGES = np.radians(np.arange(-_WIDEST - 0.5, _WIDEST + 1))
# Which returns are as far away as a box, relative; which boxes count.
_AGREEMENT, _LEAST_SCORE = 0.25, 0.45
# So many pairs say something, and so many are remembered.
_FEWEST, _MOST = 150.0, 3000.0
# The peak, three degrees wide, holds such a share (others about 0.1); beyond so many degrees it
# is said: in 8 s of hard_calibration, turned by 5 degrees, peaks lie within 1 degree of the truth.
_PEAK, _SAID = 0.3, 3.0


class Boresight:
    """Counts how far (rad, right is positive) returns lie beside boxes in the picture."""

    def __init__(self) -> None:
        self._counts = np.zeros(len(_EDGES) - 1)

    def learn(
        self,
        boxes: PlacedBoxes,
        ranges: Sequence[RangeReading],
        returns: PlacedReturns,
        k: FloatArray,
    ) -> None:
        """Take in a picture with the scans that go with it.

        :param ranges: of the boxes by the picture
        :param k: matrix of the camera, (3, 3)
        """
        known = [i for i, d in enumerate(boxes.detections) if d.score >= _LEAST_SCORE]
        if not known or not returns.in_view.any():
            return
        middles = boxes.corners[known][:, [0, 2]].mean(axis=1)
        distances = np.array([ranges[i].distance for i in known])
        fits = np.abs(returns.distances / distances[:, None] - 1.0) <= _AGREEMENT
        columns = (returns.pixels[:, 0], middles)
        of_returns, of_boxes = (np.arctan((x - k[0, 2]) / k[0, 0]) for x in columns)
        beside = of_returns - of_boxes[:, None]
        self._counts += np.histogram(beside[fits & returns.in_view], _EDGES)[0]
        if self._counts.sum() > _MOST:
            self._counts /= 2.0

    @property
    def angle(self) -> float:
        """How far (degrees, right is positive) returns lie beside their people; NaN unknown."""
        total, smooth = self._counts.sum(), np.convolve(self._counts, np.ones(3), 'valid')
        place = int(smooth.argmax())
        if total < _FEWEST or smooth[place] < _PEAK * total:
            return math.nan
        around: FloatArray = self._counts[place : place + 3]
        return place + 1 - _WIDEST + float(around[2] - around[0]) / float(around.sum())

    @property
    def words(self) -> tuple[str, ...]:
        """Say it, if radar and camera look apart."""
        angle = self.angle
        if not abs(angle) >= _SAID:  # NaN is not
            return ()
        side = 'right' if angle > 0.0 else 'left'
        return (
            f'radar and camera look apart: returns lie {abs(angle):.0f} degrees to the {side} of '
            'the people in the picture',
        )
