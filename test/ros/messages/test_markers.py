"""What the text panel in RViz says."""

from __future__ import annotations

from dataclasses import replace

from hand_made_decisions import NOW_NS, a_decision, a_track
from visualization_msgs.msg import Marker

from mmedge_ros.data_types import Configuration, Decision, ModalityConfiguration
from mmedge_ros.ros.messages.markers import status_marker, status_text


def decided() -> Decision:
    """Published 12 ms after its window, with a picture that was 50 ms old then."""
    return replace(
        a_decision(a_track()),
        window_end_ns=NOW_NS,
        published_ns=NOW_NS + 12_000_000,
        newest_ns={'camera': NOW_NS - 38_000_000},
        skipped=('radar',),
        late=(),
        lost=(),
        degraded=('no odometry',),
    )


def test_latency_age_and_what_was_left_out_are_told() -> None:
    assert status_text(decided(), None).splitlines() == [
        '1 track',
        'latency 12.0 ms, age camera 50 ms',
        'configuration: native rates, default levels',
        'skipped: radar',
        'degraded: no odometry',
    ]


def test_the_configuration_in_force_is_told() -> None:
    parts = (ModalityConfiguration('camera', 10.0, 'small'), ModalityConfiguration('radar'))
    text = status_text(decided(), Configuration(7, modalities=parts))
    assert 'configuration 7: camera 10 Hz small, radar native rate' in text


def test_the_panel_stands_above_the_rig_in_the_decisions_frame() -> None:
    marker = status_marker(decided(), None)
    assert (marker.type, marker.action) == (Marker.TEXT_VIEW_FACING, Marker.ADD)
    assert marker.header.frame_id == decided().frame_id
    assert marker.pose.position.z > 2.0
    assert marker.text == status_text(decided(), None)
