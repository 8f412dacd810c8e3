"""What a recogniser said of the tracks of a run: where labels were from, and what was new."""

from __future__ import annotations

from collections import Counter
from typing import Any

from mmedge_ros.core.data_types import NS_PER_S, LabelSource
from mmedge_ros.core.run_record import RunRecord

_MOST_NOVELTIES = 200


def recognition_report(record: RunRecord) -> dict[str, Any] | None:
    """Return where labels were from, and all novelties; None for a run without a recogniser.

    ``labels`` counts each track in each decision: by the detector, by a look in full, recalled by
    the semantic memory, or reused from an earlier look. ``at_s`` of a novelty is since the first
    decision.
    """
    sources = Counter(
        track.recognised.source if track.recognised else LabelSource.DETECTOR
        for decision in record.decisions
        for track in decision.tracks
    )
    if not record.novelties and not record.recognition and set(sources) <= {LabelSource.DETECTOR}:
        return None
    begin_ns = record.decisions[0].window_end_ns if record.decisions else 0
    return {
        'labels': {source.name.lower(): sources[source] for source in LabelSource},
        'novelties': [
            {
                'at_s': round((novelty.stamp_ns - begin_ns) / NS_PER_S, 2),
                'track': novelty.track_id,
                'label': novelty.label,
                'confidence': novelty.confidence,
                'position': [float(value) for value in novelty.position],
                'reason': novelty.reason,
            }
            for novelty in record.novelties[:_MOST_NOVELTIES]
        ],
        'recogniser': dict(record.recognition),
    }
