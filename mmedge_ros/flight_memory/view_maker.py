"""Makes items of pictures: which views are kept, and what is cut out and noted of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from mmedge_ros.data_types import Box, Detection, FloatArray, Track
from mmedge_ros.encoding import EncodingError
from mmedge_ros.encoding.crops import cut
from mmedge_ros.encoding.detector import Image
from mmedge_ros.encoding.unit_encoder import appearance_of
from mmedge_ros.flight_memory.moment import (
    UNKNOWN_POSE,
    DronePose,
    MemoryItem,
    Spot,
    ViewKind,
    phase_of,
)
from mmedge_ros.flight_memory.thumbnail import key_frame_thumbnail, object_thumbnail
from mmedge_ros.flight_memory.view_choice import (
    KeyFrames,
    TrackViews,
    ViewQuality,
    scene_vector,
    visible_share,
)
from mmedge_ros.fusion.box_placement import place_boxes
from mmedge_ros.geometry.ego_motion import EgoState
from mmedge_ros.geometry.sensor_poses import SensorGeometry

# Of an object without a track, m: what the fusion takes people to be.
_BODY_HEIGHT = 1.68
# Smaller objects (px) show nothing that can be told in words.
LEAST_HEIGHT = 14.0


class ChosenView(NamedTuple):
    """An item without a vector yet, and the stamp of the view that it displaces; None: none.

    ``camera_frame`` is the frame of the camera that took it, where that is not known elsewhere.
    """

    item: MemoryItem
    displaced_ns: int | None = None
    camera_frame: str = ''


class SeenObject(NamedTuple):
    """An object in a picture; ``number`` is that of its track."""

    number: int
    label: str
    box: Box
    score: float
    position: Spot = Spot()
    velocity: Spot = Spot()


class ViewMaker:
    """Chooses views of the objects of pictures, and whole pictures of new scenes."""

    def __init__(self) -> None:
        self._views, self._frames = TrackViews(), KeyFrames()

    def object(
        self, picture: Image, about: MemoryItem, seen: SeenObject, boxes: Sequence[Box]
    ) -> ChosenView | None:
        """Return the view of an object if it is worth keeping, else None.

        :param about: what is true of all views of the picture, see `about_picture`
        :param boxes: those of all objects in the picture
        """
        box, size = seen.box, (picture.shape[1], picture.shape[0])
        if box.height < LEAST_HEIGHT:
            return None
        try:
            look = appearance_of(np.ascontiguousarray(cut(picture, box)))
            visible = visible_share(box, boxes, size)
            quality = ViewQuality(box.height, look.sharpness, visible)
            kept = self._views.offer(seen.number, about.stamp_ns, quality)
            if kept is None:
                return None
            thumbnail = object_thumbnail(picture, box)
        except EncodingError:
            return None  # nothing of it lies in the picture
        item = replace(
            about,
            kind=ViewKind.TRACK,
            track_id=seen.number,
            label=seen.label,
            box=box,
            score=seen.score,
            position=seen.position,
            velocity=seen.velocity,
            size=box.height,
            sharpness=look.sharpness,
            visibility=visible,
            thumbnail=thumbnail,
        )
        return ChosenView(item, kept.displaced_ns)

    def scene(self, picture: Image, about: MemoryItem) -> ChosenView | None:
        """Return the whole picture if it shows a new scene, else None."""
        if not self._frames.offer(about.stamp_ns, scene_vector(picture)):
            return None
        return ChosenView(replace(about, thumbnail=key_frame_thumbnail(picture)))


def about_picture(picture: Image, stamp_ns: int, level: str) -> MemoryItem:
    """Return what is true of all views of a picture (H, W, 3), as an item that shows all of it."""
    height, width = picture.shape[:2]
    return MemoryItem(
        kind=ViewKind.KEY_FRAME,
        track_id=0,
        label='',
        stamp_ns=stamp_ns,
        box=Box(0.0, 0.0, float(width), float(height)),
        image_size=(width, height),
        score=0.0,
        brightness=appearance_of(picture).brightness,
        level=level,
    )


def with_drone(item: MemoryItem, state: EgoState | None) -> MemoryItem:
    """Return an item with where the drone was and what it was doing, as far as it is known."""
    if state is None:
        return replace(item, drone=UNKNOWN_POSE)
    rotation = state.pose.rotation
    yaw = math.atan2(float(rotation[1, 0]), float(rotation[0, 0]))
    x, y, z = (float(value) for value in state.pose.translation)
    phase = item.phase if state.velocity is None else phase_of(spot_of(state.velocity))
    return replace(item, drone=DronePose(x, y, z, yaw), phase=phase)


def seen_track(track: Track, box: Box) -> SeenObject:
    """Return a track as it is seen in a picture."""
    position, velocity = spot_of(track.position), spot_of(track.velocity)
    return SeenObject(track.id, track.label, box, track.score, position, velocity)


def with_place(item: MemoryItem, geometry: SensorGeometry) -> MemoryItem:
    """Return an item with a place where it has none: that of a body as high as a person.

    It is how a track begins, too; what is half as high is taken to be twice as far away.
    """
    is_known = math.isfinite(item.position.x)
    if item.kind is not ViewKind.TRACK or is_known or geometry.camera is None:
        return item
    width, height = item.image_size
    detection = Detection(item.box, item.score, item.label)
    if (width, height) != (geometry.camera.width, geometry.camera.height):
        return item  # the calibration is of another picture
    placed = place_boxes([detection], geometry, geometry.camera, _BODY_HEIGHT)
    if not len(placed.distances):
        return item
    place = geometry.camera_pose.translation + placed.distances[0] * placed.rays[0]
    return replace(item, position=spot_of(place))


def spot_of(values: FloatArray) -> Spot:
    """Return a place or velocity (3,)."""
    return Spot(*(float(value) for value in values[:3]))
