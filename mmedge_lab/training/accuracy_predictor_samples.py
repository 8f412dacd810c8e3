"""What the accuracy predictor learns from: the worth of many configurations, window by window.

Each flight is replayed in many configurations: every unit is encoded once per level, and service
times are the same. A window is half a second, the least time that a configuration holds. The
value of a configuration in it is made as the bundle's table is: nine tenths of the streaming IoU
and one tenth of the share of people placed within 2 m. Windows without visible people are left
out.

In flight the indicators are known under the configuration in use, whichever that is, so each
window is learnt from as seen under every configuration.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmedge_lab.judging.bundle_cases import FUSION
from mmedge_lab.judging.bundle_under_test import BundleUnderTest
from mmedge_lab.judging.encoded_flight import EncodedFlight, replay_encoded
from mmedge_lab.judging.judged_flight import CachedTruth, encoded_with_truth
from mmedge_lab.judging.measured_accuracy import PLACES_WEIGHT
from mmedge_lab.judging.strata_sums import place_samples
from mmedge_lab.training import TrainingError
from mmedge_lab.training.flight_works import Arrays, FlightBeginning
from mmedge_lab.training.gate_loop import Measured, cached_source
from mmedge_lab.worker_processes import OnShare
from mmedge_ros.adaptation.accuracy_predictor import Indicators
from mmedge_ros.adaptation.bundle_configurations import bundle_space
from mmedge_ros.adaptation.configuration_space import ConfigurationSpace
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
from mmedge_ros.core.run_record import RunRecord
from mmedge_ros.pipeline.perception_pipeline import PerceptionPipeline
from mmedge_ros.pipeline.pipeline_parameters import DECISION, PipelineParameters
from mmedge_ros.report.accuracy_samples import STREAM_STEP_NS, stream_samples
from mmedge_ros.windows.skip_control import SkipParameters

# All rates of the camera; of the radar's the ends, as it matters little and in between is between.
LEARNT_RATES = {CAMERA: (10.0, 20.0, 30.0), RADAR: (5.0, 20.0)}
WINDOW = 0.5
_WINDOW_NS = round(WINDOW * NS_PER_S)
# At the beginning there are no tracks yet.
_FIRST = 1
# Of the work on a flight; a guess that only the progress depends on.
_ENCODED = 0.6


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
    measured: dict[str, Measured] = {}
    courses = []
    for index in range(len(space)):
        parts = space.parts(index)
        if networks is None:
            pipeline = caching_pipeline(measured.setdefault(parts[0].level, {}))
        else:
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


def caching_pipeline(measured: Measured) -> PerceptionPipeline:
    """Return decision fusion that caches the measurements of units of one level."""
    parameters = PipelineParameters(
        strategy=DECISION, updates=False, skipping=SkipParameters(delta=0.0)
    )
    return PerceptionPipeline(parameters, measure=cached_source(parameters.fusion, measured))


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
