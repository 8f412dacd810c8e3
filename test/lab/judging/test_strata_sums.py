"""What a run adds to the figures of all people and of strata, beside what its report says."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hand_made_truth import BOX, decided, film, moved, run, track, true_person

from mmedge_lab.judging.bench import Sums
from mmedge_lab.judging.bench_table import draw_figure
from mmedge_lab.judging.flight_bootstrap import Drawings
from mmedge_lab.judging.strata_sums import (
    FIGURES,
    Stratum,
    person_sums,
    strata_in,
    strata_sums,
    sums_of_stratum,
)
from mmedge_ros.core.data_types import Box, Decision
from mmedge_ros.replay.ground_truth import GroundTruth
from mmedge_ros.report.accuracy import accuracy_of

FAR_BOX = Box(100.0, 210.0, 106.0, 225.0)


def judged(truth: GroundTruth, decisions: list[Decision]) -> tuple[Sums, dict[str, Any]]:
    record = run(decisions, truth)
    accuracy = accuracy_of(record, truth, at_once=False)
    assert accuracy is not None
    sums = strata_sums(record, truth, accuracy)
    assert person_sums(record, truth, accuracy).items() <= sums.items()
    return sums, accuracy.report()


@pytest.fixture
def walk() -> tuple[Sums, dict[str, Any]]:
    """One person near who is found, one far away who is not, and a box on nobody."""
    near = true_person(1, BOX, (10.0, 0.0, 0.0))
    far = true_person(2, FAR_BOX, (30.0, 4.0, 0.0), visibility=0.7)
    truth = film(lambda ms: [near, far])
    seen = track(1, moved(BOX, 4.0), (11.0, 0.0, 0.9))
    nobody = track(2, Box(500.0, 100.0, 540.0, 200.0), (8.0, -6.0, 0.9))
    return judged(truth, [decided(end, seen, nobody) for end in range(100, 1000, 100)])


def value(sums: Sums, name: str) -> float:
    return draw_figure(FIGURES[name], [sums], Drawings.of(range(1), 2)).value


def test_figures_are_those_of_the_report_of_the_run(walk: tuple[Sums, dict[str, Any]]) -> None:
    sums, report = walk
    for name in ('mean_iou', 'mean_iou_20px', 'streaming_mean_iou', 'recall', 'precision'):
        assert value(sums, name) == pytest.approx(report[name])
    assert value(sums, 'range_error') == pytest.approx(report['range_error_m'])
    assert value(sums, 'position_error') == pytest.approx(report['position_error_m'])


def test_people_are_counted_in_the_strata_they_belong_to(
    walk: tuple[Sums, dict[str, Any]],
) -> None:
    sums, _ = walk
    assert (sums['people'], sums['people_20px']) == (18, 9)
    for stratum in (
        Stratum('range', '25+'),
        Stratum('size', '8-20'),
        Stratum('occlusion', 'free'),
    ):
        assert sums_of_stratum(sums, stratum)['people'] == 9
    assert sums_of_stratum(sums, Stratum('range', '25+'))['overlap'] == 0.0
    assert sums_of_stratum(sums, Stratum('light', 'night')) == {}
    assert [s for s in strata_in([sums, {}]) if s.factor in ('size', 'light')] == [
        Stratum('size', '8-20'),
        Stratum('size', '80+'),
        Stratum('light', 'day'),
    ]


def test_wrong_boxes_count_for_flights_and_errors_by_range(
    walk: tuple[Sums, dict[str, Any]],
) -> None:
    sums, report = walk
    day, near, far, tall = (
        sums_of_stratum(sums, Stratum(*of))
        for of in (('light', 'day'), ('range', '10-15'), ('range', '25+'), ('size', '80+'))
    )
    assert value(day, 'precision') == pytest.approx(report['precision'])
    assert math.isnan(value(near, 'precision'))
    assert [len(of['position_errors']) for of in (day, near, far)] == [9, 9, 0]  # type: ignore[arg-type]
    assert 'position_errors' not in tall


def test_whoever_has_a_track_within_two_metres_is_placed_with_or_without_a_box(
    walk: tuple[Sums, dict[str, Any]],
) -> None:
    assert (walk[0]['asked'], walk[0]['placed']) == (18, 9)
    radar = track(1, None, (11.0, 1.0, 0.9), label='moving')
    truth = film(lambda ms: [true_person()])
    sums, _ = judged(truth, [decided(end, radar) for end in range(100, 1000, 100)])
    assert (sums['placed'], sums['found']) == (9, 0)
