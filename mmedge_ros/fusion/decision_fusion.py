"""Decision fusion: boxes of any detector and radar returns become measurements in space.

Needs no training. A box with moving returns inside gives bearing, range and radial velocity;
a box without them gives bearing and a range from its height, with the covariance that
deserves; moving clusters outside all boxes are kept as radar-only measurements.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mmedge_ros.data_types import (
    CAMERA,
    RADAR,
    Detection,
    FloatArray,
    Measurement,
    UnitFeatures,
)
from mmedge_ros.fusion.box_placement import PlacedBox, PlacedBoxes, place_boxes
from mmedge_ros.fusion.clustering import cluster_returns
from mmedge_ros.fusion.geometry import SensorGeometry
from mmedge_ros.fusion.return_placement import PlacedReturns, place_returns
from mmedge_ros.parameter import parameter

RADAR_ONLY_LABEL = 'moving'
# A body is wider than the bearing error of a cluster nearer than this (m).
_SHORTEST_REACH = 1.0


@dataclass(frozen=True)
class DecisionFusionParameters:
    """What a person looks like to camera and radar."""

    person_height: float = parameter(
        1.68, 'mean height of the people to be tracked; sets the range of a box', 'm', 0.3, 3.0
    )
    height_deviation: float = parameter(
        0.2,
        'relative standard deviation of a range from box height; wider than bodies differ, '
        'because the error stays the same from picture to picture',
        '',
        0.02,
        1.0,
    )
    moving_speed: float = parameter(
        0.1, 'returns at least this fast are moving; slower ones are walls', 'm/s', 0.0, 5.0
    )
    range_agreement: float = parameter(
        1.6,
        'returns belong to a box when their depth is within this factor of the one its height '
        'gives',
        '',
        1.05,
        10.0,
    )
    range_deviation: float = parameter(
        0.25, 'how far the returns of a person lie from the middle of the body', 'm', 0.02, 5.0
    )
    velocity_deviation: float = parameter(
        0.35, 'how far Doppler readings lie from the speed of the body', 'm/s', 0.02, 5.0
    )
    link_distance: float = parameter(
        0.7, 'returns closer than this belong to one moving cluster', 'm', 0.05, 5.0
    )
    cluster_size: int = parameter(2, 'smaller clusters are taken for noise', '', 1, 100)
    azimuth_deviation: float = parameter(
        0.08, 'bearing error of a radar-only cluster', 'rad', 0.005, 1.0
    )
    elevation_deviation: float = parameter(
        0.2, 'elevation error of a radar-only cluster', 'rad', 0.005, 1.5
    )


def fuse_detections(
    camera: UnitFeatures | None,
    scans: Sequence[UnitFeatures],
    geometry: SensorGeometry,
    parameters: DecisionFusionParameters,
    scan_geometries: Sequence[SensorGeometry] | None = None,
) -> list[Measurement]:
    """Fuse one camera unit with the radar scans that go with it; either may be absent.

    The result refers to the camera's stamp, or to the last scan's where there is no camera.

    :param geometry: the sensors' poses at that instant
    :param scan_geometries: their poses at each scan's stamp, on a drone that moves
    """
    at_ns = camera.stamp_ns if camera is not None else max(s.stamp_ns for s in scans)
    returns = place_returns(scans, at_ns, geometry, parameters.moving_speed, scan_geometries)
    boxes = PlacedBoxes.nothing()
    if camera is not None and geometry.camera is not None:
        boxes = place_boxes(camera.detections, geometry, geometry.camera, parameters.person_height)
    owner = _owners(boxes, returns, parameters)
    measurements = [
        _measure_box(at_ns, boxes.at(i), returns.select(owner == i), geometry, parameters)
        for i in range(len(boxes.detections))
    ]
    free = returns.select(~_inside_any(boxes.detections, returns))
    return measurements + _measure_clusters(at_ns, free, geometry, parameters)


def _inside_any(boxes: Sequence[Detection], returns: PlacedReturns) -> NDArray[np.bool_]:
    found = np.zeros(len(returns.positions), bool)
    for detection in boxes:
        found |= returns.inside(detection.box)
    return found


def _owners(
    boxes: PlacedBoxes, returns: PlacedReturns, p: DecisionFusionParameters
) -> NDArray[np.intp]:
    """Give each return to the box whose height agrees best with its depth; -1 to none.

    Boxes of people who walk behind each other overlap, and depth is what tells them apart.
    """
    count = len(returns.positions)
    if not boxes.detections or not count:
        return np.full(count, -1, np.intp)
    disagreement = np.full((len(boxes.detections), count), np.inf)
    for i, detection in enumerate(boxes.detections):
        expected = float(boxes.distances[i] * boxes.cosines[i])
        ratio = np.maximum(returns.depths, 1e-3) / expected
        # Of a cut body only a part is in the picture: the person is closer than it seems.
        nearest = p.range_agreement * (2.0 if boxes.cut[i] else 1.0)
        fits = returns.inside(detection.box)
        fits &= (ratio <= p.range_agreement) & (ratio >= 1.0 / nearest)
        disagreement[i, fits] = np.abs(np.log(ratio[fits]))
    owner: NDArray[np.intp] = np.argmin(disagreement, axis=0)
    owner[~np.isfinite(np.min(disagreement, axis=0))] = -1
    return owner


def _measure_box(
    at_ns: int,
    placed: PlacedBox,
    inside: PlacedReturns,
    geometry: SensorGeometry,
    p: DecisionFusionParameters,
) -> Measurement:
    """Place a box in space, by the radar if returns fit it, else by its height."""
    camera, detection = geometry.camera, placed.detection
    assert camera is not None  # boxes are only placed with a calibrated camera
    distance, box = placed.distance, detection.box
    deviation = distance * p.height_deviation * (2.5 if placed.is_cut else 1.0)
    speed, range_from = float('nan'), 'height'
    seen_by: tuple[str, ...] = (CAMERA,)
    if len(inside.positions):
        core = _densest(inside.depths, 2 * p.range_deviation)
        distance = float(np.median(inside.depths[core])) / placed.depth_per_distance
        speed = float(np.median(inside.velocities[core]))
        deviation, range_from, seen_by = p.range_deviation, 'radar', (CAMERA, RADAR)
    across = max(0.08 * box.width / float(camera.k[0, 0]), 0.004) * distance
    along = max(0.06 * box.height / float(camera.k[1, 1]), 0.004) * distance
    down = geometry.camera_pose.rotation[:, 1]
    return Measurement(
        at_ns,
        detection.label,
        detection.score,
        box,
        geometry.camera_pose.translation + placed.ray * distance,
        _spread(placed.ray, down, deviation, across, along),
        speed,
        p.velocity_deviation**2,
        geometry.radar_pose.translation,
        seen_by,
        range_from,
        distance * placed.depth_per_distance,
    )


def _densest(depths: FloatArray, width: float) -> NDArray[np.bool_]:
    """Mark the returns around the depth that has most others within ``width`` metres."""
    near = np.abs(depths[:, None] - depths[None]) <= width
    core: NDArray[np.bool_] = near[int(np.argmax(near.sum(axis=1)))]
    return core


def _spread(
    ray: FloatArray, down: FloatArray, radial: float, across: float, along: float
) -> FloatArray:
    """Covariance (3, 3) with deviations (m) along a ray, across it, and up and down."""
    side = _cross(down, ray)
    length = float(np.linalg.norm(side))
    if length < 1e-6:
        # Straight up or down no direction stands out.
        return max(radial, across, along) ** 2 * np.eye(3)
    side /= length
    axes = np.column_stack([ray, side, _cross(ray, side)])
    covariance: FloatArray = (axes * np.square([radial, across, along])) @ axes.T
    return covariance


def _cross(first: FloatArray, second: FloatArray) -> FloatArray:
    """Cross product of two vectors (3,); numpy's own takes six times as long for one pair."""
    a, b, c = first.tolist()
    x, y, z = second.tolist()
    return np.array([b * z - c * y, c * x - a * z, a * y - b * x])


def _measure_clusters(
    at_ns: int, returns: PlacedReturns, geometry: SensorGeometry, p: DecisionFusionParameters
) -> list[Measurement]:
    """Turn moving clusters that no box explains into radar-only measurements."""
    origin = geometry.radar_pose.translation
    found = []
    for members in cluster_returns(
        returns.positions, returns.velocities, p.link_distance, p.cluster_size
    ):
        position = returns.positions[members].mean(axis=0)
        offset = position - origin
        distance = float(np.linalg.norm(offset))
        # At the sensor itself there is no direction: forward is as good as any.
        forward = geometry.radar_pose.rotation[:, 0]
        reach = max(distance, _SHORTEST_REACH)
        covariance = _spread(
            offset / distance if distance > 1e-3 else forward,
            geometry.radar_pose.rotation[:, 2],
            p.range_deviation,
            p.azimuth_deviation * reach,
            p.elevation_deviation * reach,
        )
        found.append(
            Measurement(
                at_ns,
                RADAR_ONLY_LABEL,
                min(1.0, len(members) / 10.0),
                None,
                position,
                covariance,
                float(np.median(returns.velocities[members])),
                p.velocity_deviation**2,
                origin,
                (RADAR,),
                'cluster',
            )
        )
    return found
