"""Views of a flight memory, questions and answers as messages."""

from __future__ import annotations

import array
import math

import numpy as np
from geometry_msgs.msg import Point
from std_msgs.msg import ColorRGBA
from visualization_msgs.msg import Marker, MarkerArray

from mmedge_ros import msg
from mmedge_ros.core.data_types import NS_PER_S, Box
from mmedge_ros.memory.moment import MemoryItem, Moment, Spot, ViewKind
from mmedge_ros.memory.search import SearchRequest
from mmedge_ros.memory.store import unsound
from mmedge_ros.memory.views import ChosenView, picture_of
from mmedge_ros.ros.messages.conversions import from_time, header, to_time
from mmedge_ros.viewing.drawing import colour_of

_SIZE = 0.6


def to_moment(view: ChosenView, frame_id: str) -> msg.Moment:
    """Make a message of a view; places are in ``frame_id``."""
    item = view.item
    return msg.Moment(
        header=header(item.stamp_ns, frame_id),
        track_id=item.track_id,
        label=item.label,
        score=float(item.score),
        box=np.array(item.box, np.float32),
        image_size=np.array(item.image_size, np.uint16),
        position=np.array(item.position, np.float64),
        velocity=np.array(item.velocity, np.float64),
        brightness=float(item.brightness),
        sharpness=float(item.sharpness),
        visibility=float(item.visibility),
        level=item.level,
        thumbnail=array.array('B', item.thumbnail),
        displaced=to_time(view.displaced_ns or 0),
        camera_frame=view.camera_frame,
    )


def from_moment(message: msg.Moment) -> ChosenView:
    """:raises ValueError: for a picture that is none of ours, or what cannot be stored."""
    box = Box(*(float(side) for side in message.box))
    if not all(map(math.isfinite, box)) or box.width <= 0.0 or box.height <= 0.0:
        raise ValueError(f'{box} is no box')
    thumbnail = bytes(message.thumbnail)
    if picture_of(thumbnail) is None:
        raise ValueError(f'a thumbnail of {len(thumbnail)} bytes is no picture of ours')
    is_object = message.track_id > 0
    if is_object != bool(message.label):
        raise ValueError(f'track {message.track_id} is called {message.label[:40]!r}')
    width, height = (int(side) for side in message.image_size)
    item = MemoryItem(
        kind=ViewKind.TRACK if is_object else ViewKind.KEY_FRAME,
        track_id=int(message.track_id),
        label=message.label,
        stamp_ns=from_time(message.header.stamp),
        box=box,
        image_size=(width, height),
        score=float(message.score),
        position=Spot(*(float(value) for value in message.position)),
        velocity=Spot(*(float(value) for value in message.velocity)),
        brightness=float(message.brightness),
        size=box.height if is_object else math.nan,
        sharpness=float(message.sharpness),
        visibility=float(message.visibility),
        level=message.level,
        thumbnail=thumbnail,
    )
    wrong = unsound(item)
    if wrong:
        raise ValueError('; '.join(wrong))
    displaced_ns = from_time(message.displaced)
    return ChosenView(item, displaced_ns or None, message.camera_frame)


def from_query(request) -> SearchRequest:
    """Read a question."""
    begin_ns, end_ns = from_time(request.begin), from_time(request.end)
    x, y, radius = (float(value) for value in request.near)
    return SearchRequest(
        words=request.words,
        example=bytes(request.example),
        like=int(request.like),
        near=None if radius == 0.0 else (x, y, radius),
        between_ns=(begin_ns, end_ns or 2**63 - 1) if begin_ns or end_ns else None,
        limit=int(request.limit) or 10,
    )


def to_found_moment(moment: Moment, thumbnail: bytes) -> msg.FoundMoment:
    """Make a message of what was found."""
    shown = moment.shown
    item = shown.item
    offset_ns = item.bag_offset_ns
    return msg.FoundMoment(
        id=shown.id,
        track_id=item.track_id,
        label=item.label,
        score=float(moment.score),
        begin=to_time(moment.begin_ns),
        end=to_time(moment.end_ns),
        shown=to_time(item.stamp_ns),
        views=len(moment.views),
        position=np.array(item.position, np.float64),
        drone_position=np.array(item.drone[:3], np.float64),
        bag_offset=offset_ns / NS_PER_S if offset_ns >= 0 else math.nan,
        beside=moment.beside.item.label if moment.beside is not None else '',
        thumbnail=array.array('B', thumbnail),
    )


def moment_markers(moments: tuple[Moment, ...], frame_id: str, stamp_ns: int) -> MarkerArray:
    """Mark where moments were, the best one largest; those of an unknown place are left out."""
    top = header(stamp_ns, frame_id)
    markers = [Marker(header=top, ns='moments', action=Marker.DELETEALL)]
    for rank, moment in enumerate(moments):
        item = moment.shown.item
        if not all(map(math.isfinite, item.position)):
            continue
        place = Point(x=item.position.x, y=item.position.y, z=item.position.z)
        red, green, blue = colour_of(item.track_id)
        size = _SIZE if rank else 2.0 * _SIZE
        body = Marker(header=top, ns='moments', id=rank, type=Marker.SPHERE, action=Marker.ADD)
        body.pose.position = place
        body.pose.orientation.w = 1.0
        body.scale.x = body.scale.y = body.scale.z = size
        body.color = ColorRGBA(r=red, g=green, b=blue, a=0.9)
        name = Marker(
            header=top, ns='names', id=rank, type=Marker.TEXT_VIEW_FACING, action=Marker.ADD
        )
        name.pose.position = Point(x=place.x, y=place.y, z=place.z + size)
        name.pose.orientation.w = 1.0
        name.scale.z = 0.4
        name.color = ColorRGBA(r=1.0, g=1.0, b=1.0, a=1.0)
        name.text = f'{rank + 1}. {item.label} {item.track_id}  {moment.score:.2f}'
        markers += [body, name]
    return MarkerArray(markers=markers)
