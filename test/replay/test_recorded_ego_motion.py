"""A recording of a drone that flies: its odometry or its transforms carry the tracks."""

from __future__ import annotations

from itertools import takewhile
from pathlib import Path

import pytest
from bag_fixtures import SPEED, straight_flight, write_bag
from tiny_detector import write_tiny_detector

from mmedge_ros.core.data_types import RADAR
from mmedge_ros.geometry.ego_motion import EgoReport
from mmedge_ros.replay.offline_session import OfflineOptions, replay_offline
from mmedge_ros.replay.recording import Recording


@pytest.mark.parametrize('topic', ['/odom', '/tf'])
def test_tracks_of_a_flight_live_in_the_frame_of_its_odometry(tmp_path: Path, topic: str) -> None:
    bag = write_bag(tmp_path / 'bag', messages=straight_flight(topic))
    detector = tmp_path / 'tiny.onnx'
    write_tiny_detector(detector)
    record = replay_offline(OfflineOptions(str(bag), str(detector)))
    assert record.frame_id == 'odom'
    assert {d.frame_id for d in record.decisions} == {'odom'}
    assert not any('no odometry' in problem for problem in record.problems)
    # The box keeps its size, and with it its distance from a drone that flies at 2 m/s, until
    # it goes over the returns and the radar knows better. A track begins at rest.
    shown = [d for d in record.decisions if d.tracks]
    by_camera = list(takewhile(lambda d: RADAR not in d.tracks[0].seen_by, shown))
    first, last = by_camera[0], by_camera[-1]
    gained = last.tracks[0].position[0] - first.tracks[0].position[0]
    elapsed = (last.state_ns - first.state_ns) / 1e9
    assert elapsed > 0.4
    assert 0.75 * SPEED <= gained / elapsed <= SPEED + 0.6


def test_odometry_comes_in_the_order_it_was_received(tmp_path: Path) -> None:
    bag = write_bag(tmp_path / 'bag', messages=straight_flight('/odom'))
    with Recording(bag) as found:
        events = list(found.events())
    times = [event.available_ns for event in events]
    assert times == sorted(times)
    assert sum(isinstance(event, EgoReport) for event in events) == 75


def test_damaged_odometry_is_told_and_left_out(tmp_path: Path) -> None:
    messages = straight_flight('/odom')
    for place, (topic, log_ns, message) in enumerate(messages):
        if topic == '/odom':
            message.pose.pose.position.x = float('nan')
            messages[place] = (topic, log_ns, message)
    bag = write_bag(tmp_path / 'bag', messages=messages)
    with Recording(bag) as found:
        assert not any(isinstance(event, EgoReport) for event in found.events())
        assert any('odometry not used' in problem for problem in found.problems)
