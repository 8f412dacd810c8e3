"""The log of decisions, or of updates: one JSON object per line, lossless up to rounding.

Floats are rounded (0.1 mm, 0.01 px), so that equal runs give equal files, byte for byte.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from mmedge_ros.core.data_types import Decision, Track, TrackLabel
from mmedge_ros.report.latency_metrics import critical_age_ms

_UPPER = np.triu_indices(6)


def rounded(value: float, digits: int) -> float | None:
    """Round for a file: None where the value is not finite, and never a negative zero."""
    number = float(value)
    return round(number, digits) + 0.0 if math.isfinite(number) else None


def decision_lines(decisions: Iterable[Decision], scale: float = 1.0) -> str:
    """Return the text of a decision log.

    :param scale: how much larger the recording's own pictures are than those of the boxes
    """
    return ''.join(
        json.dumps(_decision_object(decision, scale), allow_nan=False, separators=(',', ':'))
        + '\n'
        for decision in decisions
    )


def _decision_object(decision: Decision, scale: float) -> dict[str, Any]:
    newest = sorted(decision.newest_ns.items())
    return {
        'window_end_ns': int(decision.window_end_ns),
        'state_ns': int(decision.state_ns),
        'published_ns': int(decision.published_ns),
        'frame_id': decision.frame_id,
        'latency_ms': rounded(decision.latency * 1e3, 6),
        'ages_ms': {m: rounded((decision.published_ns - ns) / 1e6, 6) for m, ns in newest},
        'newest_ns': {m: int(ns) for m, ns in newest},
        'critical_age_ms': rounded(critical_age_ms(decision), 6),
        'configuration_ids': [int(number) for number in decision.configuration_ids],
        'skipped': list(decision.skipped),
        'lost': list(decision.lost),
        'late': list(decision.late),
        'degraded': list(decision.degraded),
        'tracks': [_track_object(track, decision.frame_id, scale) for track in decision.tracks],
        'trail': [[s.stage, int(s.begin_ns), int(s.end_ns)] for s in decision.trail],
    }


def _track_object(track: Track, frame_id: str, scale: float) -> dict[str, Any]:
    box = None if track.box is None else [rounded(edge * scale, 2) for edge in track.box]
    covariance = np.asarray(track.covariance, np.float64)[_UPPER].tolist()
    return {
        'id': int(track.id),
        'label': track.label,
        'score': rounded(track.score, 4),
        'box': box,
        'box_velocity': [rounded(speed * scale, 2) for speed in track.box_velocity],
        'position': [rounded(value, 4) for value in track.position],
        'velocity': [rounded(value, 4) for value in track.velocity],
        'covariance': [rounded(value, 8) for value in covariance],
        'frame_id': frame_id,
        'seen_by': list(track.seen_by),
        'age_ms': rounded(track.age * 1e3, 3),
        **_recognised_object(track.recognised),
    }


def _recognised_object(known: TrackLabel | None) -> dict[str, Any]:
    if known is None:
        return {}
    return {
        'label_confidence': rounded(known.confidence, 4),
        'label_source': known.source.name.lower(),
        'attributes': list(known.attributes),
        'novel': known.is_novel,
    }
