"""The decision log: one JSON object per line and decision, lossless up to rounding.

Floats are rounded (0.1 mm, 0.01 px), so that equal runs give equal files, byte for byte.
"""

from __future__ import annotations

import json
import math
import reprlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from mmedge_ros.data_types import Box, Decision, FloatArray, StageTiming, Track
from mmedge_ros.lab.evaluation import EvaluationError
from mmedge_ros.lab.evaluation.latency_metrics import critical_age_ms

_UPPER = np.triu_indices(6)
_INT64 = 2**63


def rounded(value: float, digits: int) -> float | None:
    """Round for a file: None where the value is not finite, and never a negative zero."""
    number = float(value)
    return round(number, digits) + 0.0 if math.isfinite(number) else None


def decision_lines(decisions: Iterable[Decision]) -> str:
    """Return the text of a decision log."""
    return ''.join(
        json.dumps(_decision_object(decision), allow_nan=False, separators=(',', ':')) + '\n'
        for decision in decisions
    )


def read_decisions(path: Path) -> list[Decision]:
    """Read a decision log back.

    :raises EvaluationError: for a file that cannot be read or a line that is no decision; the
        message holds the line number and what is wrong with it
    """
    try:
        lines = Path(path).read_bytes().split(b'\n')
    except OSError as err:
        raise EvaluationError(
            f'cannot read the decision log {path}: {err.strerror}; give the decisions.jsonl of '
            f'a report folder'
        ) from err
    return [
        _decision(_Fields(_parsed(line, f'{path}, line {number}'), f'{path}, line {number}'))
        for number, line in enumerate(lines, 1)
        if line.strip()
    ]


def _decision_object(decision: Decision) -> dict[str, Any]:
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
        'tracks': [_track_object(track, decision.frame_id) for track in decision.tracks],
        'trail': [[s.stage, int(s.begin_ns), int(s.end_ns)] for s in decision.trail],
    }


def _track_object(track: Track, frame_id: str) -> dict[str, Any]:
    box = None if track.box is None else [rounded(edge, 2) for edge in track.box]
    covariance = np.asarray(track.covariance, np.float64)[_UPPER].tolist()
    return {
        'id': int(track.id),
        'label': track.label,
        'score': rounded(track.score, 4),
        'box': box,
        'box_velocity': [rounded(speed, 2) for speed in track.box_velocity],
        'position': [rounded(value, 4) for value in track.position],
        'velocity': [rounded(value, 4) for value in track.velocity],
        'covariance': [rounded(value, 8) for value in covariance],
        'frame_id': frame_id,
        'seen_by': list(track.seen_by),
        'age_ms': rounded(track.age * 1e3, 3),
    }


def _parsed(line: bytes, place: str) -> Any:
    try:
        return json.loads(line.decode(), parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as err:
        raise EvaluationError(
            f'{place}: no JSON object ({err}); the file is cut or is no decision log'
        ) from err


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f'{name} is not JSON')


class _Fields:
    """A JSON object whose fields are taken out with a check of their type."""

    def __init__(self, value: Any, place: str) -> None:
        self.place = place
        if not isinstance(value, dict):
            self._refuse('', value, 'an object')
        self._values: dict[str, Any] = value

    def _refuse(self, name: str, value: Any, kind: str) -> NoReturn:
        # reprlib, because a hostile value may be nested too deeply for repr.
        raise EvaluationError(
            f'{self.place}: {name or "the line"} must be {kind}, not {reprlib.repr(value)}; '
            f'write the log anew with a replay'
        )

    def get(self, name: str) -> Any:
        if name not in self._values:
            raise EvaluationError(
                f'{self.place}: the key {name!r} is missing; the file is no decision log or '
                f'was written by another version'
            )
        return self._values[name]

    def text(self, name: str) -> str:
        value = self.get(name)
        return value if isinstance(value, str) else self._refuse(name, value, 'a text')

    def texts(self, name: str) -> tuple[str, ...]:
        value = self._list(name)
        if not all(isinstance(item, str) for item in value):
            self._refuse(name, value, 'a list of texts')
        return tuple(value)

    def integer(self, name: str) -> int:
        return self._integer(name, self.get(name))

    def integers(self, name: str) -> tuple[int, ...]:
        return tuple(self._integer(name, item) for item in self._list(name))

    def instants(self, name: str) -> dict[str, int]:
        value = self.get(name)
        if not isinstance(value, dict):
            self._refuse(name, value, 'an object of instants')
        return {key: self._integer(name, item) for key, item in value.items()}

    def number(self, name: str) -> float:
        return self._number(name, self.get(name))

    def numbers(self, name: str, count: int) -> FloatArray:
        value = self._list(name)
        if len(value) != count:
            self._refuse(name, value, f'a list of {count} numbers')
        return np.array([self._number(name, item) for item in value], np.float64)

    def objects(self, name: str) -> list[_Fields]:
        return [_Fields(item, f'{self.place}, {name}') for item in self._list(name)]

    def trail(self, name: str) -> tuple[StageTiming, ...]:
        stages = []
        for item in self._list(name):
            if not (isinstance(item, list) and len(item) == 3 and isinstance(item[0], str)):
                self._refuse(name, item, 'a list of [stage, begin_ns, end_ns]')
            begin_ns, end_ns = (self._integer(name, instant) for instant in item[1:])
            stages.append(StageTiming(item[0], begin_ns, end_ns))
        return tuple(stages)

    def _list(self, name: str) -> list[Any]:
        value = self.get(name)
        return value if isinstance(value, list) else self._refuse(name, value, 'a list')

    def _integer(self, name: str, value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or abs(value) >= _INT64:
            self._refuse(name, value, 'a 64-bit integer')
        return value

    def _number(self, name: str, value: Any) -> float:
        if value is None:
            return math.nan
        if isinstance(value, bool) or not isinstance(value, int | float):
            self._refuse(name, value, 'a number or null')
        if abs(value) > 1e300:
            self._refuse(name, value, 'a number of sensible size')
        return float(value)


def _decision(fields: _Fields) -> Decision:
    return Decision(
        window_end_ns=fields.integer('window_end_ns'),
        state_ns=fields.integer('state_ns'),
        frame_id=fields.text('frame_id'),
        tracks=tuple(_track(item) for item in fields.objects('tracks')),
        newest_ns=fields.instants('newest_ns'),
        configuration_ids=fields.integers('configuration_ids'),
        skipped=fields.texts('skipped'),
        lost=fields.texts('lost'),
        late=fields.texts('late'),
        degraded=fields.texts('degraded'),
        trail=fields.trail('trail'),
        published_ns=fields.integer('published_ns'),
    )


def _track(fields: _Fields) -> Track:
    covariance = np.zeros((6, 6))
    covariance[_UPPER] = fields.numbers('covariance', len(_UPPER[0]))
    covariance = np.triu(covariance) + np.triu(covariance, 1).T
    right, down = fields.numbers('box_velocity', 2)
    box = None if fields.get('box') is None else Box(*map(float, fields.numbers('box', 4)))
    return Track(
        id=fields.integer('id'),
        label=fields.text('label'),
        score=fields.number('score'),
        box=box,
        position=fields.numbers('position', 3),
        velocity=fields.numbers('velocity', 3),
        covariance=covariance,
        seen_by=fields.texts('seen_by'),
        age=fields.number('age_ms') / 1e3,
        box_velocity=(float(right), float(down)),
    )
