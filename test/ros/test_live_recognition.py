"""The live graph recognises its tracks, and fusion publishes what it is told of them."""

from __future__ import annotations

from pathlib import Path

from tiny_recogniser import write_tiny_recogniser

from mmedge_ros.ros.graph.options import GraphOptions
from mmedge_ros.ros.sessions.live_session import replay_live


def test_tracks_of_a_live_graph_carry_labels_and_what_is_new_is_announced(
    little_bag: Path, detector: Path, tmp_path: Path
) -> None:
    model = write_tiny_recogniser(tmp_path / 'recogniser')
    record = replay_live(
        GraphOptions(
            bag=str(little_bag),
            detector=str(detector),
            logs=str(tmp_path / 'logs'),
            recogniser=str(model),
        )
    )
    labels = [track.recognised for d in record.decisions for track in d.tracks if track.recognised]
    assert len(labels) > len(record.decisions) / 2
    assert labels[-1].label == 'person'
    assert labels[-1].attributes[0] == 'blue'
    assert [novelty.label for novelty in record.novelties] == ['person']
    first_ns = record.decisions[0].window_end_ns
    assert 0 <= record.novelties[0].stamp_ns - first_ns < 1_000_000_000, 'in the time of the bag'
