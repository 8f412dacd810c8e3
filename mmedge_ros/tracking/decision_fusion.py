"""Decision fusion: boxes of any detector and radar returns become measurements in space.

Needs no training. A box with moving returns inside gives bearing, range and radial velocity;
a box without them gives bearing and a range from its height, or the one feature fusion gave it,
with the covariance that deserves; moving clusters outside all boxes are kept as radar-only
measurements.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from statistics import median

import numpy as np
from numpy.typing import NDArray

from mmedge_ros.core.data_types import (
    CAMERA,
    RADAR,
    FloatArray,
    Measurement,
    UnitFeatures,
)
from mmedge_ros.core.parameter import parameter
from mmedge_ros.geometry.ground_plane import GroundView
from mmedge_ros.geometry.rotations import ray_covariances
from mmedge_ros.geometry.sensor_poses import SensorGeometry
from mmedge_ros.tracking.boresight import Boresight
from mmedge_ros.tracking.box_placement import PlacedBoxes, place_boxes
from mmedge_ros.tracking.box_ranges import (
    GroundReadings,
    RangeReading,
    feet_of,
    ground_readings,
    range_of_box,
    with_ground,
)
from mmedge_ros.tracking.return_placement import PlacedReturns, cluster_returns, place_returns

RADAR_ONLY_LABEL = 'moving'
# A body is wider than the bearing error of a cluster nearer than this (m).
_SHORTEST_REACH = 1.0
# Middles of boxes lie beside those of bodies by a pixel and a share of their size. Half of the
# variance stays for long; taken as new in every picture it has to be larger than it is.
_PIXEL_ERROR = 2.0
_SIZE_ERROR = 0.08
# Share of boxes that say nothing of the range.
_NO_MEASURE = 0.2
# Beyond that many deviations, squared, a range is impossible enough.
_MOST_APART = 50.0
# How far returns may lie above or below the middle of a body, m.
_UPRIGHT = 0.4


@dataclass(frozen=True)
class DecisionFusionParameters:
    """What a person looks like to camera and radar."""

    person_height: float = parameter(
        1.68, 'mean height of the people to be tracked; sets the range of a box', 'm', 0.3, 3.0
    )
    # Relative deviation of the heights of bodies, and so of ranges from the height of a box; it
    # stays the same from picture to picture.
    height_deviation: float = 0.15
    # Relative deviation of the heights of boxes from picture to picture.
    box_deviation: float = 0.08
    # Share of boxes with fitting returns inside whose returns they are; the rest are of people who
    # pass before or behind.
    own_returns: float = 0.85
    # Returns lie before the middle of a body by about this (m), and by this more or less (m) from
    # one body to another, which stays for a while.
    body_depth: float = 0.1
    surface_deviation: float = 0.2
    # Returns at least this fast are moving; slower ones are walls (m/s).
    moving_speed: float = 0.1
    # Returns belong to a box when their depth is within this factor of the one its height gives:
    # room for small and tall people, and for boxes that do not hold all of them.
    range_agreement: float = 1.6
    # How far the returns of a person lie from the middle of the body (m).
    range_deviation: float = 0.25
    # How far (m/s) Doppler readings of limbs lie from the speed of the body.
    velocity_deviation: float = 0.35
    # Returns closer than this (m) belong to one moving cluster: a body with its arms.
    link_distance: float = 0.7
    # Bearing errors (rad) of a radar-only cluster: boards have few antennas across, fewer upright.
    azimuth_deviation: float = 0.03
    elevation_deviation: float = 0.1


def fuse_detections(
    camera: UnitFeatures | None,
    scans: Sequence[UnitFeatures],
    geometry: SensorGeometry,
    parameters: DecisionFusionParameters,
    scan_geometries: Sequence[SensorGeometry] | None = None,
    ground: GroundView | None = None,
    on_ground: Callable[[GroundReadings], None] = lambda _: None,
    boresight: Boresight | None = None,
) -> list[Measurement]:
    """Fuse one camera unit with the radar scans that go with it; either may be absent.

    The result refers to the camera's stamp, or to the last scan's where there is no camera.

    :param geometry: the sensors' poses at that instant
    :param scan_geometries: their poses at each scan's stamp, on a drone that moves
    :param ground: what people stand on, where that is known
    :param on_ground: called with what boxes say of it
    :param boresight: learns how far returns lie beside boxes
    """
    at_ns = camera.stamp_ns if camera is not None else max(s.stamp_ns for s in scans)
    returns = place_returns(
        scans, at_ns, geometry, parameters.moving_speed, scan_geometries, ground
    )
    boxes = PlacedBoxes.nothing()
    if camera is not None and geometry.camera is not None:
        boxes = place_boxes(
            camera.detections,
            geometry,
            geometry.camera,
            parameters.person_height,
            camera.sequence,
        )
    seen = by_size = _ranges_by_size(boxes, parameters)
    feet = None
    if ground is not None and geometry.camera is not None and by_size:
        eye = geometry.camera_pose.translation
        feet = feet_of(
            boxes,
            eye,
            ground,
            float(geometry.camera.k[1, 1]),
            parameters.height_deviation,
        )
        seen = with_ground(by_size, boxes, feet, ground)
    if boresight is not None and geometry.camera is not None and camera and not camera.followed:
        boresight.learn(boxes, seen, returns, geometry.camera.k)
    inside = returns.inside(boxes.corners)
    owner = _owners(boxes, seen, returns, inside, parameters)
    echoes = {
        i: _range_of_returns(returns, owner == i, parameters)
        for i in sorted(set(owner.tolist()) - {-1})
    }
    odds = {i: _odds(echo.distance, seen[i], parameters) for i, echo in echoes.items()}
    measurements = _measure_boxes(at_ns, boxes, seen, echoes, odds, geometry, parameters)
    if feet is not None and ground is not None and camera is not None and not camera.followed:
        own = {i: echo for i, echo in echoes.items() if odds[i] > 0.0}
        on_ground(ground_readings(boxes, feet, by_size, own, eye, ground))
    if camera is not None and camera.followed:
        measurements = [_repeated(measurement) for measurement in measurements]
    free = returns.select(np.asarray(~inside.any(axis=0)))
    return measurements + _measure_clusters(at_ns, free, geometry, parameters, ground)


def _ranges_by_size(boxes: PlacedBoxes, p: DecisionFusionParameters) -> list[RangeReading]:
    by_height = zip(boxes.detections, boxes.distances.tolist(), boxes.cut.tolist(), strict=True)
    return [range_of_box(*box, p.box_deviation, p.height_deviation) for box in by_height]


def _repeated(measurement: Measurement) -> Measurement:
    other = measurement.otherwise
    return replace(measurement, repeated=True, otherwise=other and _repeated(other))


def _owners(
    boxes: PlacedBoxes,
    seen: Sequence[RangeReading],
    returns: PlacedReturns,
    inside: NDArray[np.bool_],
    p: DecisionFusionParameters,
) -> NDArray[np.intp]:
    """Give each return to the box whose range agrees best with its own; -1 to none.

    Boxes of people who walk behind each other overlap, and depth keeps them apart.

    :param seen: ranges of the N boxes
    :param inside: (N, M) which of the M returns lie inside which of the N boxes
    """
    if not inside.any():
        return np.full(len(returns.positions), -1, np.intp)
    distances = np.array([reading.distance for reading in seen])
    ratio = np.maximum(returns.distances, 1e-3) / distances[:, None]
    # Of a cut body only a part is in the picture: the person is closer than it seems.
    nearest = p.range_agreement * np.where(boxes.cut, 2.0, 1.0)
    fits = inside & (ratio <= p.range_agreement) & (ratio >= (1.0 / nearest)[:, None])
    disagreement = np.where(fits, np.abs(np.log(ratio)), np.inf)
    owner: NDArray[np.intp] = np.argmin(disagreement, axis=0)
    owner[~fits.any(axis=0)] = -1
    return owner


def _measure_boxes(
    at_ns: int,
    boxes: PlacedBoxes,
    seen: Sequence[RangeReading],
    echoes: Mapping[int, RangeReading],
    odds: Mapping[int, float],
    geometry: SensorGeometry,
    p: DecisionFusionParameters,
) -> list[Measurement]:
    """Place boxes in space: by the radar if returns fit them, and by what the picture says.

    The returns may be another object's. Then what the picture says holds, and the tracker, which
    knows where the object was, weighs one against the other.

    :param seen: ranges of the N boxes by the picture
    :param echoes: those by returns, of some of them, each with its ``odds``
    """
    count = len(boxes.detections)
    places = [*range(count), *echoes]
    placed = _at_ranges(
        at_ns,
        boxes,
        places,
        [*seen, *echoes.values()],
        [*[0.0] * count, *odds.values()],
        geometry,
        p,
    )
    measurements = placed[:count]
    for i, by_radar in zip(echoes, placed[count:], strict=True):
        measurements[i] = by_radar
    return measurements


def _range_of_returns(
    returns: PlacedReturns,
    own: NDArray[np.bool_],
    p: DecisionFusionParameters,
) -> RangeReading:
    """How far away a body is by those returns that are taken for its own."""
    distances, velocities = returns.distances[own], returns.velocities[own]
    core = _densest(distances, 2 * p.range_deviation)
    distance = median(distances[core].tolist()) + p.body_depth
    speed = median(velocities[core].tolist())
    return RangeReading('radar', distance, p.range_deviation, p.surface_deviation, speed)


def _odds(distance: float, seen: RangeReading, p: DecisionFusionParameters) -> float:
    """Logarithm of the odds that returns at that distance are the object's own.

    Those of others lie anywhere between the limits of agreement. So may the object's own where
    the box is no measure of it: of children, and of bodies that are hidden in part.
    """
    window = (p.range_agreement - 1.0 / p.range_agreement) * seen.distance
    apart = (distance - seen.distance) / seen.total
    density = math.exp(-0.5 * min(apart**2, _MOST_APART)) / (math.sqrt(2.0 * math.pi) * seen.total)
    fit = (1.0 - _NO_MEASURE) * window * density + _NO_MEASURE
    return math.log(p.own_returns / (1.0 - p.own_returns) * fit)


def _at_ranges(
    at_ns: int,
    boxes: PlacedBoxes,
    places: Sequence[int],
    readings: Sequence[RangeReading],
    odds: Sequence[float],
    geometry: SensorGeometry,
    p: DecisionFusionParameters,
) -> list[Measurement]:
    """Place boxes, given by where they are in ``boxes``, at the ranges read for each.

    All boxes come first in their order, each at its range by the picture; after them those
    with returns again: what is read by the radar has the other for its ``otherwise``.
    """
    camera = geometry.camera
    if not places:
        return []
    assert camera is not None  # boxes are only placed with a calibrated camera
    rays, corners = boxes.rays[places], boxes.corners[places]
    distances = np.array([reading.distance for reading in readings])
    sizes = np.hypot(_PIXEL_ERROR, _SIZE_ERROR * (corners[:, 2:] - corners[:, :2]))
    across, along = (distances[:, None] * sizes / (camera.k[0, 0], camera.k[1, 1])).T
    radial = np.array([reading.total for reading in readings])
    down = geometry.camera_pose.rotation[:, 1]
    covariances = ray_covariances(rays, down, radial, across, along)
    positions = geometry.camera_pose.translation + rays * distances[:, None]
    depths = (distances * boxes.cosines[places]).tolist()
    lasting = rays * np.array([reading.lasting for reading in readings])[:, None]
    lasting = lasting[:, :, None] * lasting[:, None]
    measurements: list[Measurement] = []
    for i, (place, reading) in enumerate(zip(places, readings, strict=True)):
        detection = boxes.detections[place]
        by_radar = reading.source == 'radar'
        measurements.append(
            Measurement(
                stamp_ns=at_ns,
                label=detection.label,
                score=detection.score,
                box=detection.box,
                position=positions[i],
                covariance=covariances[i],
                radial_velocity=reading.speed,
                radial_variance=p.velocity_deviation**2,
                origin=geometry.radar_pose.translation,
                seen_by=(CAMERA, RADAR) if by_radar else (CAMERA,),
                range_from=reading.source,
                depth=depths[i],
                lasting={RADAR if by_radar else CAMERA: lasting[i]},
                otherwise=measurements[place] if by_radar else None,
                odds=odds[i],
                height_deviation=reading.height_deviation,
                detection=boxes.names[place],
            )
        )
    return measurements


def _densest(distances: FloatArray, width: float) -> NDArray[np.bool_]:
    """Mark the returns around the distance that has most others within ``width`` metres."""
    if np.ptp(distances) <= width:  # as almost always: all lie around each
        return np.ones(len(distances), bool)
    near = np.abs(distances[:, None] - distances[None]) <= width
    core: NDArray[np.bool_] = near[int(np.argmax(near.sum(axis=1)))]
    return core


def _measure_clusters(
    at_ns: int,
    returns: PlacedReturns,
    geometry: SensorGeometry,
    p: DecisionFusionParameters,
    ground: GroundView | None,
) -> list[Measurement]:
    """Turn moving clusters that no box explains into radar-only measurements."""
    clusters = cluster_returns(returns.positions, returns.velocities, p.link_distance)
    if not clusters:
        return []
    origin, rotation = geometry.radar_pose.translation, geometry.radar_pose.rotation
    sizes = [len(members) for members in clusters]
    begins = [0, *accumulate(sizes[:-1])]
    together = returns.positions[np.concatenate(clusters)]
    positions = np.add.reduceat(together, begins, axis=0) / np.array(sizes)[:, None]
    offsets = positions - origin
    distances = np.sqrt(np.einsum('ij,ij->i', offsets, offsets))
    reach = np.maximum(distances, _SHORTEST_REACH)
    # At the sensor itself there is no direction: forward is as good as any.
    rays = np.where(
        (distances > 1e-3)[:, None],
        offsets / np.maximum(distances, 1e-3)[:, None],
        rotation[:, 0],
    )
    upright = p.elevation_deviation * reach
    if ground is not None:
        pinned = np.logical_and.reduceat(returns.on_ground[np.concatenate(clusters)], begins)
        known = np.sqrt(ground.variances(ground.rows(positions)) + _UPRIGHT**2)
        upright = np.where(pinned, known, upright)
    covariances = ray_covariances(
        rays,
        rotation[:, 2],
        np.full(len(clusters), p.range_deviation),
        p.azimuth_deviation * reach,
        upright,
    )
    return [
        Measurement(
            stamp_ns=at_ns,
            label=RADAR_ONLY_LABEL,
            score=min(1.0, len(members) / 10.0),
            box=None,
            position=positions[i],
            covariance=covariances[i],
            radial_velocity=median(returns.velocities[members].tolist()),
            radial_variance=p.velocity_deviation**2,
            origin=origin,
            seen_by=(RADAR,),
            range_from='cluster',
        )
        for i, members in enumerate(clusters)
    ]
