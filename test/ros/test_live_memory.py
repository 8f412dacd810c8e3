"""The live graph remembers what it sees, and answers questions while it flies."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from hand_made_moments import view
from hand_made_sights import painted, standing
from live_graph import Bystander, looping
from visualization_msgs.msg import MarkerArray

from mmedge_ros import msg, srv
from mmedge_ros.core.data_types import NS_PER_S
from mmedge_ros.memory.moment import Spot
from mmedge_ros.memory.store import MemoryReader
from mmedge_ros.memory.views import ChosenView, object_thumbnail, picture_of
from mmedge_ros.ros.graph.description import NodeDescription
from mmedge_ros.ros.graph.process_group import ProcessGroup
from mmedge_ros.ros.messages import names, qos
from mmedge_ros.ros.messages.conversions import to_time
from mmedge_ros.ros.messages.memory_messages import to_moment


class Asker:
    """A client of the memory, and the markers that an answer leaves."""

    def __init__(self, bystander: Bystander) -> None:
        self._bystander = bystander
        self.markers: list[MarkerArray] = []
        self._client = bystander.node.create_client(srv.QueryMemory, names.MEMORY_QUERY)
        bystander.node.create_subscription(
            MarkerArray, names.MEMORY_MARKERS, self.markers.append, qos.LATCHED
        )
        bystander.wait_until(self._client.service_is_ready)

    def ask(self, **question: Any) -> Any:
        future = self._client.call_async(srv.QueryMemory.Request(**question))
        self._bystander.wait_until(future.done)
        return future.result()


@pytest.fixture
def lone_memory(bystander: Bystander, tmp_path: Path) -> Iterator[ProcessGroup]:
    given = {'folder': str(tmp_path / 'flight'), 'detector': 'flight_people'}
    nodes = [NodeDescription('memory', 'memory', given)]
    with ProcessGroup(nodes, tmp_path / 'logs', respawn=False) as group:
        bystander.group = group
        yield group


def test_a_flight_is_remembered_and_asked_while_it_flies(
    little_bag: Path, detector: Path, bystander: Bystander, tmp_path: Path
) -> None:
    folder = tmp_path / 'flight.memory'
    nodes = looping(little_bag, detector, memory=str(folder))
    with ProcessGroup(nodes, tmp_path / 'logs') as group:
        bystander.group = group
        asker = Asker(bystander)
        answer = bystander.wait_until(
            lambda: next((a for a in [asker.ask(words='a person')] if len(a.moments)), None)
        )
        assert answer.success
        best = answer.moments[0]
        assert (best.label, best.views >= 1) == ('person', True)
        shown = picture_of(bytes(best.thumbnail))
        assert shown is not None
        assert np.isfinite(best.position).all()
        bystander.wait_until(lambda: asker.markers)
    with MemoryReader(folder) as memory:
        table = memory.table()
    assert 'person' in table.texts['label']
    assert '' in table.texts['label'], 'the first picture is a key frame'
    assert (table.facts['size'][table.texts['label'] == 'person'] > 14).all()


def test_neither_views_nor_questions_end_the_memory(
    lone_memory: ProcessGroup, bystander: Bystander, tmp_path: Path
) -> None:
    asker = Asker(bystander)
    assert asker.ask(words='person').success, 'an empty memory answers'
    moments = bystander.node.create_publisher(msg.Moment, names.MOMENTS, qos.RESULT)
    bystander.wait_until(moments.get_subscription_count)

    def offer(stamp_ns: int = NS_PER_S, **changes: Any) -> None:
        box = standing()
        thumbnail = object_thumbnail(painted(box), box)
        item = replace(view(4), thumbnail=thumbnail, position=Spot(3.0, 4.0, 0.0))
        message = to_moment(ChosenView(item), 'odom')
        message.header.stamp = to_time(stamp_ns)
        for name, value in changes.items():
            setattr(message, name, value)
        moments.publish(message)

    # Whatever else cannot be, test_memory_messages refuses.
    offer(box=np.full(4, np.nan, np.float32))
    offer(thumbnail=bytes(2_000_000))
    offer(label='person\n' * 100)
    moments.publish(b'\0\1\0\0' + 40 * b'\xff')
    offer(7 * NS_PER_S)
    found = bystander.wait_until(
        lambda: next((a for a in [asker.ask(words='person')] if len(a.moments)), None)
    )
    assert [(m.label, m.track_id) for m in found.moments] == [('person', 4)]
    bystander.wait_until(lambda: asker.markers and len(asker.markers[-1].markers) == 3)

    for question, words in (
        ({}, 'nothing is asked for'),
        ({'words': 'person ' * 1000}, 'at most 500 characters'),
        ({'example': b'no picture'}, 'no picture that can be read'),
        ({'like': 4_000_000_000}, 'has no view'),
        ({'near': np.array([0.0, 0.0, -1.0])}, 'a radius above 0'),
        ({'begin': to_time(9 * NS_PER_S), 'end': to_time(8 * NS_PER_S)}, 'ends before'),
    ):
        answer = asker.ask(**question)
        assert not answer.success
        assert words in answer.message
    _, picture = cv2.imencode('.png', painted(standing())[200:320, 80:160])
    assert asker.ask(example=picture.tobytes()).success
    assert len(asker.ask(near=np.array([3.0, 3.0, 2.0])).moments) == 1
    assert len(asker.ask(near=np.array([90.0, 3.0, 2.0])).moments) == 0
    assert lone_memory.watch() == []
    assert 'Traceback' not in lone_memory.last_words('memory', 99)
