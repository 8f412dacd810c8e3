"""Flights as recordings: what is in them, when it was received, and that it is the truth."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hand_made_flight import decoded, fly, scene, sensors

from mmedge_lab.simulation.flight import BEGIN_NS, flight_records
from mmedge_lab.simulation.flight_bag import (
    BATTERY,
    CAMERA,
    CAMERA_INFO,
    GROUND_TRUTH,
    ODOMETRY,
    RADAR,
    SYSTEM,
    TF_STATIC,
    TOPICS,
)
from mmedge_lab.simulation.flight_schedule import radar_instants
from mmedge_ros.core.data_types import NS_PER_S
from mmedge_ros.geometry.ego_motion import EgoState
from mmedge_ros.replay.bag import Bag, BagMessage
from mmedge_ros.replay.wire_formats import ego_report_from_bytes, header_stamp_ns
from mmedge_ros.sensing.radar.point_cloud import decode_points

SECONDS = 1.0


@pytest.fixture(scope='module')
def flight(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A flight of one second with a grey camera."""
    return fly(tmp_path_factory.mktemp('flights') / 'one', SECONDS)


def messages(folder: Path, topic: str) -> list[tuple[BagMessage, Any]]:
    with Bag(folder) as bag:
        return [(m, bag.deserialize(m)) for m in bag.messages([topic])]


def seconds(stamp_ns: int) -> float:
    return (stamp_ns - BEGIN_NS) / NS_PER_S


class TestRecording:
    def test_every_topic_is_there_at_its_rate(self, flight: Path) -> None:
        with Bag(flight) as bag:
            assert bag.problems == []
            counts = {topic.name: topic.count for topic in bag.topics}
            kinds = {topic.name: topic.msgtype for topic in bag.topics}
        assert kinds == TOPICS
        assert counts[TF_STATIC] == 1
        assert counts[CAMERA] == counts[CAMERA_INFO] == counts[GROUND_TRUTH]
        assert 29 <= counts[CAMERA] <= 30
        assert 19 <= counts[RADAR] <= 20
        assert 50 <= counts[ODOMETRY] <= 101
        assert counts[BATTERY] == 11
        assert 5 <= counts[SYSTEM] <= 11

    def test_it_lies_in_the_order_it_was_received(self, flight: Path) -> None:
        with Bag(flight) as bag:
            times = [message.log_ns for message in bag.messages()]
        assert all(a <= b for a, b in pairwise(times))
        assert times[0] == BEGIN_NS
        assert BEGIN_NS % 100_000_000 == 0


class TestDeterminism:
    def test_two_runs_of_a_seed_give_identical_fields(self, flight: Path, tmp_path: Path) -> None:
        assert decoded(fly(tmp_path / 'again', SECONDS)) == decoded(flight)


class TestTruth:
    def test_movers_are_where_they_are(self, flight: Path) -> None:
        flown = scene()
        for message, truth in messages(flight, GROUND_TRUTH):
            t = seconds(header_stamp_ns(message.raw))
            assert truth.header.frame_id == 'odom'
            assert [item.id for item in truth.objects] == [4, 9]
            for item, mover in zip(truth.objects, flown.movers, strict=True):
                state = mover.state(t)
                assert xyz(item.position) == pytest.approx(state.position, abs=1e-6)
                assert xyz(item.velocity) == pytest.approx(state.velocity)
                assert item.label == mover.label

    def test_what_the_camera_does_not_see_has_no_box(self, flight: Path) -> None:
        (_, truth), *_ = messages(flight, GROUND_TRUTH)
        seen, unseen = truth.objects
        assert seen.in_picture
        assert seen.box.tolist() == [3.0, 4.0, 20.0, 40.0]
        assert not unseen.in_picture
        assert unseen.box.tolist() == [0.0] * 4

    def test_the_drone_is_where_it_is(self, flight: Path) -> None:
        path = scene().path
        for message, truth in messages(flight, GROUND_TRUTH):
            drone = path.state(seconds(header_stamp_ns(message.raw)))
            assert xyz(truth.pose.position) == pytest.approx(drone.pose.translation, abs=1e-6)
            assert xyz(truth.twist.linear) == pytest.approx(drone.velocity)
            assert xyz(truth.twist.angular) == pytest.approx(drone.angular_velocity)


class TestOdometry:
    def states(self, flight: Path) -> list[EgoState]:
        return [
            ego_report_from_bytes(message.raw, 0).state
            for message, _ in messages(flight, ODOMETRY)
        ]

    def test_read_back_it_is_the_drones_motion(self, flight: Path) -> None:
        path = scene().path
        for state in self.states(flight):
            true = path.state(seconds(state.stamp_ns))
            assert state.velocity is not None
            assert state.angular_velocity is not None
            assert state.pose.translation == pytest.approx(true.pose.translation, abs=0.12)
            assert state.pose.rotation == pytest.approx(true.pose.rotation, abs=0.01)
            assert state.velocity == pytest.approx(true.velocity, abs=0.2)
            assert state.angular_velocity == pytest.approx(true.angular_velocity, abs=0.06)

    def test_the_twist_is_in_the_axes_of_the_base(self, flight: Path) -> None:
        message, last = messages(flight, ODOMETRY)[-1]
        assert (last.header.frame_id, last.child_frame_id) == ('odom', 'base_link')
        drone = scene().path.state(seconds(header_stamp_ns(message.raw)))
        in_base = drone.pose.rotation.T @ drone.velocity
        assert np.abs(in_base - drone.velocity).max() > 0.3
        assert xyz(last.twist.twist.linear) == pytest.approx(in_base, abs=0.2)


class TestRadar:
    def test_scans_decode_to_what_the_radar_saw(self, flight: Path) -> None:
        radar = sensors(scene()).radar
        found = messages(flight, RADAR)
        stamps = BEGIN_NS + np.rint(radar_instants(scene()).times * NS_PER_S).astype(np.int64)
        for message, cloud in found:
            (number,) = np.flatnonzero(stamps == header_stamp_ns(message.raw))
            scan = radar.scan(float(radar_instants(scene()).times[number]), int(number))
            assert np.array_equal(decode_points(cloud), scan[:, :5])
            assert cloud.header.frame_id == 'radar_link'
            assert [field.name for field in cloud.fields][-2:] == ['snr', 'noise']
        assert any(cloud.width > 0 for _, cloud in found)

    def test_scans_are_missing_while_the_radars_supply_stutters(self) -> None:
        flown = scene()
        records = flight_records(flown, sensors(flown, stutter=(0.3, 0.6)))
        stamps = [seconds(header_stamp_ns(r.raw)) for r in records if r.topic == RADAR]
        assert [t for t in stamps if 0.3 <= t < 0.6] == []
        assert len([t for t in stamps if t < 0.3]) >= 5
        assert len([t for t in stamps if t >= 0.6]) >= 7


def xyz(vector: Any) -> list[float]:
    return [vector.x, vector.y, vector.z]
