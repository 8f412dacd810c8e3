"""Decision fusion: boxes of any detector and radar returns become measurements in space.

Needs no training. A box with moving returns inside gives bearing, range and radial velocity;
a box without them gives bearing and a range from its height, with the covariance that
deserves; moving clusters outside all boxes are kept as radar-only measurements.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmedge_ros.data_types import (
    CAMERA,
    NS_PER_S,
    RADAR,
    Box,
    Detection,
    FloatArray,
    Measurement,
    UnitFeatures,
)
from mmedge_ros.fusion.clustering import cluster_returns
from mmedge_ros.fusion.geometry import SensorGeometry
from mmedge_ros.fusion.projection import CameraModel
from mmedge_ros.parameter import parameter

RADAR_ONLY_LABEL = 'moving'


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


class PlacedReturns(NamedTuple):
    """Moving returns of one or more scans, brought to one instant.

    ``positions`` (N, 3) in the tracking frame, ``depths`` (N,) along the optical axis,
    ``pixels`` (N, 2) with ``in_view`` (N,), ``velocities`` (N,).
    """

    positions: FloatArray
    velocities: FloatArray
    depths: FloatArray
    pixels: FloatArray
    in_view: NDArray[np.bool_]


def fuse_detections(
    camera: UnitFeatures | None,
    scans: Sequence[UnitFeatures],
    geometry: SensorGeometry,
    parameters: DecisionFusionParameters,
) -> list[Measurement]:
    """Fuse one camera unit with the radar scans that go with it; either may be absent.

    The result refers to the camera's stamp, or to the last scan's where there is no camera.
    """
    at_ns = camera.stamp_ns if camera is not None else max(s.stamp_ns for s in scans)
    returns = place_returns(scans, at_ns, geometry, parameters)
    boxes: tuple[Detection, ...] = ()
    if camera is not None and geometry.camera is not None:
        boxes = tuple(d for d in camera.detections if d.box.width >= 1 and d.box.height >= 2)
    bearings = _bearings(boxes, geometry.camera)
    # A poor calibration may have no ray for the edge of the picture.
    usable = np.flatnonzero(np.isfinite(bearings).all(axis=1))
    boxes, bearings = tuple(boxes[i] for i in usable), bearings[usable]
    owner = _owners(boxes, returns, geometry, parameters)
    measurements = [
        _measure_box(at_ns, box, ray, _select(returns, owner == i), geometry, parameters)
        for i, (box, ray) in enumerate(zip(boxes, bearings, strict=True))
    ]
    free = _select(returns, ~_inside_any(boxes, returns))
    return measurements + _measure_clusters(at_ns, free, geometry, parameters)


def place_returns(
    scans: Sequence[UnitFeatures],
    at_ns: int,
    geometry: SensorGeometry,
    parameters: DecisionFusionParameters,
) -> PlacedReturns:
    """Keep the moving returns and move each along its line of sight to the instant ``at_ns``."""
    parts = []
    for scan in scans:
        moving = scan.returns[np.abs(scan.returns[:, 3]) >= parameters.moving_speed]
        points = moving[:, :3].astype(np.float64)
        ranges = np.maximum(np.linalg.norm(points, axis=1, keepdims=True), 1e-6)
        dt = (at_ns - scan.stamp_ns) / NS_PER_S
        parts.append((points * (1.0 + moving[:, 3:4] * dt / ranges), moving[:, 3]))
    points = np.concatenate([p for p, _ in parts]) if parts else np.zeros((0, 3))
    speeds = np.concatenate([v for _, v in parts]) if parts else np.zeros(0)
    positions = geometry.radar_pose.apply(points)
    optical = geometry.camera_pose.inverse().apply(positions)
    if geometry.camera is None:
        pixels, in_view = np.zeros((len(points), 2)), np.zeros(len(points), bool)
    else:
        pixels, in_view = geometry.camera.project(optical)
    return PlacedReturns(positions, speeds.astype(np.float64), optical[:, 2], pixels, in_view)


def height_depth(box: Box, camera: CameraModel, person_height: float) -> float:
    """Depth (m) at which a person of that height fills the box."""
    return float(camera.k[1, 1]) * person_height / max(box.height, 1.0)


def _select(returns: PlacedReturns, mask: NDArray[np.bool_]) -> PlacedReturns:
    return PlacedReturns(
        returns.positions[mask],
        returns.velocities[mask],
        returns.depths[mask],
        returns.pixels[mask],
        returns.in_view[mask],
    )


def _inside(box: Box, returns: PlacedReturns) -> NDArray[np.bool_]:
    """Which returns lie strictly inside a box."""
    x, y = returns.pixels[:, 0], returns.pixels[:, 1]
    inside: NDArray[np.bool_] = (
        returns.in_view & (x > box.x0) & (x < box.x1) & (y > box.y0) & (y < box.y1)
    )
    return inside


def _inside_any(boxes: Sequence[Detection], returns: PlacedReturns) -> NDArray[np.bool_]:
    found = np.zeros(len(returns.positions), bool)
    for detection in boxes:
        found |= _inside(detection.box, returns)
    return found


def _owners(
    boxes: Sequence[Detection],
    returns: PlacedReturns,
    geometry: SensorGeometry,
    p: DecisionFusionParameters,
) -> NDArray[np.intp]:
    """Give each return to the box whose height agrees best with its depth; -1 to none.

    Boxes of people who walk behind each other overlap, and depth is what tells them apart.
    """
    count = len(returns.positions)
    if not boxes or not count or geometry.camera is None:
        return np.full(count, -1, np.intp)
    disagreement = np.full((len(boxes), count), np.inf)
    for i, detection in enumerate(boxes):
        expected = height_depth(detection.box, geometry.camera, p.person_height)
        ratio = np.maximum(returns.depths, 1e-3) / expected
        nearest = p.range_agreement
        if _is_cut(detection.box, geometry.camera):
            nearest *= 2.0  # only a part of the body is in the picture: the person is closer
        fits = _inside(detection.box, returns)
        fits &= (ratio <= p.range_agreement) & (ratio >= 1.0 / nearest)
        disagreement[i, fits] = np.abs(np.log(ratio[fits]))
    owner: NDArray[np.intp] = np.argmin(disagreement, axis=0)
    owner[~np.isfinite(np.min(disagreement, axis=0))] = -1
    return owner


def _bearings(boxes: Sequence[Detection], camera: CameraModel | None) -> FloatArray:
    """Unit vectors (N, 3) through the centres of boxes; at once, for speed."""
    if camera is None or not boxes:
        return np.zeros((0, 3))
    corners = np.array([detection.box for detection in boxes])
    return camera.bearing((corners[:, :2] + corners[:, 2:]) / 2.0)


def _is_cut(box: Box, camera: CameraModel) -> bool:
    """Whether the box touches the upper or lower edge of the picture."""
    return box.y0 <= 2.0 or box.y1 >= camera.height - 2.0


def _measure_box(
    at_ns: int,
    detection: Detection,
    bearing: FloatArray,
    inside: PlacedReturns,
    geometry: SensorGeometry,
    p: DecisionFusionParameters,
) -> Measurement:
    """Place a box in space, by the radar if returns fit it, else by its height."""
    camera, box = geometry.camera, detection.box
    assert camera is not None  # boxes are only fused with a calibrated camera
    depth = height_depth(box, camera, p.person_height)
    deviation = depth * p.height_deviation * (2.5 if _is_cut(box, camera) else 1.0)
    speed, range_from = float('nan'), 'height'
    seen_by: tuple[str, ...] = (CAMERA,)
    if len(inside.positions):
        core = _densest(inside.depths, 2 * p.range_deviation)
        depth = float(np.median(inside.depths[core]))
        speed = float(np.median(inside.velocities[core]))
        deviation, range_from, seen_by = p.range_deviation, 'radar', (CAMERA, RADAR)
    distance = depth / max(float(bearing[2]), 0.1)
    across = max(0.08 * box.width / float(camera.k[0, 0]), 0.004) * distance
    along = max(0.06 * box.height / float(camera.k[1, 1]), 0.004) * distance
    rotation = geometry.camera_pose.rotation
    covariance = _spread(rotation @ bearing, rotation[:, 1], deviation, across, along)
    return Measurement(
        at_ns,
        detection.label,
        detection.score,
        box,
        geometry.camera_pose.apply((bearing * distance)[None])[0],
        covariance,
        speed,
        p.velocity_deviation**2,
        geometry.radar_pose.translation,
        seen_by,
        range_from,
        depth,
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
    side /= max(float(np.linalg.norm(side)), 1e-9)
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
        ray = position - origin
        distance = max(float(np.linalg.norm(ray)), 1e-6)
        covariance = _spread(
            ray / distance,
            geometry.radar_pose.rotation[:, 2],
            p.range_deviation,
            p.azimuth_deviation * distance,
            p.elevation_deviation * distance,
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
