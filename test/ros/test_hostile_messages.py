"""No message ends a node: what cannot be used is said and left out, and leases are obeyed."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hand_made_decisions import a_unit
from live_graph import Bystander, Commander, check_decision, scan, stamps_of
from nav_msgs.msg import Odometry
from rclpy.serialization import serialize_message
from sensor_msgs.msg import CameraInfo, PointCloud2

from mmedge_ros import msg
from mmedge_ros.core.data_types import NS_PER_S, UnitOutcome
from mmedge_ros.ros.graph.options import GraphOptions
from mmedge_ros.ros.graph.perception_graph import perception_graph
from mmedge_ros.ros.graph.process_group import ProcessGroup
from mmedge_ros.ros.messages import conversions, names, qos


@pytest.fixture
def graph(bystander: Bystander, tmp_path: Path) -> Iterator[ProcessGroup]:
    nodes = perception_graph(GraphOptions(modalities=('radar',), visualizer=False))
    with ProcessGroup(nodes, tmp_path, respawn=False) as group:
        bystander.group = group
        yield group


def test_fusion_and_encoder_go_on_after_every_message_and_obey_a_lease(
    graph: ProcessGroup, bystander: Bystander
) -> None:
    node = bystander.node
    scans = node.create_publisher(PointCloud2, names.RADAR_POINTS, qos.SENSOR)
    hostile = {
        kind: node.create_publisher(kind, topic, qos.RESULT)
        for kind, topic in (
            (msg.UnitFeatures, names.UNIT_FEATURES),
            (msg.UnitReceipt, names.UNIT_RECEIPTS),
            (msg.SkipDecision, names.SKIP_DECISION),
            (CameraInfo, names.CAMERA_INFO),
            (Odometry, names.ODOMETRY),
        )
    }
    configurations = node.create_publisher(msg.Configuration, names.CONFIGURATION, qos.LATCHED)
    sent: list[int] = []

    def send() -> None:
        sent.append(time.time_ns())
        scans.publish(scan(sent[-1]))

    node.create_timer(0.04, send)
    bystander.wait_until(lambda: len(bystander.decisions) > 3)
    # Two of them the bystander hears himself.
    listeners = {
        msg.UnitFeatures: 2,
        msg.UnitReceipt: 2,
        msg.SkipDecision: 1,
        CameraInfo: 1,
        Odometry: 1,
    }
    bystander.wait_until(
        lambda: all(hostile[k].get_subscription_count() >= n for k, n in listeners.items())
    )

    def send_all() -> None:
        for unit in _units_that_cannot_be():
            hostile[msg.UnitFeatures].publish(unit)
        hostile[msg.UnitReceipt].publish(msg.UnitReceipt(modality='radar', outcome=99))
        hostile[msg.UnitReceipt].publish(msg.UnitReceipt(modality='no such thing'))
        hostile[msg.SkipDecision].publish(msg.SkipDecision(modality='radar'))
        hostile[CameraInfo].publish(CameraInfo(width=7, distortion_model='of my own'))
        for raw in (b'\0\7\0\0', b'\0\1\0\0' + 40 * b'\xff', serialize_message(Odometry())[:-600]):
            hostile[Odometry].publish(raw)
        hostile[Odometry].publish(Odometry())  # a quaternion of zeros
        for publisher in (scans, *hostile.values()):
            publisher.publish(b'')
            publisher.publish(bytes(range(256)))
        whole = serialize_message(scan(time.time_ns()))
        scans.publish(whole[: len(whole) // 2])
        undecodable = scan(time.time_ns())
        undecodable.point_step = 1
        scans.publish(undecodable)

    configurations.publish(
        msg.Configuration(
            modalities=[msg.ModalityConfiguration(modality='radar', rate=float('nan'))]
        )
    )
    # Best effort may lose some.
    again = node.create_timer(0.5, send_all)
    bystander.wait_until(lambda: any(r.outcome == UnitOutcome.FAILED for r in bystander.receipts))
    for said in (
        'features not used: radar unit 7',
        'receipt not used: 99 is not a valid UnitOutcome',
        'camera_info not used',
        'odometry not used: ',
    ):
        # All of its log: the middleware has much to say of each of these messages.
        bystander.wait_until(lambda said=said: said in graph.log_of('fusion').read_text())
    node.destroy_timer(again)
    good = bystander.wait_for_units('radar', 10)
    # The first decisions after an invalid clock or unit may start over; then all is well.
    begin = len(bystander.decisions)

    def sound() -> list[msg.TrackArray]:
        return [d for d in bystander.decisions[begin:] if d.trail and 'radar' in d.modalities]

    bystander.wait_until(lambda: len(sound()) >= 8)
    for decision in sound()[-3:]:
        check_decision(decision)
    assert len(good) >= 10
    _check_a_lease(bystander, sent)
    assert graph.watch() == []
    for name in ('fusion', 'radar_encoder'):
        assert 'Traceback' not in graph.log_of(name).read_text()


def _check_a_lease(bystander: Bystander, sent: list[int]) -> None:
    """Check that the encoder leaves out what it is told to skip, and resumes by itself."""
    commander = Commander(bystander)
    bystander.wait_until(lambda: commander.is_heard)
    begin_ns = time.time_ns()
    end_ns = commander.skip('radar', 0.4)

    def skipped() -> list[int]:
        receipts = (r for r in bystander.receipts if r.outcome == UnitOutcome.SKIPPED)
        return [conversions.from_time(r.header.stamp) for r in receipts]

    bystander.wait_until(skipped)
    bystander.wait_until(lambda: stamps_of(bystander.features, 'radar')[-1] > end_ns)
    encoded = stamps_of(bystander.features, 'radar')
    # It may take the encoder a moment to hear of it.
    during = {s for s in sent if begin_ns + NS_PER_S // 5 <= s < end_ns}
    assert during.isdisjoint(encoded)
    assert set(skipped()) <= {s for s in sent if begin_ns <= s < end_ns}
    assert set(skipped()).isdisjoint(encoded)


def _units_that_cannot_be() -> list[msg.UnitFeatures]:
    found = []
    for name, value in (
        ('grid_shape', conversions.to_features(a_unit()).grid_shape + 1),
        ('returns', [1.0, 2.0, 3.0]),
        ('trail', []),
        ('modality', 'no such thing'),
        ('detections', [msg.Detection()] * 20_000),
        ('returns', [0.0] * 100_000),
        ('available', conversions.to_time(0)),
    ):
        message = conversions.to_features(a_unit())
        setattr(message, name, value)
        found.append(message)
    return found
