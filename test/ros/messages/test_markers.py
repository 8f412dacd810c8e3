"""What the text panel in RViz says."""

from __future__ import annotations

from dataclasses import replace

from hand_made_decisions import NOW_NS, a_decision, a_track

from mmedge_ros.core.data_types import Decision
from mmedge_ros.ros.messages.markers import status_text


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
