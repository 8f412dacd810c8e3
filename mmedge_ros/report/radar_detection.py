"""How often the radar sees within a second the people whom the camera sees, by their distance."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import numpy as np

from mmedge_ros.core.data_types import NS_PER_S, RADAR, Decision
from mmedge_ros.core.run_record import RunRecord
from mmedge_ros.report.run_metrics import modalities_of
from mmedge_ros.report.trajectories import sensor_pose

_BIN, _FARTHEST = 5, 100  # m
# Fewer seconds of people say nothing.
_LEAST_SECONDS = 5


def radar_detection(record: RunRecord) -> list[dict[str, float]]:
    """Return rows of ``from_m``, ``to_m``, ``person_seconds`` and the ``share`` of them seen.

    A second counts for a track that has a box in all of its decisions.
    """
    if RADAR not in modalities_of(record):
        return []
    counts: defaultdict[int, list[int]] = defaultdict(lambda: [0, 0])
    for decisions in _seconds(record):
        last = decisions[-1]
        eye = sensor_pose(record, last.state_ns, last.frame_id).translation
        for track in last.tracks:
            same = [t for d in decisions for t in d.tracks if t.id == track.id and t.box]
            distance = float(np.linalg.norm(track.position - eye))
            if len(same) < len(decisions) or not distance < _FARTHEST:
                continue
            count = counts[int(distance // _BIN)]
            count[0] += 1
            # What a decision calls seen was seen in its window.
            count[1] += any(RADAR in t.seen_by for t in same)
    return [
        {
            'from_m': _BIN * place,
            'to_m': _BIN * (place + 1),
            'person_seconds': people,
            'share': seen / people,
        }
        for place, (people, seen) in sorted(counts.items())
        if people >= _LEAST_SECONDS
    ]


def _seconds(record: RunRecord) -> Iterator[list[Decision]]:
    """Yield the decisions of each second whose windows lie inside it."""
    grouped: defaultdict[int, list[Decision]] = defaultdict(list)
    for decision in record.decisions:
        second, rest = divmod(decision.window_end_ns, NS_PER_S)
        if rest == 0 or rest >= round(record.window * NS_PER_S):
            grouped[second - (rest == 0)].append(decision)
    yield from grouped.values()
