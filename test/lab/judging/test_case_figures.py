"""What a run adds to the figures of a case, beside what a report of it says."""

import math

import numpy as np
import pytest
from hand_made_truth import BOX, decided, film, moved, run, track, true_person
from hypothesis import given
from hypothesis import strategies as st

from mmedge_lab.judging.case_figures import (
    BEYOND,
    EASY,
    MEDIANS,
    NIGHT,
    OVERALL,
    QUOTIENTS,
    CaseFigures,
    Stratum,
    case_figures,
    figures_bytes,
    read_figures,
)
from mmedge_lab.judging.flight_bootstrap import Drawings
from mmedge_ros.data_types import Box
from mmedge_ros.report.accuracy import accuracy_of

FAR_BOX = Box(100.0, 210.0, 106.0, 225.0)


def judged(truth, decisions) -> tuple[CaseFigures, dict]:
    record = run(decisions, truth)
    accuracy = accuracy_of(record, truth, at_once=False)
    return case_figures(record, truth, accuracy), accuracy.report()


@pytest.fixture
def walk() -> tuple[CaseFigures, dict]:
    """One person near who is found, one far away who is not, and a box on nobody."""
    near = true_person(1, BOX, (10.0, 0.0, 0.0))
    far = true_person(2, FAR_BOX, (30.0, 4.0, 0.0), visibility=0.7)
    truth = film(lambda ms: [near, far])
    seen = track(1, moved(BOX, 4.0), (11.0, 0.0, 0.9))
    nobody = track(2, Box(500.0, 100.0, 540.0, 200.0), (8.0, -6.0, 0.9))
    return judged(truth, [decided(end, seen, nobody) for end in range(100, 1000, 100)])


def test_figures_are_those_of_the_report_of_the_run(walk) -> None:
    figures, report = walk
    drawings = Drawings.of(range(1), 10)
    for name in ('mean_iou', 'mean_iou_20px', 'streaming_mean_iou', 'recall', 'precision'):
        assert drawings.estimate([figures], OVERALL, name).value == pytest.approx(report[name])
    for name in MEDIANS:
        assert drawings.estimate([figures], OVERALL, name).value == pytest.approx(
            report[name], rel=1e-6
        )


def test_people_are_counted_in_the_strata_they_belong_to(walk) -> None:
    figures, _ = walk
    assert figures.value(OVERALL, 'people') == 18
    assert figures.value(BEYOND, 'people') == figures.value(Stratum('size', '8-20'), 'people') == 9
    assert figures.value(BEYOND, 'overlap') == 0.0
    # Half hidden people are no easy ones.
    assert figures.value(EASY, 'people') == figures.value(EASY, 'found') == 9
    assert figures.value(NIGHT, 'people') == 0.0
    assert Stratum('light', 'day') in figures.conditions
    assert figures.value(OVERALL, 'people_20px') == 9


def test_whoever_has_a_track_within_two_metres_is_placed(walk) -> None:
    figures, _ = walk
    assert figures.value(OVERALL, 'asked') == 18
    assert figures.value(OVERALL, 'placed') == 9


def test_a_track_without_box_places_somebody_too() -> None:
    truth = film(lambda ms: [true_person()])
    radar = track(1, None, (11.0, 1.0, 0.9), label='moving')
    figures, _ = judged(truth, [decided(end, radar) for end in range(100, 1000, 100)])
    assert figures.value(OVERALL, 'placed') == 9
    assert figures.value(OVERALL, 'found') == 0


def test_one_track_places_one_person_only() -> None:
    pair = [
        true_person(1, BOX, (10.0, 0.5, 0.0)),
        true_person(2, moved(BOX, 60.0), (10.0, -0.5, 0.0)),
    ]
    truth = film(lambda ms: pair)
    figures, _ = judged(truth, [decided(500, track(position=(10.0, 0.0, 0.9)))])
    assert (figures.value(OVERALL, 'asked'), figures.value(OVERALL, 'placed')) == (2, 1)


def test_errors_are_told_apart_by_range_and_flight_but_not_by_size(walk) -> None:
    figures, _ = walk
    assert len(figures.errors) == 9
    assert len(figures.errors_of(Stratum('range', '10-15'))) == 9
    assert len(figures.errors_of(BEYOND)) == 0
    assert len(figures.errors_of(Stratum('light', 'day'))) == 9
    assert len(figures.errors_of(NIGHT)) == 0
    assert figures.errors_of(Stratum('size', '20-40')) is None
    estimate = Drawings.of(range(1), 10).estimate(
        [figures], Stratum('size', '20-40'), 'range_error_m'
    )
    assert math.isnan(estimate.value)


def test_figures_come_back_from_a_file(walk) -> None:
    figures, _ = walk
    content = figures_bytes(figures, 'a key')
    again = read_figures(content, 'a key')
    assert again is not None
    assert again.conditions == figures.conditions
    assert list(again.sums) == list(figures.sums)
    for stratum, row in figures.sums.items():
        np.testing.assert_array_equal(again.sums[stratum], row)
    np.testing.assert_allclose(again.errors, figures.errors, rtol=1e-6)


def test_figures_of_something_else_are_not_taken(walk) -> None:
    assert read_figures(figures_bytes(walk[0], 'a key'), 'another key') is None


@given(place=st.floats(0.0, 1.0), value=st.integers(0, 255), cut=st.booleans(), junk=st.binary())
def test_a_damaged_file_is_no_figures_and_no_error(place, value, cut, junk) -> None:
    figures = CaseFigures({OVERALL: np.ones(16)}, np.ones((2, 3)))
    content = bytearray(figures_bytes(figures, 'key'))
    if cut:
        content = content[: int(place * (len(content) - 1))] + junk
    else:
        content[int(place * (len(content) - 1))] = value
    result = read_figures(bytes(content), 'key')
    assert result is None or set(result.sums) <= {OVERALL}


def test_every_figure_is_made_of_known_sums() -> None:
    figures = CaseFigures({OVERALL: np.ones(16)}, np.ones((2, 3)))
    for above, below in QUOTIENTS.values():
        assert figures.value(OVERALL, above) == figures.value(OVERALL, below) == 1.0
