"""How far away what fills a box is, as the picture says: by its foot on the ground, by its size.

The two are weighed by their variances. Where they disagree (a foot that is hidden, a child,
somebody who crouches) both are believed less.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmedge_ros.core.data_types import Detection, FloatArray
from mmedge_ros.geometry.ground_plane import GroundView
from mmedge_ros.tracking.box_placement import PlacedBoxes

_SQRT2 = math.sqrt(2.0)
# Deviations of the lower edge of a box: px, and share of its height.
_EDGE_PIXELS, _EDGE_SHARE = 2.0, 0.05
# The foot is nearer than the middle of the body, m.
_FOOT = 0.2
# Only boxes as sure as this teach where the ground is. Their errors repeat from picture to
# picture: so many count as one. How tall somebody is never changes.
_LEAST_SCORE, _REPEATED, _REPEATED_SIZES = 0.4, 4.0, 40.0


class RangeReading(NamedTuple):
    """A range (m) and where it is from; its errors that are new, and that last (m); m/s."""

    source: str
    distance: float
    deviation: float
    lasting: float
    speed: float = math.nan
    height_deviation: float = math.nan

    @property
    def total(self) -> float:
        return math.hypot(self.deviation, self.lasting)


class Feet(NamedTuple):
    """Where the rays of the lower edges (N) of boxes meet the ground.

    ``away`` (N,) m on the level to the middle of the body, NaN where they do not; ``rows`` (N, 3)
    how that changes with the plane, and ``variances`` (N,) of the edges, whose rays are wrong by
    ``angles`` (N,) rad. Of bodies whose feet are below the picture it is where their heads are as
    high as people: ``by_head`` (N,).
    """

    away: FloatArray
    rows: FloatArray
    variances: FloatArray
    angles: FloatArray
    by_head: NDArray[np.bool_]


class GroundReadings(NamedTuple):
    """What boxes say of the ground: see `GroundPlane.learn`."""

    rows: FloatArray
    innovations: FloatArray
    variances: FloatArray
    repeats: FloatArray


def feet_of(
    boxes: PlacedBoxes,
    eye: FloatArray,
    ground: GroundView,
    focal: float,
    deviation: float,
) -> Feet:
    """Find where people stand.

    :param eye: the camera, (3,) m
    :param focal: focal length, px
    :param deviation: of the heights of bodies, relative
    """
    pixels = boxes.corners[:, 3] - boxes.corners[:, 1]
    angles = np.hypot(_EDGE_PIXELS, _EDGE_SHARE * pixels) / focal
    away, rows, variances = _met(ground, eye, boxes.feet, angles)
    away = np.where(boxes.cut_below, np.nan, away + _FOOT)
    if boxes.cut_below.any():
        heads, of_heads, edges = _met(ground, eye, boxes.heads, angles, boxes.statures)
        over = np.maximum(eye[2] - ground.heights(eye[None]) - boxes.statures, 0.1)
        statures = (deviation * boxes.statures * heads / over) ** 2
        cut = boxes.cut_below[:, None]
        away = np.where(boxes.cut_below, heads, away)
        rows = np.where(cut, of_heads, rows)
        variances = np.where(boxes.cut_below, edges + statures, variances)
    return Feet(away, rows, variances, angles, boxes.cut_below)


def _met(
    ground: GroundView,
    eye: FloatArray,
    rays: FloatArray,
    angles: FloatArray,
    over: float | FloatArray = 0.0,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return how far away (N,) rays meet the ground, how that changes (N, 3), and its variance.

    :param angles: errors of the rays, (N,) rad
    :param over: how high over the ground they are met, m or (N,)
    """
    distances, changes = ground.met_by(eye, rays, over)
    level = np.hypot(rays[:, 0], rays[:, 1])
    away = distances * level
    above = np.maximum(eye[2] - ground.heights(eye[None]) - over, 0.1)
    return away, changes * level[:, None], (angles * (away**2 + above**2) / above) ** 2


def range_of_box(
    detection: Detection,
    by_height: float,
    is_cut: bool,
    box_deviation: float,
    height_deviation: float,
) -> RangeReading:
    """How far away a detection is by its size, or as a network says.

    :param box_deviation: of the heights of boxes from picture to picture, relative
    :param height_deviation: of the heights of bodies, relative
    """
    distance, deviation = detection.distance, detection.distance_deviation
    if distance > 0.0 and deviation > 0.0:  # NaN is not
        # A network makes the same mistake again where it sees the same again.
        half = deviation / _SQRT2
        # Like bodies of another height, they are wrong by the same factor each time.
        return RangeReading('learned', distance, half, half, height_deviation=deviation / distance)
    doubt = by_height * (2.5 if is_cut else 1.0)
    # How much of a cut body is in the picture says nothing of how tall it is.
    return RangeReading(
        'height',
        by_height,
        doubt * box_deviation,
        doubt * height_deviation,
        height_deviation=math.nan if is_cut else height_deviation,
    )


def with_ground(
    readings: list[RangeReading], boxes: PlacedBoxes, feet: Feet, ground: GroundView
) -> list[RangeReading]:
    """Weigh ranges by the size with those by the ground."""
    level = np.hypot(boxes.rays[:, 0], boxes.rays[:, 1])
    own = np.sqrt(feet.variances / 2.0) / level
    common = np.sqrt(ground.variances(feet.rows)) / level
    by_ground = (feet.away / level).tolist()
    # Half the variance of an edge stays for long, as that of a middle does.
    parts = zip(
        readings, by_ground, own.tolist(), common.tolist(), feet.by_head.tolist(), strict=True
    )
    found = []
    for reading, away, edge, shared, by_head in parts:
        by_plane = RangeReading('ground', away, edge, math.hypot(edge, shared))
        if math.isnan(away) or reading.source == 'learned':
            found.append(reading)
        else:
            # How much of a cut body is in the picture says nothing of how far away it is.
            found.append(by_plane if by_head else _weighed(reading, by_plane))
    return found


def _weighed(size: RangeReading, ground: RangeReading) -> RangeReading:
    total = size.total**2 + ground.total**2
    share = size.total**2 / total
    apart = ground.distance - size.distance
    doubt = math.sqrt(max(apart * apart / total, 1.0))
    distance = size.distance + share * apart
    lasting = doubt * math.hypot((1.0 - share) * size.lasting, share * ground.lasting)
    deviation = doubt * math.hypot((1.0 - share) * size.deviation, share * ground.deviation)
    return RangeReading(
        'ground' if share > 0.5 else 'height',
        distance,
        deviation,
        lasting,
        height_deviation=lasting / distance,
    )


def ground_readings(
    boxes: PlacedBoxes,
    feet: Feet,
    by_size: list[RangeReading],
    by_radar: dict[int, RangeReading],
    eye: FloatArray,
    ground: GroundView,
) -> GroundReadings:
    """Say how high the ground is where people stand, by how far away radar or size says they are.

    A height at a place changes evenly with the plane, also where its ray is almost level.

    :param by_radar: ranges of boxes by their own returns
    :param eye: the camera, (3,) m
    """
    used, aways, deviations, repeated = [], [], [], []
    for i, detection in enumerate(boxes.detections):
        reading = by_radar.get(i, by_size[i])
        is_seen = not (math.isnan(feet.away[i]) or feet.by_head[i])
        if not is_seen or detection.score < _LEAST_SCORE or reading.source == 'learned':
            continue
        level = math.hypot(boxes.rays[i, 0], boxes.rays[i, 1])
        used.append(i)
        aways.append(level * reading.distance - _FOOT)
        deviations.append(level * reading.total)
        repeated.append(_REPEATED if reading.source == 'radar' else _REPEATED_SIZES)
    rays, away = boxes.feet[used], np.array(aways)
    directions = rays / np.maximum(np.hypot(rays[:, 0], rays[:, 1]), 1e-6)[:, None]
    slopes, places = directions[:, 2], eye + directions * away[:, None]
    errors = np.hypot(np.array(deviations) * slopes, feet.angles[used] * away * (1.0 + slopes**2))
    return GroundReadings(
        ground.rows(places), places[:, 2] - ground.heights(places), errors**2, np.array(repeated)
    )
