"""Reads a decision log back, to compare runs or to judge them again."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np

from mmedge_lab.judging import EvaluationError
from mmedge_ros.core.data_types import Box, Decision, FloatArray, StageTiming, Track

_UPPER = np.triu_indices(6)
_SAME = ('window_end_ns', 'state_ns', 'frame_id', 'newest_ns', 'published_ns')
_TUPLES = ('configuration_ids', 'skipped', 'lost', 'late', 'degraded')


def read_decisions(path: Path) -> list[Decision]:
    """Read the decisions, or updates, of a log.

    :raises EvaluationError: if it is none
    """
    try:
        # Lines end in a line feed alone: names may hold every other separator.
        return [_decision(json.loads(line)) for line in path.read_bytes().split(b'\n') if line]
    except (OSError, ValueError, KeyError, TypeError) as err:
        raise EvaluationError(f'{path} is no log of decisions: {err}') from err


def _decision(row: dict[str, Any]) -> Decision:
    given = {name: row[name] for name in _SAME} | {name: tuple(row[name]) for name in _TUPLES}
    return Decision(
        **given,
        tracks=tuple(_track(entry) for entry in row['tracks']),
        trail=tuple(StageTiming(*stage) for stage in row['trail']),
    )


def _track(row: dict[str, Any]) -> Track:
    upper = np.zeros((6, 6))
    upper[_UPPER] = row['covariance']
    return Track(
        id=row['id'],
        label=row['label'],
        score=row['score'],
        box=None if row['box'] is None else Box(*row['box']),
        position=_numbers(row['position']),
        velocity=_numbers(row['velocity']),
        covariance=upper + np.triu(upper, 1).T,
        seen_by=tuple(row['seen_by']),
        age=row['age_ms'] / 1e3,
        box_velocity=tuple(row['box_velocity']),
    )


def _numbers(values: list[float | None]) -> FloatArray:
    return np.array([math.nan if value is None else value for value in values], np.float64)
