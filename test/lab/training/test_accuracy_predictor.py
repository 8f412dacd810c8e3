"""Learning what configurations are worth in a scene."""

from __future__ import annotations

import math

import numpy as np
import pytest

from mmedge_lab.training import TrainingError
from mmedge_lab.training.accuracy_predictor import (
    LEARNT_RATES,
    ConfigurationCourse,
    SampledWindows,
    errors,
    joined,
    learn,
    loads,
    regrets,
    windows_of,
)
from mmedge_ros.adaptation.accuracy_predictor import Indicators
from mmedge_ros.adaptation.configuration_space import ConfigurationSpace, ModalityOptions
from mmedge_ros.adaptation.learned_accuracy import encoded, surface_terms

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


def windows(
    flights: int, seed: int, *, height_tells: bool = True, first: int = 0, each: int = 12
) -> SampledWindows:
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
    return SampledWindows(values, known, numbers)


def beside_the_table(*, height_tells: bool) -> tuple[float, float]:
    """Return error and regret on unseen windows, less those of the table."""
    learnt = learn(windows(10, 0, height_tells=height_tells), TABLE, SPACE)
    unseen = windows(8, 1, height_tells=height_tells)
    coefficients = learnt.surface.coefficients(encoded(unseen.known))
    made = TABLE + coefficients @ surface_terms(SPACE).T
    table = np.broadcast_to(TABLE, made.shape)
    load = loads(SPACE)
    return (
        (errors(unseen.values, made) / errors(unseen.values, table)).mean(),
        (regrets(unseen.values, made, load) - regrets(unseen.values, table, load)).mean(),
    )


def test_what_the_scene_tells_is_learnt() -> None:
    error, regret = beside_the_table(height_tells=True)
    assert error < 0.6
    assert regret < -0.005
    assert learn(windows(10, 0), TABLE, SPACE).is_used


def test_where_nothing_is_told_the_table_keeps_its_say() -> None:
    assert beside_the_table(height_tells=False)[1] <= 0.001


def course(people: list[float]) -> ConfigurationCourse:
    count = len(people)
    known = np.tile(np.arange(count, dtype=float)[:, None], len(Indicators._fields))
    return ConfigurationCourse(np.array(people), np.linspace(0.0, 1.0, count), known)


def test_windows_are_those_of_all_configurations_but_the_first_and_empty_ones() -> None:
    cut = windows_of([course([3.0, 3.0, 0.0, 2.0, 2.0])] * COUNT)
    assert cut.values.shape == (3, COUNT)
    assert cut.values[:, 0].tolist() == [0.25, 0.75, 1.0]
    assert cut.known[:, 3, 0].tolist() == [1.0, 3.0, 4.0]
    nobody = windows_of([course([0.0, 0.0, 0.0])] * COUNT)
    assert joined([nobody, cut, cut]).flights.tolist() == [1, 1, 1, 2, 2, 2]
    with pytest.raises(TrainingError, match='no people in the flights'):
        joined([nobody])
