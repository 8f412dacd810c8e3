"""Errors that last, and returns that may be somebody else's."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hand_made_units import at

from mmedge_ros.data_types import CAMERA, RADAR, Box, Measurement
from mmedge_ros.tracking.track import TrackerState
from mmedge_ros.tracking.tracker import Tracker

PERIOD = 50.0
BODY, BOX = 0.15, 0.08
NAN = float('nan')


def along(deviation: float) -> np.ndarray:
    """Covariance (3, 3) of an error along x."""
    return np.diag([deviation**2, 0.0, 0.0])


def by_height(ms: float, x: float) -> Measurement:
    """A person in the picture, as far away as the box is tall."""
    covariance = along(np.hypot(BODY, BOX) * x) + 0.05**2 * np.eye(3)
    return Measurement(
        at(ms),
        'person',
        0.9,
        Box(300.0, 200.0, 340.0, 320.0),
        np.array([x, 0.0, 0.0]),
        covariance,
        NAN,
        0.1,
        np.zeros(3),
        (CAMERA,),
        'height',
        lasting={CAMERA: along(BODY * x)},
    )


def by_radar(ms: float, x: float, height_x: float, odds: float = 1.5) -> Measurement:
    """The same with returns at ``x`` m in its box."""
    camera = by_height(ms, height_x)
    return replace(
        camera,
        position=np.array([x, 0.0, 0.0]),
        covariance=along(0.25) + 0.05**2 * np.eye(3),
        radial_velocity=0.0,
        seen_by=(CAMERA, RADAR),
        range_from='radar',
        lasting={RADAR: along(0.1)},
        otherwise=camera,
        odds=odds,
    )


def followed(*readings: Measurement, state: TrackerState | None = None) -> TrackerState:
    tracker, state = Tracker(), state or TrackerState()
    for reading in readings:
        state = tracker.step(state, reading.stamp_ns, [reading])
    assert len(state.tracks) == 1
    return state


def deviation(state: TrackerState) -> float:
    return float(np.sqrt(state.tracks[0].covariance[0, 0]))


def test_a_hundred_readings_with_one_error_are_not_believed_a_hundred_times() -> None:
    lasting = [by_height(n * PERIOD, 10.0) for n in range(100)]
    anew = [replace(reading, lasting={}) for reading in lasting]
    assert deviation(followed(*lasting)) > 0.6 * BODY * 10.0
    assert deviation(followed(*anew)) < 0.6 * BODY * 10.0


@pytest.mark.parametrize('rate', [5.0, 10.0, 30.0])
def test_what_is_claimed_of_a_body_hardly_depends_on_the_rate_of_pictures(rate: float) -> None:
    readings = [by_height(n * 1e3 / rate, 10.0) for n in range(round(4 * rate))]
    assert deviation(followed(*readings)) == pytest.approx(1.5, abs=0.35)


def test_the_errors_of_tall_and_small_people_are_as_large_as_claimed() -> None:
    random = np.random.default_rng(3)
    squares = []
    for _ in range(60):
        body = 10.0 * (1.0 + BODY * random.normal())
        readings = [by_height(n * PERIOD, body + 10.0 * BOX * random.normal()) for n in range(40)]
        state = followed(*readings)
        squares.append((state.tracks[0].mean[0] - 10.0) ** 2 / state.tracks[0].covariance[0, 0])
    assert 0.5 < np.mean(squares) < 1.5


def test_returns_at_an_unforeseen_range_are_somebody_elses() -> None:
    known = [by_radar(n * PERIOD, 10.0, 10.5) for n in range(20)]
    state = followed(*known, by_radar(20 * PERIOD, 13.0, 10.5))
    (track,) = state.tracks
    assert track.mean[0] == pytest.approx(10.0, abs=0.3)
    assert abs(track.mean[3]) < 0.5
    assert track.updated_ns[RADAR] == at(19 * PERIOD)
    assert track.updated_ns[CAMERA] == at(20 * PERIOD)


def test_returns_tell_where_somebody_is_whom_the_picture_placed_wrongly() -> None:
    tall = [by_height(n * PERIOD, 8.0) for n in range(20)]
    state = followed(*tall, *(by_radar(n * PERIOD, 10.0, 8.0) for n in range(20, 40)))
    (track,) = state.tracks
    assert track.mean[0] == pytest.approx(10.0, abs=0.3)
    assert deviation(state) < 0.4


def test_who_is_followed_by_returns_of_another_is_found_again() -> None:
    wrong = [by_radar(n * PERIOD, 13.0, 10.0) for n in range(4)]
    state = followed(*wrong, *(by_radar(n * PERIOD, 10.0, 10.0) for n in range(4, 50)))
    assert state.tracks[0].mean[0] == pytest.approx(10.0, abs=0.3)


def test_between_two_explanations_the_claim_covers_both() -> None:
    known = [by_radar(n * PERIOD, 10.0, 10.0) for n in range(10)]
    before = followed(*known)
    spreads = []
    for x in np.linspace(10.0, 12.0, 81):
        state = followed(by_radar(10 * PERIOD, x, 10.0), state=before)
        covariance = state.tracks[0].covariance
        assert np.linalg.eigvalsh(covariance).min() > 0.0
        spreads.append(covariance[0, 0])
    undecided = int(np.argmax(spreads))
    assert 0 < undecided < 80
    assert spreads[undecided] > 1.1 * max(spreads[0], spreads[-1])


def test_a_step_with_doubtful_returns_leaves_the_state_it_was_given_as_it_was() -> None:
    state = followed(*(by_radar(n * PERIOD, 10.0, 10.5) for n in range(5)))
    kept = state.tracks[0].covariance.copy()
    followed(by_radar(5 * PERIOD, 10.4, 10.5), state=state)
    np.testing.assert_array_equal(state.tracks[0].covariance, kept)


def test_who_is_first_seen_with_doubtful_returns_may_be_at_either_place() -> None:
    sure, doubtful = (followed(by_radar(0.0, 13.0, 10.0, odds)) for odds in (20.0, 0.0))
    assert sure.tracks[0].mean[0] == pytest.approx(13.0, abs=0.01)
    assert deviation(sure) == pytest.approx(0.25, abs=0.02)
    assert doubtful.tracks[0].mean[0] == pytest.approx(11.5)
    assert deviation(doubtful) > 1.5
