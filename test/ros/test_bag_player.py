"""The player refuses what it cannot play, waits for listeners, and starts over in a loop."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, cast

import bag_fixtures as flight
import pytest
from live_graph import Bystander
from rclpy.node import Node
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import CompressedImage, PointCloud2

from mmedge_ros.replay.playback import TRANSFORMS
from mmedge_ros.replay.recording import Recording
from mmedge_ros.ros.graph.description import NodeDescription
from mmedge_ros.ros.graph.process_group import ProcessGroup
from mmedge_ros.ros.messages import names, qos
from mmedge_ros.ros.messages.conversions import from_time
from mmedge_ros.ros.nodes.bag_player import create_outputs

SECOND = 1_000_000_000
STRIDE_NS = SECOND // 10


@pytest.fixture(scope='module')
def short_bag(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Half a second; between its pictures lies a message that is too damaged to be played."""
    messages = flight.recording(0.5)
    damaged = ('sensor_msgs/msg/PointCloud2', b'\x00\x01')
    messages.insert(5, (flight.RADAR, messages[4][1], damaged))
    return flight.write_bag(tmp_path_factory.mktemp('bags') / 'short', messages=messages)


class Audience:
    """Listens to the sensors of a player in a process of its own."""

    def __init__(self, bystander: Bystander, folder: Path) -> None:
        self.bystander = bystander
        self.pictures: list[CompressedImage] = []
        self.scans: list[PointCloud2] = []
        self.times: list[int] = []
        self._folder = folder
        node = bystander.node
        node.create_subscription(
            CompressedImage, names.CAMERA_IMAGE_COMPRESSED, self.pictures.append, qos.SENSOR
        )
        node.create_subscription(PointCloud2, names.RADAR_POINTS, self.scans.append, qos.SENSOR)
        node.create_subscription(
            Clock, names.CLOCK, lambda m: self.times.append(from_time(m.clock)), 10
        )

    def play(self, bag: Path, **parameters: object) -> ProcessGroup:
        player = NodeDescription(
            'bag_player', 'bag_player', {'bag': str(bag), 'wait_for': ['bystander'], **parameters}
        )
        self.bystander.group = ProcessGroup([player], self._folder)
        return self.bystander.group

    def stamps(self) -> list[int]:
        return [from_time(m.header.stamp) for m in self.pictures]

    def wait_for_the_end(self, pictures: int = 10) -> None:
        """Wait until the player says so and the last pictures have arrived."""
        states = self.bystander.states
        self.bystander.wait_until(lambda: states and states[-1].finished)
        self.bystander.wait_until(lambda: len(self.pictures) >= pictures)


@pytest.fixture
def audience(bystander: Bystander, tmp_path: Path) -> Iterator[Audience]:
    return Audience(bystander, tmp_path)


def test_all_units_are_played_once_and_the_damaged_message_is_named(
    audience: Audience, short_bag: Path
) -> None:
    with audience.play(short_bag) as group:
        audience.wait_for_the_end()
        (state,) = {s.offset: s for s in audience.bystander.states}.values()
        audience.bystander.wait_until(lambda: 'ended' in group.last_words('bag_player', 1))
        words = group.last_words('bag_player', 9)
    assert state.offset % STRIDE_NS == 0
    recorded = [flight.BEGIN_NS + n * SECOND // 20 for n in range(10)]
    assert audience.stamps() == [stamp + state.offset for stamp in recorded]
    audience.bystander.wait_until(lambda: len(audience.scans) >= 12)
    assert len(audience.scans) == 12
    assert audience.times == []
    assert dict(zip(state.modalities, state.transferred, strict=True)) == {
        'camera': 10,
        'radar': 12,
    }
    assert '1 messages not played: /radar/points: 2 bytes' in words


def test_with_clock_stamps_are_the_recorded_ones_and_time_goes_on_after_the_end(
    audience: Audience, short_bag: Path
) -> None:
    with audience.play(short_bag, clock=True):
        audience.wait_for_the_end()
        end = audience.times[-1]
        audience.bystander.wait_until(lambda: audience.times[-1] > end + SECOND // 5)
    assert audience.stamps() == [flight.BEGIN_NS + n * SECOND // 20 for n in range(10)]
    assert audience.times == sorted(audience.times)
    assert audience.times[0] < flight.BEGIN_NS


def test_static_transforms_are_published_and_moving_ones_played(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """tf2_msgs, which no wheel has, is made by hand."""
    package, messages = ModuleType('tf2_msgs'), ModuleType('tf2_msgs.msg')
    messages.__dict__['TFMessage'] = SimpleNamespace
    monkeypatch.setitem(sys.modules, 'tf2_msgs', package)
    monkeypatch.setitem(sys.modules, 'tf2_msgs.msg', messages)
    published: dict[str, list[Any]] = {}

    class Publishing:
        def create_publisher(self, _: type, topic: str, __: Any) -> Any:
            return SimpleNamespace(publish=published.setdefault(topic, []).append)

    bag = flight.write_bag(tmp_path / 'flight', messages=flight.straight_flight('/tf', 0.2))
    given = ('radar_link camera_optical_frame 1 2 3 0 0 0 1', 'base_link radar_link 0 0 1 0 0 0 1')
    with Recording(bag) as recording:
        outputs = create_outputs(cast('Node', Publishing()), recording, given)
    (static,) = published[names.STATIC_TRANSFORMS]
    assert [
        (e.header.frame_id, e.child_frame_id, e.transform.translation.z) for e in static.transforms
    ] == [('radar_link', 'camera_optical_frame', 3.0), ('base_link', 'radar_link', 1.0)]
    assert published[names.TRANSFORMS] == []
    assert TRANSFORMS in outputs
    monkeypatch.setitem(sys.modules, 'tf2_msgs.msg', None)
    with Recording(bag) as recording:
        assert TRANSFORMS not in create_outputs(cast('Node', Publishing()), recording, given)
