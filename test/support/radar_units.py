"""Radar units made by hand."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from mmedge_ros.core.data_types import RADAR, StageTiming, Unit

TRAIL = (StageTiming('acquisition', 90, 100), StageTiming('queue', 100, 110))


def radar_unit(points: list[tuple[float, float, float, float]]) -> Unit:
    names = ('x', 'y', 'z', 'velocity')
    fields = [
        SimpleNamespace(name=name, offset=4 * i, datatype=7, count=1)
        for i, name in enumerate(names)
    ]
    data = np.array(points, np.float32).reshape(-1, 4)
    message = SimpleNamespace(
        width=len(data),
        height=1,
        fields=fields,
        is_bigendian=False,
        point_step=16,
        row_step=16 * len(data),
        data=data.tobytes(),
    )
    return Unit(RADAR, 3, 200, 205, 'radar_link', message, TRAIL)
