"""The records of a flight memory: items are stored, moments are found.

An *item* is one remembered view: an object of a track in one picture, or a whole picture where the
scene changed (a *key frame*). A *moment* is what a searcher gets: the items of one track, or one
key frame. Places are in the frame of the tracks (m), NaN where they are not known.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmedge_ros.core.data_types import Box, FloatArray

Vectors = NDArray[np.float32]

# Speeds (m/s) over ground: a track is not known better than the first, people walk up to the
# second. Approaching and leaving are meant of the distance to the drone.
STILL_BELOW, RUNNING_FROM, APPROACHING_FROM = 0.3, 2.2, 0.5
# Mean brightness (0..1) of pictures. Of 34 simulated test flights, night and lamps were at most
# at 0.167, dusk between 0.134 and 0.285, day and fog at least at 0.285.
NIGHT_BELOW, DAY_FROM = 0.15, 0.285
# Drones hold their place within this (m/s), also upwards.
_HOVERING_BELOW = 0.5


class ViewKind(IntEnum):
    """What an item shows; the values are those of the store."""

    TRACK = 0
    KEY_FRAME = 1


class FlightPhase(IntEnum):
    """What the drone was doing; the values are those of the store."""

    UNKNOWN = 0
    HOVERING = 1
    TRAVELLING = 2
    CLIMBING = 3
    DESCENDING = 4


class Light(IntEnum):
    """How bright it was."""

    UNKNOWN = 0
    NIGHT = 1
    DUSK = 2
    DAY = 3


class Motion(IntEnum):
    """How an object moved; approaching and leaving are walking or running as well."""

    STILL = 1
    WALKING = 2
    RUNNING = 3
    MOVING = 4
    APPROACHING = 5
    LEAVING = 6


class Spot(NamedTuple):
    """A place (m) or a velocity (m/s) on the map; z up, NaN where it is not known."""

    x: float = math.nan
    y: float = math.nan
    z: float = math.nan


class DronePose(NamedTuple):
    """Where the drone was (m) and where it headed (rad, from x towards y); NaN: not known."""

    x: float = math.nan
    y: float = math.nan
    z: float = math.nan
    yaw: float = math.nan


UNKNOWN_SPOT, UNKNOWN_POSE = Spot(), DronePose()


def _no_vector() -> Vectors:
    return np.zeros(0, np.float32)


@dataclass(frozen=True, slots=True, eq=False)
class MemoryItem:
    """One remembered view.

    ``track_id`` is 0 for key frames, whose ``label`` is ''. ``box`` in px of a picture of
    ``image_size`` (width, height). ``score`` is the detector's. ``size`` is the height of the box
    in px, ``sharpness`` that of `Appearance`, ``visibility`` the share that nothing hides, and
    ``brightness`` the mean of the picture in 0..1; NaN where they are not known. ``vector``
    (D,) is the embedding, made with so many ``exit`` parts of the encoder at ``level``; of
    ``manifest`` (digest of the bundle). ``tap`` (T,) is the mean of the encoder's feature map
    there: words have no place in it, and examples are compared by it. ``thumbnail`` is a JPEG, or
    b''. ``bag_offset_ns`` counts from the begin of the recording; -1: none.
    """

    kind: ViewKind
    track_id: int
    label: str
    stamp_ns: int
    box: Box
    image_size: tuple[int, int]
    score: float
    position: Spot = UNKNOWN_SPOT
    velocity: Spot = UNKNOWN_SPOT
    drone: DronePose = UNKNOWN_POSE
    phase: FlightPhase = FlightPhase.UNKNOWN
    brightness: float = math.nan
    size: float = math.nan
    sharpness: float = math.nan
    visibility: float = math.nan
    bag_offset_ns: int = -1
    level: str = ''
    exit: int = 0
    manifest: str = ''
    vector: Vectors = field(default_factory=_no_vector)
    tap: Vectors = field(default_factory=_no_vector)
    thumbnail: bytes = b''


class StoredItem(NamedTuple):
    """An item with its number in a store.

    ``run`` tells apart what was kept before and after a program began anew, with tracks numbered
    from 1 again.
    """

    id: int
    run: int
    item: MemoryItem


@dataclass(frozen=True, slots=True, eq=False)
class Moment:
    """A search result: the views of one track, or one key frame, of one flight.

    ``views`` are those that the query asks for, in the order of time; ``best`` is the place in
    them of the one that fits best. Scores compare moments of one query, and nothing else.
    ``beside`` is the other object where the query asks for one, as in "near a car".
    """

    flight: str
    score: float
    views: tuple[StoredItem, ...]
    best: int = 0
    beside: StoredItem | None = None

    @property
    def shown(self) -> StoredItem:
        """The view that fits best."""
        return self.views[self.best]

    @property
    def label(self) -> str:
        return self.shown.item.label

    @property
    def begin_ns(self) -> int:
        return self.views[0].item.stamp_ns

    @property
    def end_ns(self) -> int:
        return self.views[-1].item.stamp_ns


def phase_of(velocity: Spot) -> FlightPhase:
    """Return the phase of flight of a drone with this velocity."""
    if not all(map(math.isfinite, velocity)):
        return FlightPhase.UNKNOWN
    if math.hypot(velocity.x, velocity.y) < abs(velocity.z) and abs(velocity.z) > _HOVERING_BELOW:
        return FlightPhase.CLIMBING if velocity.z > 0.0 else FlightPhase.DESCENDING
    still = math.hypot(*velocity) < _HOVERING_BELOW
    return FlightPhase.HOVERING if still else FlightPhase.TRAVELLING


def lights_of(brightness: FloatArray) -> NDArray[np.int64]:
    """Return the `Light` (N,) of pictures by their brightness (N,) in 0..1."""
    lights = np.where(brightness < NIGHT_BELOW, int(Light.NIGHT), int(Light.DUSK))
    lights[brightness >= DAY_FROM] = Light.DAY
    lights[~np.isfinite(brightness)] = Light.UNKNOWN
    return lights


def moves(
    motion: Motion,
    positions: FloatArray,
    velocities: FloatArray,
    drones: FloatArray,
) -> NDArray[np.bool_]:
    """Mark the objects (N,) with a motion; those whose motion is not known are not marked.

    :param positions: (N, 3) m
    :param velocities: (N, 3) m/s
    :param drones: (N, 4), see `DronePose`
    """
    speeds: FloatArray = np.hypot(velocities[:, 0], velocities[:, 1])
    if motion == Motion.STILL:
        return speeds < STILL_BELOW
    if motion == Motion.WALKING:
        return (speeds >= STILL_BELOW) & (speeds < RUNNING_FROM)
    if motion == Motion.RUNNING:
        return speeds >= RUNNING_FROM
    if motion == Motion.MOVING:
        return speeds >= STILL_BELOW
    away = positions[:, :2] - drones[:, :2]
    length = np.maximum(np.hypot(away[:, 0], away[:, 1]), 1e-9)
    receding: FloatArray = (velocities[:, :2] * away).sum(axis=1) / length
    sign = -1.0 if motion == Motion.APPROACHING else 1.0
    return sign * receding >= APPROACHING_FROM
