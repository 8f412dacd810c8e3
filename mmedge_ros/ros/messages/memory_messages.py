"""Views of a flight memory, questions and answers as messages."""

from __future__ import annotations

import array
import math

import numpy as np

from mmedge_ros import msg
from mmedge_ros.core.data_types import NS_PER_S, Box
from mmedge_ros.memory.moment import MemoryItem, Moment, Spot, ViewKind
from mmedge_ros.memory.search import SearchRequest
from mmedge_ros.memory.store import unsound
from mmedge_ros.memory.views import ChosenView, picture_of
from mmedge_ros.ros.messages.conversions import Field, Table, from_time, header, to_time

_ITEM = Table(
    msg.Moment,
    MemoryItem,
    'track_id label level',
    reals='score brightness sharpness visibility',
    box=Field('box', lambda box: np.array(box, np.float32), lambda box: Box(*map(float, box))),
    image_size=Field(
        'image_size',
        lambda size: np.array(size, np.uint16),
        lambda size: (int(size[0]), int(size[1])),
    ),
    position=Field('position', np.array, lambda place: Spot(*map(float, place))),
    velocity=Field('velocity', np.array, lambda speed: Spot(*map(float, speed))),
    thumbnail=Field('thumbnail', lambda picture: array.array('B', picture), bytes),
)


def to_moment(view: ChosenView, frame_id: str) -> msg.Moment:
    """Make a message of a view; places are in ``frame_id``."""
    return _ITEM.to(
        view.item,
        header=header(view.item.stamp_ns, frame_id),
        displaced=to_time(view.displaced_ns or 0),
        camera_frame=view.camera_frame,
    )


def from_moment(message: msg.Moment) -> ChosenView:
    """:raises ValueError: for a picture that is none of ours, or what cannot be stored."""
    is_object = message.track_id > 0
    item = _ITEM.back(
        message,
        kind=ViewKind.TRACK if is_object else ViewKind.KEY_FRAME,
        stamp_ns=from_time(message.header.stamp),
        size=float(message.box[3]) - float(message.box[1]) if is_object else math.nan,
    )
    if not all(map(math.isfinite, item.box)) or item.box.width <= 0.0 or item.box.height <= 0.0:
        raise ValueError(f'{item.box} is no box')
    if picture_of(item.thumbnail) is None:
        raise ValueError(f'a thumbnail of {len(item.thumbnail)} bytes is no picture of ours')
    if is_object != bool(item.label):
        raise ValueError(f'track {item.track_id} is called {item.label[:40]!r}')
    wrong = unsound(item)
    if wrong:
        raise ValueError('; '.join(wrong))
    return ChosenView(item, from_time(message.displaced) or None, message.camera_frame)


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
