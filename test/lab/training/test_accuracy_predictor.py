"""Learning what configurations are worth in a scene, and judging that."""

from __future__ import annotations

import math

import numpy as np
import pytest

from mmedge_lab.training import TrainingError
from mmedge_lab.training.accuracy_predictor import (
    PENALTIES,
    Windows,
    compare,
    learn,
    loads,
    predicted,
    regrets,
    windows_of,
)
from mmedge_lab.training.accuracy_predictor_samples import LEARNT_RATES, FlightCourse
from mmedge_ros.configuration.accuracy_predictor import AccuracyTable, Indicators
from mmedge_ros.configuration.configuration_space import ConfigurationSpace, ModalityOptions
from mmedge_ros.configuration.learned_accuracy import LearnedAccuracy

LEVELS = ('small', 'medium', 'large')
SPACE = ConfigurationSpace(
    [
        ModalityOptions('camera', LEARNT_RATES['camera'], LEVELS),
        ModalityOptions('radar', LEARNT_RATES['radar'], ('',)),
    ]
)
PARTS = [SPACE.parts(index) for index in range(len(SPACE))]
LEVEL = np.array([LEVELS.index(camera.level) for camera, _ in PARTS], float)
RATE = np.array([math.log(camera.rate / 10.0) for camera, _ in PARTS])
TABLE = 0.3 + 0.05 * LEVEL + 0.06 * RATE
COUNT = len(SPACE)
SEEDS = tuple('abcdefghij')


def windows(
    flights: int, seed: int, *, height_tells: bool = True, first: int = 0, each: int = 12
) -> Windows:
    """Where people are small, levels are worth much and rates little, or it is all chance."""
    random = np.random.default_rng(seed)
    size = flights * each
    numbers = first + np.repeat(np.arange(flights), each)
    height = random.uniform(-1.0, 1.0, size)
    tells = height if height_tells else random.uniform(-1.0, 1.0, size)
    shape = np.outer(tells, 0.08 * RATE - 0.06 * LEVEL)
    values = TABLE + shape + 0.1 * tells[:, None] + random.normal(0.0, 0.02, (size, COUNT))
    scenes = [
        Indicators(tracks=2.0, track_height=40.0 * math.exp(h), smallest=30.0) for h in height
    ]
    known = np.repeat(np.array(scenes)[:, None], COUNT, axis=1)
    return Windows(values, known, numbers)


def test_what_the_scene_tells_is_learnt() -> None:
    learnt = learn(windows(10, 0), TABLE, SPACE)
    unseen = windows(6, 1)
    result = compare(unseen, predicted(unseen, learnt.surface, TABLE, SPACE), TABLE, SPACE, SEEDS)
    assert result.squared[0] < 0.4 * result.squared[1]
    assert result.within[0] < 0.5 * result.within[1]
    assert result.regret[0] < 0.7 * result.regret[1]
    assert result.within[2].high < 0.0
    assert result.regret[2].high < 0.0
    assert result.is_better


def test_what_is_flown_is_what_was_judged() -> None:
    some = windows(5, 0)
    surface = learn(some, TABLE, SPACE).surface
    flown = LearnedAccuracy(AccuracyTable(TABLE, is_measured=True), surface, SPACE)
    judged = predicted(some, surface, TABLE, SPACE)
    for place in (0, 7):
        scene = Indicators(*some.known[place, 4])
        assert flown.predict(scene) == pytest.approx(judged[place, 4])


def test_where_nothing_is_told_the_table_keeps_its_say() -> None:
    learnt = learn(windows(8, 0, height_tells=False), TABLE, SPACE)
    unseen = windows(8, 1, height_tells=False)
    result = compare(unseen, predicted(unseen, learnt.surface, TABLE, SPACE), TABLE, SPACE, SEEDS)
    assert not result.is_better
    assert result.regret[2].value <= 0.001


def test_flights_of_one_seed_prove_nothing() -> None:
    learnt = learn(windows(10, 0), TABLE, SPACE)
    unseen = windows(6, 1)
    predictions = predicted(unseen, learnt.surface, TABLE, SPACE)
    result = compare(unseen, predictions, TABLE, SPACE, ('a',) * 6)
    assert math.isnan(result.squared[2].high)
    assert not result.is_better


def test_a_table_is_not_better_than_itself() -> None:
    unseen = windows(5, 1)
    result = compare(unseen, np.broadcast_to(TABLE, (60, COUNT, COUNT)), TABLE, SPACE, SEEDS)
    assert result.squared[2] == (0.0, 0.0, 0.0)
    assert not result.is_better


def test_the_same_windows_give_the_same_surface() -> None:
    first, second = (learn(windows(5, 0), TABLE, SPACE) for _ in range(2))
    np.testing.assert_array_equal(first.surface.weights, second.surface.weights)
    assert set(first.penalties) <= set(PENALTIES)


def test_two_flights_are_too_few() -> None:
    with pytest.raises(TrainingError, match='2 flights are too few'):
        learn(windows(2, 0), TABLE, SPACE)


def test_choosing_by_the_truth_costs_nothing_and_by_its_contrary_much() -> None:
    some = windows(3, 0)
    truth = np.repeat(some.values[:, None], COUNT, axis=1)
    load = loads(SPACE)
    assert regrets(some.values, truth, load) == pytest.approx(0.0)
    assert regrets(some.values, -truth, load).min() > 0.01


def test_what_asks_more_than_the_limit_is_never_chosen() -> None:
    load = loads(SPACE)
    values = (load / load.max())[None]
    wished = np.repeat(values[:, None], COUNT, axis=1)
    # The dearest would be best; what is reached is the dearest of those that keep each limit.
    assert regrets(values, wished, load) == pytest.approx(0.0)


def course(steps: int, asked: float = 1.0) -> FlightCourse:
    shape = (COUNT, steps)
    along = np.arange(steps, dtype=float)
    return FlightCourse(
        np.full(steps, 10.0 * asked),
        np.full(shape, 5.0 * asked),
        np.full(shape, asked),
        np.zeros(shape),
        np.broadcast_to(along[None, :, None], (*shape, len(Indicators._fields))),
    )


def test_windows_are_cut_from_flights_with_what_was_known_at_their_begin() -> None:
    cut = windows_of([course(17), course(12)])
    assert cut.flights.tolist() == [0, 0, 1]
    assert cut.values == pytest.approx(0.9 * 0.5)
    assert cut.known[:, 3, 0].tolist() == [5.0, 10.0, 5.0]


def test_windows_without_people_are_left_out() -> None:
    cut = windows_of([course(12, asked=0.0), course(12)])
    assert cut.flights.tolist() == [1]
    with pytest.raises(TrainingError, match='no people in the flights'):
        windows_of([course(12, asked=0.0)])


def test_places_that_were_not_asked_for_do_not_count_as_missed() -> None:
    some = course(12)
    cut = windows_of([some._replace(sought=np.zeros_like(some.sought))])
    assert cut.values == pytest.approx(0.5)
