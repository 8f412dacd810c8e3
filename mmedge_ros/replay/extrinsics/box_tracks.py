"""Boxes of the same person in successive pictures, linked by their overlap."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from mmedge_ros.core.data_types import Detection, FloatArray
from mmedge_ros.geometry.sensor_poses import SensorGeometry
from mmedge_ros.replay.extrinsics.sightings import Sightings
from mmedge_ros.tracking.box_placement import place_boxes
from mmedge_ros.tracking.data_association import assign, intersection_over_union
from mmedge_ros.tracking.decision_fusion import DecisionFusionParameters

# Less certain detections are often none, and their boxes jitter.
SCORE = 0.25
_LABEL = 'person'
_LEAST_OVERLAP = 0.3
# After a longer pause (s) it may be another person, and between is not known.
_LONGEST_PAUSE = 0.25
_FEWEST = 5
_BORDER = 2.0
# Edges of boxes count from the corner of the first pixel, rays from its middle.
_PIXEL_MIDDLE = 0.5


@dataclass(frozen=True, eq=False)
class BoxTrack:
    """One person in successive pictures at ``times`` (N,) s.

    ``rays`` (N, 3) are unit vectors in the optical frame towards the middles of the boxes,
    ``distances`` (N,) m by the boxes' heights, ``cut`` (N,) marks boxes at the border.
    """

    times: FloatArray
    rays: FloatArray
    distances: FloatArray
    cut: NDArray[np.bool_]


@dataclass
class _Growing:
    """The newest box's corners; rows of time, middle x and y, distance, and 1 where it is cut."""

    corners: FloatArray
    rows: list[tuple[float, ...]] = field(default_factory=list)


def people(detections: tuple[Detection, ...]) -> list[Detection]:
    """Return the detections that are surely people."""
    return [d for d in detections if d.label == _LABEL and d.score >= SCORE]


def link_boxes(sightings: Sightings, geometry: SensorGeometry) -> list[BoxTrack]:
    """Link the boxes of people over time; those seen in fewer than five pictures are left out."""
    ended: list[_Growing] = []
    growing: list[_Growing] = []
    height = DecisionFusionParameters().person_height
    newest = -np.inf
    for picture in sightings.pictures:
        now = sightings.seconds(picture.stamp_ns)
        if now <= newest:
            continue  # two pictures of one stamp cannot both be right
        newest = now
        at = sightings.geometry_at(picture.stamp_ns, geometry)
        boxes = place_boxes(people(picture.detections), at, sightings.camera, height)
        ended += [one for one in growing if now - one.rows[-1][0] > _LONGEST_PAUSE]
        growing = [one for one in growing if now - one.rows[-1][0] <= _LONGEST_PAUSE]
        owners = _owners(growing, boxes.corners)
        for n, corners in enumerate(boxes.corners):
            one = owners.get(n)
            if one is None:
                one = _Growing(corners)
                growing.append(one)
            one.corners = corners
            middle = (corners[:2] + corners[2:]) / 2.0 - _PIXEL_MIDDLE
            aside = corners[0] <= _BORDER or corners[2] >= sightings.camera.width - _BORDER
            one.rows.append((now, *middle, boxes.distances[n], boxes.cut[n] or aside))
    tables = [np.array(one.rows) for one in ended + growing if len(one.rows) >= _FEWEST]
    return [
        BoxTrack(rows[:, 0], sightings.camera.bearing(rows[:, 1:3]), rows[:, 3], rows[:, 4] > 0.0)
        for rows in tables
    ]


def _owners(growing: list[_Growing], corners: FloatArray) -> dict[int, _Growing]:
    """Say which boxes (N, 4) go on with which of the growing tracks."""
    if not growing or not len(corners):
        return {}
    overlap = intersection_over_union(np.array([one.corners for one in growing]), corners)
    chosen = assign(np.where(overlap >= _LEAST_OVERLAP, 1.0 - overlap, np.inf))
    return {box: growing[track] for track, box in chosen.pairs}
