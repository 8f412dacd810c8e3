"""The live graph hears odometry, and its tracks live in that frame."""

from __future__ import annotations

from itertools import takewhile
from pathlib import Path

from bag_fixtures import write_bag
from flight_fixtures import SPEED, flight

from mmedge_ros.core.data_types import RADAR
from mmedge_ros.ros.graph.options import GraphOptions
from mmedge_ros.ros.sessions.live_session import replay_live


def test_tracks_of_a_live_flight_live_in_the_frame_of_its_odometry(
    detector: Path, tmp_path: Path
) -> None:
    bag = write_bag(tmp_path / 'bag', messages=flight('/odom', 1.9))
    record = replay_live(
        GraphOptions(bag=str(bag), detector=str(detector), logs=str(tmp_path / 'logs'))
    )
    shown = [d for d in record.decisions if d.tracks][2:]
    assert {d.frame_id for d in shown} == {'odom'}
    # The box keeps its size, and with it its distance from the drone, once it has gone over the
    # returns, from which the radar knew better.
    by_camera = list(takewhile(lambda d: RADAR not in d.tracks[0].seen_by, reversed(shown)))
    first, last = by_camera[-1], by_camera[0]
    gained = last.tracks[0].position[0] - first.tracks[0].position[0]
    elapsed = (last.state_ns - first.state_ns) / 1e9
    assert elapsed > 0.3
    # A track begins at rest.
    assert 0.75 * SPEED <= gained / elapsed <= SPEED + 0.7
