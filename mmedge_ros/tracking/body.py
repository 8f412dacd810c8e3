"""What a track knows of the body it follows, and of how well it follows it."""

from __future__ import annotations

import math
from typing import NamedTuple

from mmedge_ros.data_types import NS_PER_S, RADAR, FloatArray, Measurement
from mmedge_ros.tracking.claims import Conduct, after_reading
from mmedge_ros.tracking.stature import Stature, after, stranger_spread
from mmedge_ros.tracking.track import TrackState


class Body(NamedTuple):
    """See `TrackState` for what each is."""

    stature: Stature
    misled: FloatArray | None
    conduct: Conduct


def learned(
    track: TrackState, measurement: Measurement, own: float, exchanged: float, distance: float
) -> Body:
    """Return what is known of a track's body after a measurement.

    :param own: probability that the returns are the body's own
    :param exchanged: probability that it is another body by now
    :param distance: squared Mahalanobis distance from where it was foreseen
    """
    conduct = after_reading(track.conduct, measurement, distance)
    misled = track.misled
    # Also returns that a track was begun by, before a box came to it, may be somebody else's.
    if own >= 0.5 and (measurement.otherwise or (misled is None and RADAR in track.updated_ns)):
        spread = stranger_spread(measurement)
        misled = misled if spread is None else spread
    if measurement.otherwise is None and exchanged <= 0.0:
        return Body(track.stature, misled, conduct)
    last_ns = track.updated_ns.get(RADAR)
    since = math.inf if last_ns is None else (measurement.stamp_ns - last_ns) / NS_PER_S
    return Body(after(track.stature, measurement, own, exchanged, since), misled, conduct)
