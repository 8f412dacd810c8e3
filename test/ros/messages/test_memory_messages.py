"""Views of a flight memory travel as messages and come back as they were."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hand_made_moments import key_frame, view
from hand_made_sights import painted, standing

from mmedge_ros.memory.moment import MemoryItem, Spot
from mmedge_ros.memory.views import ChosenView, key_frame_thumbnail, object_thumbnail
from mmedge_ros.ros.messages.memory_messages import from_moment, to_moment

BOX = standing()
PICTURE = painted(BOX)
FACTS = (
    *('kind', 'track_id', 'label', 'stamp_ns', 'box', 'image_size', 'position', 'velocity'),
    *('level', 'thumbnail'),
)


def person() -> MemoryItem:
    return replace(
        view(5, 2.5),
        box=BOX,
        position=Spot(1.0, 2.0, 3.0),
        velocity=Spot(0.5, 0.0, 0.0),
        sharpness=0.5,
        visibility=0.75,
        brightness=0.25,
        level='medium',
        thumbnail=object_thumbnail(PICTURE, BOX),
    )


def test_a_view_comes_back_as_it_was() -> None:
    sent = ChosenView(person(), 2_000_000_000)
    back = from_moment(to_moment(sent, 'odom'))
    assert back.displaced_ns == 2_000_000_000
    for name in FACTS:
        assert getattr(back.item, name) == getattr(sent.item, name), name
    assert back.item.score == pytest.approx(0.8)
    looks = (back.item.sharpness, back.item.visibility, back.item.brightness, back.item.size)
    assert looks == (0.5, 0.75, 0.25, BOX.height)


def test_a_whole_picture_comes_back_with_what_is_not_known_of_it() -> None:
    sent = ChosenView(replace(key_frame(4.0), thumbnail=key_frame_thumbnail(PICTURE)))
    back = from_moment(to_moment(sent, 'odom'))
    assert (back.item.kind, back.item.track_id, back.displaced_ns) == (sent.item.kind, 0, None)
    assert all(map(math.isnan, (*back.item.position, back.item.size)))


@pytest.mark.parametrize(
    'changes',
    [
        {'box': np.array([1.0, 1.0, np.inf, 2.0], np.float32)},
        {'box': np.array([3.0, 1.0, 3.0, 2.0], np.float32)},
        {'thumbnail': b''},
        {'thumbnail': b'\xff\xd8 torn'},
        {'track_id': 0},
        {'label': ''},
        {'label': 'person\n'},
        {'score': float('inf')},
        {'position': np.array([1e300, 0.0, 0.0])},
    ],
)
def test_a_view_that_cannot_be_is_refused(changes: dict[str, object]) -> None:
    message = to_moment(ChosenView(person()), 'odom')
    for name, value in changes.items():
        setattr(message, name, value)
    with pytest.raises(ValueError, match=r'box|thumbnail|is called|label|place'):
        from_moment(message)
