"""Learns the accuracy of configurations in a scene: a surface over the table of a bundle.

Each flight is replayed in many configurations: every unit is encoded once per level, and service
times are the same. A window is half a second, the least time that a configuration holds. The
value of a configuration in it is made as the bundle's table is: nine tenths of the streaming IoU
and one tenth of the share of people placed within 2 m. Windows without visible people are left
out.

In flight the indicators are known under the configuration in use, whichever that is, so each
window is learnt from as seen under every configuration.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmedge_lab.judging.bundle_cases import FUSION
from mmedge_lab.judging.bundle_under_test import NOMINAL, BundleUnderTest, open_bundle
from mmedge_lab.judging.encoded_flight import EncodedFlight, replay_encoded
from mmedge_lab.judging.judged_flight import CachedTruth, encoded_with_truth
from mmedge_lab.judging.measured_accuracy import PLACES_WEIGHT
from mmedge_lab.judging.strata_sums import place_samples
from mmedge_lab.policies.settings import STATED
from mmedge_lab.training import Report, TrainingError
from mmedge_lab.training.bundle_files import enter_section, file_entry
from mmedge_lab.training.checkpoint import work_beside
from mmedge_lab.training.flight_works import Arrays, FlightArrays, FlightBeginning
from mmedge_lab.worker_processes import OnShare
from mmedge_ros.adaptation.accuracy_predictor import Indicators, bundle_accuracy
from mmedge_ros.adaptation.bundle_configurations import bundle_space, manifest_of
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
from mmedge_ros.adaptation.scene_indicators import SceneIndicators
from mmedge_ros.core.data_types import (
    CAMERA,
    NS_PER_S,
    RADAR,
    Configuration,
    Decision,
    FloatArray,
    Unit,
    UnitFeatures,
)
from mmedge_ros.core.device_profile import PROBABILITIES
from mmedge_ros.core.run_record import RunRecord
from mmedge_ros.report.accuracy_samples import STREAM_STEP_NS, stream_samples
from mmedge_ros.report.report_files import write_files

# All rates of the camera; of the radar's the ends, as it matters little and in between is between.
LEARNT_RATES = {CAMERA: (10.0, 20.0, 30.0), RADAR: (5.0, 20.0)}
WINDOW = 0.5
_WINDOW_NS = round(WINDOW * NS_PER_S)
# At the beginning there are no tracks yet.
_FIRST = 1
# Of the work on a flight; a guess that only the progress depends on.
_ENCODED = 0.6
# Pulls to zero that are tried, for the height of the surface and for its shape; infinite is the
# table.
PENALTIES = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, math.inf)
_FOLDS = 8
_LEARNED = 'learned from'
_FEWEST_FLIGHTS = 3
# Limits, as shares of the load that the highest rates and levels ask for.
SHARES = (0.16, 0.27, 0.38, 0.55, 0.68)


class SampledWindows(NamedTuple):
    """N windows: values (N, C), what was known under each (N, C, I), and their flights (N,)."""

    values: FloatArray
    known: FloatArray
    flights: NDArray[np.int64]

    def of(self, flights: Sequence[int] | NDArray[np.int64]) -> SampledWindows:
        """Return the windows of some flights."""
        chosen = np.isin(self.flights, flights)
        return SampledWindows(self.values[chosen], self.known[chosen], self.flights[chosen])


class ConfigurationCourse(NamedTuple):
    """A flight in one configuration, by its N windows.

    ``people`` (N,) counts people every 10 ms, ``value`` (N,) is what the configuration was worth
    there, and ``known`` (N, I) are the indicators at the begin.
    """

    people: FloatArray
    value: FloatArray
    known: FloatArray


def replayed_space(bundle: Path) -> ConfigurationSpace:
    """Return the configurations of a bundle that are replayed."""
    return bundle_space(bundle, (CAMERA, RADAR), LEARNT_RATES)


def flight_windows(
    flight: EncodedFlight, bundle: BundleUnderTest, on_share: OnShare = lambda _: None
) -> SampledWindows:
    """Replay an encoded flight that has a truth in every configuration."""
    assert flight.truth is not None  # see `encoded_with_truth`
    truth, space = CachedTruth(flight.truth), replayed_space(bundle.folder)
    begin_ns = next(truth.instants(STREAM_STEP_NS))
    last_ns = max(event.stamp_ns for event in flight.events if isinstance(event, Unit))
    count = max((last_ns - begin_ns) // _WINDOW_NS, 0)
    networks = bundle.networks()
    courses = []
    for index in range(len(space)):
        parts = space.parts(index)
        pipeline = bundle.pipeline(FUSION, networks)
        record = replay_encoded(flight, pipeline, Configuration(1, 0, parts), bundle.profile)
        courses.append(course_of(record, truth, begin_ns, count))
        on_share((index + 1) / len(space))
    return windows_of(courses)


def windows_of(courses: Sequence[ConfigurationCourse]) -> SampledWindows:
    """Put the courses of one flight together, without windows that nobody is in."""
    people, values, known = (np.stack(column) for column in zip(*courses, strict=True))
    kept = np.flatnonzero(people[0] > 0.0)
    kept = kept[kept >= _FIRST]
    return SampledWindows(
        values[:, kept].T, known[:, kept].swapaxes(0, 1), np.zeros(len(kept), np.int64)
    )


def joined(parts: Sequence[SampledWindows]) -> SampledWindows:
    """Put the windows of flights together, numbered in their order.

    :raises TrainingError: if there are none with people in them
    """
    flights = np.repeat(np.arange(len(parts)), [len(part.values) for part in parts])
    if not len(flights):
        raise TrainingError('there are no people in the flights; the predictor learns from them')
    return SampledWindows(
        np.concatenate([part.values for part in parts if len(part.values)]),
        np.concatenate([part.known for part in parts if len(part.values)]),
        flights,
    )


def course_of(
    record: RunRecord, truth: CachedTruth, begin_ns: int, count: int
) -> ConfigurationCourse:
    """Judge a run by windows from an instant on."""
    people, overlaps, sought, placed = np.zeros((4, count))
    stream, places = stream_samples(record, truth), place_samples(record, truth)
    for samples, seen, reached, met in (
        (stream, people, overlaps, stream.overlaps),
        (places, sought, placed, places.met),
    ):
        place = (samples.stamps_ns - begin_ns) // _WINDOW_NS
        within = (place >= 0) & (place < count)
        np.add.at(seen, place[within], 1.0)
        np.add.at(reached, place[within], met[within])
    overlap = overlaps / np.maximum(people, 1.0)
    # No person at the state times of decisions: people came into the picture just then.
    share = np.where(sought > 0.0, placed / np.maximum(sought, 1.0), overlap)
    value = (1.0 - PLACES_WEIGHT) * overlap + PLACES_WEIGHT * share
    return ConfigurationCourse(people, value, _known(record, begin_ns, count))


def _known(record: RunRecord, begin_ns: int, count: int) -> FloatArray:
    """Return the indicators (N, I) at the begin of each window, of what had been published."""
    events: list[tuple[int, int, UnitFeatures | Decision]] = [
        *((unit.trail[-1].end_ns, 0, unit) for unit in record.features),
        *((decision.published_ns, 1, decision) for decision in record.decisions),
    ]
    events.sort(key=lambda event: event[:2], reverse=True)
    scene, rows = SceneIndicators(), []
    for number in range(count):
        while events and events[-1][0] <= begin_ns + number * _WINDOW_NS:
            what = events.pop()[2]
            if isinstance(what, Decision):
                scene.decided(what.tracks)
            else:
                scene.encoded(what)
        rows.append(scene.now)
    return np.array(rows, np.float64).reshape(-1, len(Indicators._fields))


def collect(
    bundle: BundleUnderTest, seconds: float, path: Path, _: int, on_share: OnShare
) -> Arrays:
    """Replay a flight in every configuration.

    :param seconds: how much of the flight is used, 0 for all
    :return: the ``values`` and what was ``known`` of `SampledWindows`
    :raises EvaluationError: if it lacks a sensor or the truth
    :raises ReplayError: if it cannot be read
    :raises EncodingError: if the bundle cannot be used
    """
    space = replayed_space(bundle.folder)
    wanted = {options.modality: options.levels for options in space.modalities}
    with FlightBeginning(path, seconds) as recording:
        flight = encoded_with_truth(
            recording, bundle.encoders(), wanted, lambda share: on_share(_ENCODED * share)
        )
    windows = flight_windows(
        flight, bundle, lambda share: on_share(_ENCODED + (1.0 - _ENCODED) * share)
    )
    return {'values': windows.values, 'known': windows.known}


def collected(arrays: Arrays) -> SampledWindows:
    """Return the windows of a flight that `collect` made."""
    values = arrays['values']
    return SampledWindows(values, arrays['known'], np.zeros(len(values), np.int64))


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
