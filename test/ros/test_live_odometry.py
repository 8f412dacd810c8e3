"""The live graph hears odometry, and its tracks live in that frame."""

from __future__ import annotations

from pathlib import Path

from bag_fixtures import write_bag
from flight_fixtures import SPEED, flight

from mmedge_ros.ros.live_session import LiveOptions, replay_live


def test_tracks_of_a_live_flight_live_in_the_frame_of_its_odometry(
    detector: Path, tmp_path: Path
) -> None:
    bag = write_bag(tmp_path / 'bag', messages=flight('/odom', 1.9))
    record = replay_live(LiveOptions(str(bag), str(detector), logs=tmp_path / 'logs'))
    shown = [d for d in record.decisions if d.tracks]
    assert {d.frame_id for d in shown[2:]} == {'odom'}
    first, last = shown[2], shown[-1]
    gained = last.tracks[0].position[0] - first.tracks[0].position[0]
    speed = gained / ((last.state_ns - first.state_ns) / 1e9)
    # The returns stay 5 m ahead of the drone, and claim 0.5 m/s more.
    assert SPEED - 0.2 <= speed <= SPEED + 0.7
