"""Errors that last, and returns that may be another object's."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hand_made_readings import BODY, BOX, PERIOD, by_height, by_radar, deviation, followed
from hand_made_units import at
from hypothesis import given, settings
from hypothesis import strategies as st

from mmedge_ros.core.data_types import CAMERA, RADAR


def test_a_hundred_readings_with_one_error_are_not_believed_a_hundred_times() -> None:
    lasting = [by_height(n * PERIOD, 10.0) for n in range(100)]
    anew = [replace(reading, lasting={}) for reading in lasting]
    assert deviation(followed(*lasting)) > 0.6 * BODY * 10.0
    assert deviation(followed(*anew)) < 0.6 * BODY * 10.0


@pytest.mark.parametrize('rate', [5.0, 10.0, 30.0])
def test_the_deviation_of_a_position_hardly_depends_on_the_rate_of_pictures(rate: float) -> None:
    readings = [by_height(n * 1e3 / rate, 10.0) for n in range(round(4 * rate))]
    assert deviation(followed(*readings)) == pytest.approx(1.5, abs=0.35)


def test_the_errors_of_tall_and_small_people_are_as_large_as_their_covariance() -> None:
    random = np.random.default_rng(3)
    squares = []
    for _ in range(60):
        body = 10.0 * (1.0 + BODY * random.normal())
        readings = [by_height(n * PERIOD, body + 10.0 * BOX * random.normal()) for n in range(40)]
        state = followed(*readings)
        squares.append((state.tracks[0].mean[0] - 10.0) ** 2 / state.tracks[0].covariance[0, 0])
    assert 0.5 < np.mean(squares) < 1.5


def test_errors_of_bearings_do_not_draw_tracks_by_boxes_alone_towards_the_camera() -> None:
    """Rays that differ by those errors all but meet at the camera: 11 m instead of 20."""
    random, result = np.random.default_rng(5), []
    for _ in range(10):
        readings = []
        for n in range(60):
            distance = 20.0 * (1.0 + BOX * random.normal())
            ray = np.array([1.0, *(0.005 * random.normal(size=2))])
            along = np.outer(ray, ray) / (ray @ ray)
            across = 0.1**2 * (np.eye(3) - along)
            readings.append(
                replace(
                    by_height(n * PERIOD, distance),
                    position=distance * ray / np.linalg.norm(ray),
                    covariance=(BODY**2 + BOX**2) * distance**2 * along + across,
                    lasting={CAMERA: (BODY * distance) ** 2 * along},
                )
            )
        result.append(np.linalg.norm(followed(*readings).tracks[0].mean[:3]))
    assert np.mean(result) == pytest.approx(20.0, abs=2.0)


def test_returns_at_an_unpredicted_range_are_another_objects() -> None:
    known = [by_radar(n * PERIOD, 10.0, 10.5) for n in range(20)]
    state = followed(*known, by_radar(20 * PERIOD, 13.0, 10.5))
    (track,) = state.tracks
    assert track.mean[0] == pytest.approx(10.0, abs=0.3)
    assert abs(track.mean[3]) < 0.5
    assert track.updated_ns[RADAR] == at(19 * PERIOD)
    assert track.updated_ns[CAMERA] == at(20 * PERIOD)


def test_returns_place_a_person_that_the_picture_placed_wrongly() -> None:
    tall = [by_height(n * PERIOD, 8.0) for n in range(20)]
    state = followed(*tall, *(by_radar(n * PERIOD, 10.0, 8.0) for n in range(20, 40)))
    (track,) = state.tracks
    assert track.mean[0] == pytest.approx(10.0, abs=0.3)
    assert deviation(state) < 0.4


def test_a_person_tracked_by_returns_of_another_is_placed_right_again() -> None:
    wrong = [by_radar(n * PERIOD, 13.0, 10.0) for n in range(4)]
    state = followed(*wrong, *(by_radar(n * PERIOD, 10.0, 10.0) for n in range(4, 50)))
    assert state.tracks[0].mean[0] == pytest.approx(10.0, abs=0.3)


def test_between_two_explanations_the_covariance_covers_both() -> None:
    known = [by_radar(n * PERIOD, 10.0, 10.0) for n in range(10)]
    before = followed(*known)
    spreads = []
    for x in np.linspace(10.0, 12.0, 81):
        state = followed(by_radar(10 * PERIOD, x, 10.0), state=before, exchange_rate=0.0)
        covariance = state.tracks[0].covariance
        assert np.linalg.eigvalsh(covariance).min() > 0.0
        spreads.append(covariance[0, 0])
    undecided = int(np.argmax(spreads))
    assert 0 < undecided < 80
    assert spreads[undecided] > 1.1 * max(spreads[0], spreads[-1])


@pytest.mark.parametrize('place', [7.0, 13.0])
def test_a_sure_range_that_all_in_the_box_contradicts_is_given_up_soon(place: float) -> None:
    """The box has gone over to another person; without that thought it takes thrice as long."""
    known = followed(*(by_radar(n * PERIOD, 10.0, 10.0) for n in range(40)))
    others = [by_radar(n * PERIOD, place, place) for n in range(40, 55)]
    assert followed(*others, state=known).tracks[0].mean[0] == pytest.approx(place, abs=0.1)
    stubborn = followed(*others, state=known, exchange_rate=0.0).tracks[0]
    assert abs(stubborn.mean[0] - 10.0) < 1.0


def test_what_fits_no_explanation_may_be_another_object_and_the_covariance_covers_that() -> None:
    known = followed(*(by_radar(n * PERIOD, 10.0, 10.0) for n in range(20)))
    strange, usual = by_radar(20 * PERIOD, 13.0, 13.0), by_radar(20 * PERIOD, 10.2, 10.0)
    spreads = [
        [deviation(followed(seen, state=known, exchange_rate=rate)) for rate in (0.0, 0.1, 10.0)]
        for seen in (strange, usual)
    ]
    never, seldom, often = spreads[0]
    assert never < 0.2 < seldom < often
    assert max(spreads[1]) == pytest.approx(min(spreads[1])), 'what was predicted raises no doubt'


ranges = st.floats(0.5, 80.0)


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.tuples(ranges, ranges, st.floats(-40.0, 40.0)), min_size=1, max_size=12),
    st.floats(0.0, 10.0),
)
def test_whatever_returns_and_heights_say_states_stay_finite_and_covariances_positive(
    places: list[tuple[float, float, float]], exchange_rate: float
) -> None:
    readings = [by_radar(n * PERIOD, x, h, odds, BODY) for n, (x, h, odds) in enumerate(places)]
    (track,) = followed(*readings, exchange_rate=exchange_rate).tracks
    assert np.isfinite(track.mean).all()
    assert np.linalg.eigvalsh(track.covariance).min() > 0.0
    assert np.isfinite(track.height_bias.value)


def test_a_step_with_doubtful_returns_leaves_the_state_it_was_given_as_it_was() -> None:
    state = followed(*(by_radar(n * PERIOD, 10.0, 10.5) for n in range(5)))
    kept = state.tracks[0].covariance.copy()
    followed(by_radar(5 * PERIOD, 10.4, 10.5), state=state)
    np.testing.assert_array_equal(state.tracks[0].covariance, kept)


def test_a_person_first_seen_with_doubtful_returns_may_be_at_either_place() -> None:
    sure, doubtful = (followed(by_radar(0.0, 13.0, 10.0, odds)) for odds in (20.0, 0.0))
    assert sure.tracks[0].mean[0] == pytest.approx(13.0, abs=0.01)
    assert deviation(sure) == pytest.approx(0.25, abs=0.02)
    assert doubtful.tracks[0].mean[0] == pytest.approx(11.5)
    assert deviation(doubtful) > 1.5
