"""Learns the accuracy of configurations in a scene: a surface over the table of a bundle."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mmedge_lab.judging.bundle_under_test import NOMINAL, open_bundle
from mmedge_lab.policies.settings import STATED
from mmedge_lab.training import Report, TrainingError
from mmedge_lab.training.accuracy_predictor_samples import (
    LEARNT_RATES,
    SampledWindows,
    collect,
    collected,
    joined,
    replayed_space,
)
from mmedge_lab.training.bundle_files import enter_section, file_entry
from mmedge_lab.training.checkpoint import work_beside
from mmedge_lab.training.flight_works import FlightArrays
from mmedge_ros.adaptation.accuracy_predictor import Indicators, bundle_accuracy
from mmedge_ros.adaptation.bundle_configurations import manifest_of
from mmedge_ros.adaptation.configuration_space import ConfigurationSpace
from mmedge_ros.adaptation.learned_accuracy import (
    FIELDS,
    SECTION,
    SURFACE,
    WEIGHTS,
    AccuracySurface,
    encoded,
    surface_bytes,
    surface_terms,
)
from mmedge_ros.core.data_types import CAMERA, RADAR, FloatArray
from mmedge_ros.core.device_profile import PROBABILITIES
from mmedge_ros.report.report_files import write_files

# Pulls to zero that are tried, for the height of the surface and for its shape; infinite is the
# table.
PENALTIES = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, math.inf)
_FOLDS = 8
_LEARNED = 'learned from'
_FEWEST_FLIGHTS = 3
# Limits, as shares of the load that the highest rates and levels ask for.
SHARES = (0.16, 0.27, 0.38, 0.55, 0.68)


class Learnt(NamedTuple):
    """What was learnt, and the pulls to zero that cross-validation chose: of height and shape."""

    surface: AccuracySurface
    height: float
    shape: float

    @property
    def is_used(self) -> bool:
        """Whether some shape fits better than the table, and chooses no worse."""
        return math.isfinite(self.shape)


def learn(windows: SampledWindows, table: FloatArray, space: ConfigurationSpace) -> Learnt:
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
    # The terms of a surface made orthogonal over the configurations that were flown.
    vectors, triangle = np.linalg.qr(surface_terms(space))
    load = loads(space)
    height, shape, regret = np.zeros((3, len(PENALTIES)))
    order = np.random.default_rng(0).permutation(known)
    for held in np.array_split(order, min(_FOLDS, len(order))):
        rest, judged = windows.of(np.setdiff1d(known, held)), windows.of(held)
        ridge = _Ridge(rest, table, vectors)
        heights = ((judged.values - table) @ vectors)[:, 0]
        for place, penalty in enumerate(PENALTIES):
            made = ridge.surface(penalty, penalty).coefficients(encoded(judged.known))
            height[place] += ((made[..., 0] - heights[:, None]) ** 2).mean(axis=1).sum()
            shapes = table + made[..., 1:] @ vectors[:, 1:].T
            shape[place] += errors(_centred(judged.values), _centred(shapes)).sum()
            regret[place] += regrets(judged.values, shapes, load).sum()
    no_worse = regret <= regret[-1] + 1e-9
    chosen = (
        PENALTIES[int(height.argmin())],
        PENALTIES[int(np.where(no_worse, shape, math.inf).argmin())],
    )
    whole = _Ridge(windows, table, vectors).surface(*chosen)

    def plain(coefficients: FloatArray) -> FloatArray:
        """Return the coefficients (..., K) for the terms themselves."""
        return np.asarray(np.linalg.solve(triangle, coefficients.T).T)

    surface = replace(whole, offset=plain(whole.offset), weights=plain(whole.weights))
    return Learnt(surface, *chosen)


class _Ridge:
    def __init__(self, windows: SampledWindows, table: FloatArray, vectors: FloatArray) -> None:
        fields = encoded(windows.known)
        known = np.isfinite(fields)
        count = np.maximum(known.sum(axis=(0, 1)), 1)
        self._mean = np.where(known, fields, 0.0).sum(axis=(0, 1)) / count
        spread = np.sqrt((np.where(known, fields - self._mean, 0.0) ** 2).sum(axis=(0, 1)) / count)
        # A field that never varied gets no weight, also when it varies later.
        self._scale = np.where(spread > 1e-6, 1.0 / np.maximum(spread, 1e-6), 0.0)
        targets = (windows.values - table) @ vectors
        # The shape of the table stays where nothing is known: it was measured on more people.
        self._offset = np.where(np.arange(len(SURFACE)) == 0, targets.mean(axis=0), 0.0)
        standard = self._of(np.zeros(len(FIELDS)), np.eye(len(FIELDS))).coefficients(fields)
        # Windows count alike, however many configurations they were seen under.
        self._products = np.einsum('nof,nog->fg', standard, standard) / standard[..., 0].size
        seen, wanted = standard.mean(axis=1), targets - targets.mean(axis=0)
        self._moments = seen.T @ wanted / len(targets)

    def surface(self, height: float, shape: float) -> AccuracySurface:
        """Return the surface over the basis, with a penalty for its height and its shape."""
        weights: FloatArray = np.zeros_like(self._moments)
        for columns, penalty in ((slice(0, 1), height), (slice(1, None), shape)):
            if math.isfinite(penalty):
                pulled = self._products + penalty * np.eye(len(FIELDS))
                weights[:, columns] = np.linalg.solve(pulled, self._moments[:, columns])
        return self._of(self._offset, weights)

    def _of(self, offset: FloatArray, weights: FloatArray) -> AccuracySurface:
        rates = [np.array([min(LEARNT_RATES[m]), max(LEARNT_RATES[m])]) for m in (CAMERA, RADAR)]
        return AccuracySurface(self._mean, self._scale, offset, weights, *rates)


def loads(space: ConfigurationSpace) -> FloatArray:
    """Return the share of a core, (C,), that configurations ask of the stated board."""
    shares = np.zeros(len(space))
    for index in range(len(space)):
        for part in space.parts(index):
            quantiles = STATED.stages[STATED.encode_stage(part.modality, part.level)]
            shares[index] += part.rate * quantiles[PROBABILITIES.index(0.5)]
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


def errors(values: FloatArray, predictions: FloatArray) -> FloatArray:
    """Return the mean squared error (N,) of predictions (N, C, C) of values (N, C)."""
    return np.asarray(((predictions - values[:, None]) ** 2).mean(axis=(1, 2)))


def _centred(values: FloatArray) -> FloatArray:
    return np.asarray(values - values.mean(axis=-1, keepdims=True))


def table_of(bundle: Path) -> FloatArray:
    """Return the accuracies (C,) of the configurations in the bundle's table.

    :raises TrainingError: if it lacks one
    """
    table = bundle_accuracy(manifest_of(bundle), replayed_space(bundle))
    values = None if table is None else table.predict(Indicators())
    if values is None or np.isnan(values).any():
        raise TrainingError(
            f'{bundle} lacks a table of accuracies; `mmedge lab evaluate-bundle --enter` '
            'measures and enters one'
        )
    return values


def fit_predictor(
    folder: Path, flights: Sequence[Path], seconds: float, jobs: int, report: Report
) -> Learnt:
    """Learn accuracies from flights, and write them into a bundle.

    Where no shape chooses as well as the bundle's table on flights held out, the manifest says so
    and the bundle holds no predictor. What was replayed is kept beside the bundle until then.

    :param seconds: how much of each flight is used, 0 for all
    :param jobs: processes to use; 0 for one per processor
    :raises TrainingError: if it cannot be done with these flights, or the bundle has no table
    :raises EncodingError: if the bundle cannot be used
    :raises ReportError: if the bundle cannot be written
    """
    bundle, table = open_bundle(folder, NOMINAL), table_of(folder)
    made_from = f'{bundle.digest} {seconds:g} {Indicators._fields}'
    replayed = FlightArrays(work_beside(folder), made_from, {_LEARNED: flights}, jobs)
    parts = replayed.of(_LEARNED, partial(collect, bundle, seconds), report)
    windows = joined([collected(arrays) for arrays in parts.values()])
    learnt = learn(windows, table, replayed_space(folder))
    entry: dict[str, Any] = {
        'used': 'predictor' if learnt.is_used else 'table',
        'training': {
            'set': ', '.join(dict.fromkeys(flight.parent.name for flight in flights)),
            'flights': len(flights),
        },
        'penalties': [str(learnt.height), str(learnt.shape)],
    }
    if learnt.is_used:
        write_files(folder, {WEIGHTS: surface_bytes(learnt.surface)})
        entry['network'] = file_entry(folder / WEIGHTS)
    enter_section(folder, SECTION, entry)
    if not learnt.is_used:
        (folder / WEIGHTS).unlink(missing_ok=True)
    replayed.remove()
    return learnt
