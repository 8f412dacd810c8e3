"""What listens on behalf of a report survives every message and keeps what was wrong."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from hand_made_decisions import NOW_NS, a_decision, a_track, a_unit
from live_graph import Bystander, Stage
from rclpy.node import Node

from mmedge_ros import msg
from mmedge_ros.core.data_types import UnitReceipt
from mmedge_ros.core.run_record import UnitCounts
from mmedge_ros.replay.live_record import LiveRecord
from mmedge_ros.replay.playback import PlaybackStatus
from mmedge_ros.ros.messages import conversions, names, qos
from mmedge_ros.ros.recording.recorder import Recorder

TOPICS: dict[type, tuple[str, Any]] = {
    msg.TrackArray: (names.TRACKS, qos.RESULT),
    msg.UnitFeatures: (names.UNIT_FEATURES, qos.RESULT),
    msg.UnitReceipt: (names.UNIT_RECEIPTS, qos.RESULT),
    msg.PlaybackState: (names.PLAYBACK, qos.LATCHED),
    DiagnosticArray: ('/diagnostics', 10),
}

STATUS = PlaybackStatus(
    'a bag', 100, 1.0, NOW_NS - 100, NOW_NS + 10**9, False, {'camera': UnitCounts(3, 2, thinned=1)}
)


class Speaker(Stage):
    """Publishes to a listener and lets it listen."""

    def __init__(self, listener: Node, bystander: Bystander) -> None:
        super().__init__(bystander, listener)
        self._publishers = {
            kind: bystander.node.create_publisher(kind, *topic) for kind, topic in TOPICS.items()
        }
        heard = [self._publishers[kind] for kind in (msg.TrackArray, msg.PlaybackState)]
        self.wait_until(lambda: all(p.get_subscription_count() == 2 for p in heard))

    def say(self, *messages: Any) -> None:
        for message in messages:
            self._publishers[type(message)].publish(message)


def hostile() -> list[Any]:
    """One message of each kind that cannot be true."""
    unit = conversions.to_features(a_unit())
    unit.grid = [1, 2, 3]
    tracks = conversions.to_track_array(a_decision(a_track()))
    tracks.modalities = []
    return [
        unit,
        tracks,
        msg.UnitReceipt(modality='camera', outcome=77),
        msg.PlaybackState(modalities=['camera'], finished=True),
    ]


@pytest.fixture
def record() -> LiveRecord:
    return LiveRecord()


@pytest.fixture
def speaker(ros: None, record: LiveRecord, bystander: Bystander) -> Iterator[Speaker]:
    speaker = Speaker(Recorder(record), bystander)
    yield speaker
    speaker.end()


def test_a_recorder_takes_in_what_a_graph_says(speaker: Speaker, record: LiveRecord) -> None:
    receipt = UnitReceipt('camera', 0, NOW_NS, NOW_NS)
    speaker.wait_until(
        lambda: record.decided and record.status is not None,
        lambda: speaker.say(
            conversions.to_receipt(receipt),
            conversions.to_playback_state(STATUS, NOW_NS),
            conversions.to_track_array(a_decision(a_track())),
        ),
    )
    assert record.status == STATUS
    assert record.newest is not None
    assert record.newest.window_end_ns == NOW_NS


def test_a_recorder_survives_what_cannot_be_true_and_says_so(
    speaker: Speaker, record: LiveRecord
) -> None:
    speaker.wait_until(lambda: len(record.input_problems) == 4, lambda: speaker.say(*hostile()))
    texts = {
        names.UNIT_FEATURES: 'radar unit 7: 3 bytes are no grid of (2, 3, 4) float16',
        names.TRACKS: 'TrackArray lists 0 modalities, 2 newest',
        names.UNIT_RECEIPTS: '77 is not a valid UnitOutcome',
        names.PLAYBACK: 'PlaybackState lists 1 modalities, 0 captured, 0 transferred, 0 skipped',
    }
    assert record.input_problems == {f'message on {n} not used': t for n, t in texts.items()}
    assert (record.decided, record.status) == (0, None)


def test_a_recorder_collects_what_encoders_found_wrong(
    speaker: Speaker, record: LiveRecord
) -> None:
    values = {'encoded': '7', 'problem radar: range': '16', 'problem radar: azimuth': '0'}
    status = DiagnosticStatus(values=[KeyValue(key=k, value=v) for k, v in values.items()])
    speaker.wait_until(
        lambda: record.input_problems, lambda: speaker.say(DiagnosticArray(status=[status]))
    )
    assert record.input_problems == {'radar: range': '16'}
