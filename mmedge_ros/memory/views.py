"""Makes items of pictures: chooses views, cuts them out, and notes their facts."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import cv2
import numpy as np

from mmedge_ros.core.data_types import Box, Detection, FloatArray, Track
from mmedge_ros.encoding import EncodingError
from mmedge_ros.encoding.crops import cut, resized
from mmedge_ros.encoding.detector import Image
from mmedge_ros.encoding.unit_encoder import appearance_of
from mmedge_ros.geometry.ego_motion import EgoState
from mmedge_ros.geometry.sensor_poses import SensorGeometry
from mmedge_ros.memory.moment import (
    UNKNOWN_POSE,
    DronePose,
    MemoryItem,
    Spot,
    ViewKind,
    phase_of,
)
from mmedge_ros.memory.view_choice import (
    KeyFrames,
    TrackViews,
    ViewQuality,
    scene_vector,
    visible_share,
)
from mmedge_ros.tracking.box_placement import place_boxes

# The longer side (px) and the JPEG quality of objects and of key frames. Over 1500 crops of
# simulated scenes, 64 px high, an object takes 0.76 kB, at most 1.35 (quality 90: 0.87 and 1.56,
# 75: 0.63 and 1.12); over 34 test flights a key frame takes 1.0 to 2.7 kB, at most 2.9 (quality
# 85: 4.2).
OBJECT_SIDE, _OBJECT_QUALITY = 64, 85
KEY_FRAME_SIDE, _KEY_FRAME_QUALITY = 128, 70
MARGIN = 0.1


def object_thumbnail(picture: Image, box: Box) -> bytes:
    """Return an object of a picture (H, W, 3) BGR, with some of what is around it.

    :raises EncodingError: if nothing of the box lies in the picture
    """
    return _jpeg(cut(picture, box, MARGIN), OBJECT_SIDE, _OBJECT_QUALITY)


def key_frame_thumbnail(picture: Image) -> bytes:
    """Return a whole picture (H, W, 3) BGR."""
    return _jpeg(picture, KEY_FRAME_SIDE, _KEY_FRAME_QUALITY)


def picture_of(thumbnail: bytes) -> Image | None:
    """Return a thumbnail as a picture (H, W, 3) BGR; None if it is none of ours."""
    from PIL import Image as Pillow

    try:
        # The size is known before anything is decoded.
        with Pillow.open(io.BytesIO(thumbnail), formats=['JPEG']) as opened:
            is_ours = max(opened.size) <= KEY_FRAME_SIDE
    except (OSError, ValueError, SyntaxError):
        return None
    if not is_ours:
        return None
    decoded: Any = cv2.imdecode(np.frombuffer(thumbnail, np.uint8), cv2.IMREAD_COLOR)
    return None if decoded is None else np.asarray(decoded, np.uint8)


def _jpeg(picture: Image, side: int, quality: int) -> bytes:
    height, width = picture.shape[:2]
    scale = side / max(height, width)
    if scale < 1.0:
        picture = resized(picture, (max(round(width * scale), 1), max(round(height * scale), 1)))
    # Tables made for the picture take a third off.
    flags = [cv2.IMWRITE_JPEG_QUALITY, quality, cv2.IMWRITE_JPEG_OPTIMIZE, 1]
    _, content = cv2.imencode('.jpg', np.ascontiguousarray(picture), flags)
    return content.tobytes()


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
    """Return the facts that all views of a picture (H, W, 3) share, as an item of all of it."""
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
    """Return a track as an object in a picture."""
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
