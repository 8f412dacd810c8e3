"""What can be read at a point of a chart over time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from mmedge_ros.core.data_types import FloatArray

# More points than this hide each other, and cannot be pointed at.
MOST_POINTS = 1500


class Series(NamedTuple):
    """Values over time in a chart: what they are, their unit, and (N,) values, NaN for none."""

    name: str
    unit: str
    values: FloatArray


class Readout(NamedTuple):
    """What can be read at a point of a chart over time: (N,) times in s and series of values.

    ``frames`` say for the figure and its narrow form where the axes are: left, right, top and
    bottom as shares of the picture, and the times at the left and right edge.
    """

    times: FloatArray
    series: Sequence[Series]
    frames: Sequence[tuple[float, ...]] = ()

    def content(self) -> dict[str, Any]:
        """Return it for the page, thinned to as many points as can be pointed at."""
        step = max(-(-len(self.times) // MOST_POINTS), 1)
        return {
            't': _numbers(self.times[::step]),
            'series': [[s.name, s.unit, _numbers(s.values[::step])] for s in self.series],
            'frames': [[round(value, 4) for value in frame] for frame in self.frames],
        }


def _numbers(values: FloatArray) -> list[float | None]:
    """Write values with three digits or the whole number; None where there is none."""
    return [
        float(f'{v:.3g}') if abs(v) < 100 else round(v, 2) if math.isfinite(v) else None
        for v in values.tolist()
    ]
