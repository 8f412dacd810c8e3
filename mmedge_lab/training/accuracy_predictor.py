"""Learns the accuracy of configurations in a scene, and judges it against a table.

A window is half a second, the least time that a configuration holds. The value of a
configuration in it is made as the bundle's table is: nine tenths of the streaming IoU and one
tenth of the share of people placed within 2 m. Windows without visible people are left out.

In flight the indicators are known under the configuration in use, whichever that is, so each
window is learnt from and judged as seen under every configuration.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmedge_lab.judging.flight_bootstrap import Drawings, Estimate, interval
from mmedge_lab.judging.measured_accuracy import PLACES_WEIGHT
from mmedge_lab.policies.settings import STATED
from mmedge_lab.training import TrainingError
from mmedge_lab.training.accuracy_predictor_samples import LEARNT_RATES, FlightCourse
from mmedge_ros.configuration.configuration_space import ConfigurationSpace
from mmedge_ros.configuration.learned_accuracy import (
    FIELDS,
    SURFACE,
    AccuracySurface,
    encoded,
    surface_terms,
    within_bounds,
)
from mmedge_ros.data_types import CAMERA, RADAR, FloatArray
from mmedge_ros.records.device_profile import PROBABILITIES

# Steps of a window, and those before the first one: at the beginning there are no tracks yet.
_WINDOW, _FIRST = 5, 5
# Pulls to zero that are tried, for each coefficient of the surface apart; infinite is the table.
PENALTIES = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, math.inf)
_FOLDS = 8
_MEDIAN = PROBABILITIES.index(0.5)
_FEWEST_FLIGHTS = 3
# Limits, as shares of the load that the highest rates and levels ask for.
SHARES = (0.16, 0.27, 0.38, 0.55, 0.68)


class Windows(NamedTuple):
    """N windows: values (N, C), what was known under each (N, C, I), and their flights (N,)."""

    values: FloatArray
    known: FloatArray
    flights: NDArray[np.int64]

    def of(self, flights: Sequence[int] | NDArray[np.int64]) -> Windows:
        """Return the windows of some flights."""
        chosen = np.isin(self.flights, flights)
        return Windows(self.values[chosen], self.known[chosen], self.flights[chosen])


class Learnt(NamedTuple):
    """What was learnt, and the pull to zero that cross-validation chose for each coefficient."""

    surface: AccuracySurface
    penalties: tuple[float, ...]


def windows_of(courses: Sequence[FlightCourse]) -> Windows:
    """Cut flights into windows.

    :raises TrainingError: if there are none with people in them
    """
    values, known, flights = [], [], []
    for number, course in enumerate(courses):
        steps = len(course.asked)
        for begin in range(_FIRST, steps - _WINDOW + 1, _WINDOW):
            window = slice(begin, begin + _WINDOW)
            people = course.asked[window].sum()
            if not people:
                continue
            overlap = course.overlaps[:, window].sum(axis=1) / people
            sought = course.sought[:, window].sum(axis=1)
            placed = course.placed[:, window].sum(axis=1) / np.maximum(sought, 1.0)
            # No person at the state times of decisions: people came into the picture just then.
            placed = np.where(sought > 0.0, placed, overlap)
            values.append((1.0 - PLACES_WEIGHT) * overlap + PLACES_WEIGHT * placed)
            known.append(course.known[:, begin])
            flights.append(number)
    if not values:
        raise TrainingError('there are no people in the flights; the predictor learns from them')
    return Windows(np.array(values), np.array(known), np.array(flights, np.int64))


def learn(windows: Windows, table: FloatArray, space: ConfigurationSpace) -> Learnt:
    """Learn a surface over a table (C,), by ridge regression.

    How much is pulled to zero is what is best for flights held out: for the height of the surface
    by its error, for its shape by the error that is left within a window, of those pulls that
    choose no worse than the table does. With nothing known its shape is that of the table.

    :raises TrainingError: for fewer than three flights
    """
    known = np.unique(windows.flights)
    if len(known) < _FEWEST_FLIGHTS:
        raise TrainingError(
            f'{len(known)} flights are too few to learn accuracies from; use at least '
            f'{_FEWEST_FLIGHTS}'
        )
    basis = _Basis(surface_terms(space))
    trials = _Trials(table, loads(space))
    order = np.random.default_rng(0).permutation(known)
    for held in np.array_split(order, min(_FOLDS, len(order))):
        rest, judged = windows.of(np.setdiff1d(known, held)), windows.of(held)
        ridge = _Ridge(rest, table, basis)
        trials.add(
            judged.values,
            [ridge.surface([penalty] * len(SURFACE)) for penalty in PENALTIES],
            ((judged.values - table) @ basis.vectors)[:, 0],
            encoded(judged.known),
            basis,
        )
    penalties = trials.best()
    ridge = _Ridge(windows, table, basis)
    made = ridge.surface(penalties)
    return Learnt(
        replace(made, offset=basis.plain(made.offset), weights=basis.plain(made.weights)),
        penalties,
    )


class _Trials:
    """What each penalty leads to for flights held out."""

    def __init__(self, table: FloatArray, load: FloatArray) -> None:
        self._table, self._load = table, load
        self._height, self._shape, self._regret = np.zeros((3, len(PENALTIES)))

    def add(
        self,
        values: FloatArray,
        surfaces: Sequence[AccuracySurface],
        heights: FloatArray,
        fields: FloatArray,
        basis: _Basis,
    ) -> None:
        """Judge surfaces over the basis, one for each penalty, in windows with values (N, C)."""
        for place, surface in enumerate(surfaces):
            made = surface.coefficients(fields)
            self._height[place] += ((made[..., 0] - heights[:, None]) ** 2).mean(axis=1).sum()
            shapes = self._table + made[..., 1:] @ basis.vectors[:, 1:].T
            self._shape[place] += _squared(_centred(values), _centred(shapes)).sum()
            self._regret[place] += regrets(values, shapes, self._load).sum()

    def best(self) -> tuple[float, ...]:
        """Return the penalty of each coefficient; the last one tried is infinite, the table."""
        no_worse = self._regret <= self._regret[-1] + 1e-9
        shape = int(np.where(no_worse, self._shape, math.inf).argmin())
        height = PENALTIES[int(self._height.argmin())]
        return (height, *[PENALTIES[shape]] * (len(SURFACE) - 1))


class _Basis:
    """The terms of a surface made orthogonal over the configurations that were flown."""

    def __init__(self, terms: FloatArray) -> None:
        self.vectors, self._triangle = np.linalg.qr(terms)

    def plain(self, coefficients: FloatArray) -> FloatArray:
        """Return the coefficients (..., K) for the terms themselves."""
        return np.asarray(np.linalg.solve(self._triangle, coefficients.T).T)


class _Ridge:
    def __init__(self, windows: Windows, table: FloatArray, basis: _Basis) -> None:
        fields = encoded(windows.known)
        known = np.isfinite(fields)
        count = np.maximum(known.sum(axis=(0, 1)), 1)
        self._mean = np.where(known, fields, 0.0).sum(axis=(0, 1)) / count
        spread = np.sqrt((np.where(known, fields - self._mean, 0.0) ** 2).sum(axis=(0, 1)) / count)
        # A field that never varied gets no weight, also when it varies later.
        self._scale = np.where(spread > 1e-6, 1.0 / np.maximum(spread, 1e-6), 0.0)
        targets = (windows.values - table) @ basis.vectors
        # The shape of the table stays where nothing is known: it was measured on more people.
        self._offset = np.where(np.arange(len(SURFACE)) == 0, targets.mean(axis=0), 0.0)
        standard = self._of(np.zeros(len(FIELDS)), np.eye(len(FIELDS))).coefficients(fields)
        # Windows count alike, however many configurations they were seen under.
        self._products = np.einsum('nof,nog->fg', standard, standard) / standard[..., 0].size
        seen, wanted = standard.mean(axis=1), targets - targets.mean(axis=0)
        self._moments = seen.T @ wanted / len(targets)

    def surface(self, penalties: Sequence[float]) -> AccuracySurface:
        """Return the surface over the basis, with a penalty for each coefficient."""
        weights: FloatArray = np.zeros_like(self._moments)
        for place, penalty in enumerate(penalties):
            if math.isfinite(penalty):
                pulled = self._products + penalty * np.eye(len(FIELDS))
                weights[:, place] = np.linalg.solve(pulled, self._moments[:, place])
        return self._of(self._offset, weights)

    def _of(self, offset: FloatArray, weights: FloatArray) -> AccuracySurface:
        rates = [np.array([min(LEARNT_RATES[m]), max(LEARNT_RATES[m])]) for m in (CAMERA, RADAR)]
        return AccuracySurface(self._mean, self._scale, offset, weights, *rates)


def predicted(
    windows: Windows, surface: AccuracySurface, table: FloatArray, space: ConfigurationSpace
) -> FloatArray:
    """Return (N, C, C) predictions: of window n, seen under o, for configuration c."""
    coefficients = surface.coefficients(encoded(windows.known))
    return within_bounds(table + coefficients @ surface_terms(space).T)


class Comparison(NamedTuple):
    """A predictor and a table; differences are predictor minus table.

    ``squared`` is the mean squared error; ``within`` the same once the mean of each window over
    configurations is taken out of both, which is all that a choice depends on. ``regret`` is how
    far what is chosen under limits of the load is from the best choice of each window.
    """

    squared: tuple[float, float, Estimate]
    within: tuple[float, float, Estimate]
    regret: tuple[float, float, Estimate]

    def report(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            name: {
                'predictor': round(float(ours), 5),
                'table': round(float(theirs), 5),
                'difference': [round(float(value), 5) for value in difference],
            }
            for name, (ours, theirs, difference) in self._asdict().items()
        }

    @property
    def is_better(self) -> bool:
        """Whether choices are better beyond doubt; smaller errors alone change no choice."""
        return self.regret[2].high < 0.0


def compare(
    windows: Windows,
    predictions: FloatArray,
    table: FloatArray,
    space: ConfigurationSpace,
    seeds: Sequence[str],
) -> Comparison:
    """Compare predictions (N, C, C) with a table (C,) of configurations.

    :param seeds: those of all flights, by their number
    """
    alone = np.broadcast_to(table, predictions.shape)
    drawn = Drawings.of([seeds[flight] for flight in np.unique(windows.flights)])

    def compared(ours: FloatArray, theirs: FloatArray) -> tuple[float, float, Estimate]:
        return float(ours.mean()), float(theirs.mean()), _mean(ours - theirs, windows, drawn)

    def regret(predictions: FloatArray) -> FloatArray:
        return regrets(windows.values, predictions, loads(space))

    squared = [_squared(windows.values, made) for made in (predictions, alone)]
    within = [_squared(_centred(windows.values), _centred(made)) for made in (predictions, alone)]
    return Comparison(
        compared(*squared), compared(*within), compared(regret(predictions), regret(alone))
    )


def loads(space: ConfigurationSpace) -> FloatArray:
    """Return the share of a core, (C,), that configurations ask of the stated board."""
    shares = np.zeros(len(space))
    for index in range(len(space)):
        for part in space.parts(index):
            quantiles = STATED.stages[STATED.encode_stage(part.modality, part.level)]
            shares[index] += part.rate * quantiles[_MEDIAN]
    return shares


def regrets(values: FloatArray, predictions: FloatArray, load: FloatArray) -> FloatArray:
    """Return (N,) what choosing by predictions (N, C, C) costs, on average over the limits.

    Under each limit the mean is over the configurations in use that keep it.
    """
    total = np.zeros(len(values))
    for share in SHARES:
        keeps = load <= share * load.max()
        if not keeps.any():
            continue
        chosen = np.where(keeps, predictions[:, keeps], -math.inf).argmax(axis=-1)
        reached = np.take_along_axis(values, chosen, axis=1).mean(axis=1)
        total += np.where(keeps, values, -math.inf).max(axis=1) - reached
    return total / len(SHARES)


def _squared(values: FloatArray, predictions: FloatArray) -> FloatArray:
    return np.asarray(((predictions - values[:, None]) ** 2).mean(axis=(1, 2)))


def _centred(values: FloatArray) -> FloatArray:
    return np.asarray(values - values.mean(axis=-1, keepdims=True))


def _mean(values: FloatArray, windows: Windows, drawn: Drawings) -> Estimate:
    known = np.unique(windows.flights)
    sums = np.array([values[windows.flights == flight].sum() for flight in known])
    counts = np.array([np.count_nonzero(windows.flights == flight) for flight in known])
    with np.errstate(invalid='ignore'):
        means = (drawn.weights @ sums) / (drawn.weights @ counts)
    return Estimate(float(values.mean()), *interval(means, drawn.count(counts > 0)))
