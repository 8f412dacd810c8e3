"""How often the radar sees the people whom the camera sees."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from mmedge_ros.core.data_types import CAMERA, RADAR
from mmedge_ros.core.run_record import RunRecord
from mmedge_ros.report.glance import sentences
from mmedge_ros.report.radar_detection import radar_detection
from mmedge_ros.report.report import report_of


def without_radar(record: RunRecord, number: int, last: int) -> RunRecord:
    """Leave the radar out of a track in the decisions up to one."""
    decisions = [
        replace(
            decision,
            tracks=tuple(
                replace(t, seen_by=(CAMERA,)) if t.id == number else t for t in decision.tracks
            ),
        )
        for decision in record.decisions[:last]
    ]
    return replace(record, decisions=[*decisions, *record.decisions[last:]])


def test_people_seen_by_both_sensors_are_counted_by_their_distance(
    build_run: Callable[[float], RunRecord],
) -> None:
    near, far = radar_detection(without_radar(build_run(20.0), 1, 100))
    assert (near['from_m'], near['to_m'], near['share']) == (0, 5, pytest.approx(0.5, abs=0.06))
    assert (far['from_m'], far['to_m'], far['share']) == (5, 10, 1.0)
    assert 18 <= near['person_seconds'] <= 20


def test_who_is_not_in_the_picture_is_not_counted(build_run: Callable[[float], RunRecord]) -> None:
    record = build_run(20.0)
    hidden = [
        replace(d, tracks=tuple(replace(t, box=None, seen_by=(RADAR,)) for t in d.tracks))
        for d in record.decisions
    ]
    assert radar_detection(replace(record, decisions=hidden)) == []


def test_the_report_says_it(build_run: Callable[[float], RunRecord]) -> None:
    words = ' '.join(sentences(report_of(build_run(20.0))))
    assert 'the radar saw within a second 100 % at 0 to 5 m, 100 % at 5 to 10 m.' in words
