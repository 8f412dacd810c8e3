"""What the accuracy predictor learns from: each flight replayed in many configurations.

Every unit is encoded once per level, all configurations are replayed with the same service
times, and every tenth of a second the people, their accuracy and the indicators are recorded.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from mmedge_lab.judging.bundle_cases import FUSION
from mmedge_lab.judging.bundle_under_test import BundleUnderTest
from mmedge_lab.judging.case_figures import place_samples
from mmedge_lab.judging.encoded_flight import EncodedFlight, replay_encoded
from mmedge_lab.judging.flight_cases import CachedTruth, encoded_with_truth
from mmedge_lab.training import OnShare, TrainingError
from mmedge_lab.training.flight_works import FlightBeginning, keep_arrays, kept_arrays
from mmedge_lab.training.gate_loop import Measured, cached_source
from mmedge_ros.configuration.accuracy_predictor import Indicators
from mmedge_ros.configuration.bundle_configurations import bundle_space
from mmedge_ros.configuration.configuration_space import ConfigurationSpace
from mmedge_ros.configuration.scene_indicators import SceneIndicators
from mmedge_ros.data_types import (
    CAMERA,
    NS_PER_S,
    RADAR,
    Configuration,
    Decision,
    FloatArray,
    Unit,
    UnitFeatures,
)
from mmedge_ros.pipeline.perception_pipeline import PerceptionPipeline
from mmedge_ros.pipeline.pipeline_parameters import DECISION, PipelineParameters
from mmedge_ros.records.ground_truth import GroundTruth, TrueFrame
from mmedge_ros.records.run_record import RunRecord
from mmedge_ros.report.accuracy_samples import STREAM_STEP_NS, stream_samples
from mmedge_ros.skipping.skip_control import SkipParameters

# All rates of the camera; of the radar's the ends, as it matters little and in between is between.
LEARNT_RATES = {CAMERA: (10.0, 20.0, 30.0), RADAR: (5.0, 20.0)}
STEP = 0.1
_STEP_NS = round(STEP * NS_PER_S)
# Of the work on a flight; a guess that only the progress depends on.
_ENCODED = 0.6


class FlightCourse(NamedTuple):
    """A flight in C configurations, by T steps of 0.1 s.

    ``asked`` (T,) counts people and instants, ``overlaps`` (C, T) sums the IoU they met, both
    every 10 ms. ``sought`` (C, T) counts people at the state times of decisions, ``placed`` (C, T)
    those of them within 2 m of a track. ``known`` (C, T, I) are the indicators at a step's begin.
    """

    asked: FloatArray
    overlaps: FloatArray
    sought: FloatArray
    placed: FloatArray
    known: FloatArray


@dataclass(frozen=True)
class PredictorFlight:
    """A flight, how much of it is used (s; 0: all), and the folder that keeps what came of it."""

    path: Path
    bundle: BundleUnderTest
    folder: Path
    seconds: float = 0.0

    @property
    def kept_path(self) -> Path:
        return self.folder / f'{self.path.name}.npz'

    @property
    def space(self) -> ConfigurationSpace:
        """The configurations that are replayed."""
        return bundle_space(self.bundle.folder, (CAMERA, RADAR), LEARNT_RATES)


def collect(task: PredictorFlight, on_share: OnShare) -> None:
    """Replay a flight in every configuration; what is kept already stays.

    :raises EvaluationError: if it lacks a sensor or the truth
    :raises TrainingError: if it is too short, or nothing can be written
    :raises ReplayError: if it cannot be read
    :raises EncodingError: if the bundle cannot be used
    """
    if kept(task) is None:
        flight = encoded_flight(task, lambda share: on_share(_ENCODED * share))
        course = course_of(flight, task, on_share)
        columns = {name: column.astype(np.float32) for name, column in course._asdict().items()}
        keep_arrays(task.kept_path, {'indicators': np.array(Indicators._fields), **columns})
    on_share(1.0)


def course_of(flight: EncodedFlight, task: PredictorFlight, on_share: OnShare) -> FlightCourse:
    """Replay an encoded flight in every configuration."""
    assert flight.truth is not None  # see `encoded_flight`
    truth, space = CachedTruth(flight.truth), task.space
    begin_ns = next(truth.instants(STREAM_STEP_NS))
    last_ns = max(event.stamp_ns for event in flight.events if isinstance(event, Unit))
    steps = (last_ns - begin_ns) // _STEP_NS
    if steps < 1:
        raise TrainingError(f'{task.path}: the flight is shorter than {STEP:g} s; leave it out')
    counted = _Until(truth, begin_ns + steps * _STEP_NS)
    networks = task.bundle.networks()
    measured: dict[str, Measured] = {}
    rows = []
    for index in range(len(space)):
        parts = space.parts(index)
        if networks is None:
            pipeline = caching_pipeline(measured.setdefault(parts[0].level, {}))
        else:
            pipeline = task.bundle.pipeline(FUSION, networks)
        record = replay_encoded(flight, pipeline, Configuration(1, 0, parts), task.bundle.profile)
        rows.append(_row(record, counted, begin_ns, steps))
        on_share(_ENCODED + (1.0 - _ENCODED) * (index + 1) / len(space))
    people, overlaps, sought, placed, known = (
        np.stack(column) for column in zip(*rows, strict=True)
    )
    return FlightCourse(people[0], overlaps, sought, placed, known)


def kept(task: PredictorFlight) -> FlightCourse | None:
    """Read what is kept of a flight; None where there is nothing of this version.

    :raises TrainingError: if it is damaged
    """
    arrays = kept_arrays(task.kept_path)
    if arrays is None or tuple(arrays['indicators'].tolist()) != Indicators._fields:
        return None
    return FlightCourse(*(arrays[name].astype(np.float64) for name in FlightCourse._fields))


def _row(
    record: RunRecord, truth: GroundTruth, begin_ns: int, steps: int
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]:
    people, overlaps, sought, placed = np.zeros((4, steps))
    stream = stream_samples(record, truth)
    place = (stream.stamps_ns - begin_ns) // _STEP_NS
    np.add.at(people, place, 1.0)
    np.add.at(overlaps, place, stream.overlaps)
    places = place_samples(record, truth)
    place = (places.stamps_ns - begin_ns) // _STEP_NS
    within = (place >= 0) & (place < steps)
    np.add.at(sought, place[within], 1.0)
    np.add.at(placed, place[within], places.met[within])
    return people, overlaps, sought, placed, _known(record, begin_ns, steps)


def _known(record: RunRecord, begin_ns: int, steps: int) -> FloatArray:
    """Return the indicators (T, I) at the begin of each step, of what had been published."""
    events: list[tuple[int, int, UnitFeatures | Decision]] = [
        *((unit.trail[-1].end_ns, 0, unit) for unit in record.features),
        *((decision.published_ns, 1, decision) for decision in record.decisions),
    ]
    events.sort(key=lambda event: event[:2])
    scene, place = SceneIndicators(), 0
    rows = []
    for step in range(steps):
        while place < len(events) and events[place][0] <= begin_ns + step * _STEP_NS:
            what = events[place][2]
            if isinstance(what, Decision):
                scene.decided(what.tracks)
            else:
                scene.encoded(what)
            place += 1
        rows.append(scene.now)
    return np.array(rows, np.float64)


class _Until(GroundTruth):
    """A truth that ends at an instant."""

    def __init__(self, truth: GroundTruth, end_ns: int) -> None:
        super().__init__(truth.scenes, truth.problems)
        self._truth, self._end_ns = truth, end_ns

    def frame_at(self, stamp_ns: int) -> TrueFrame | None:
        return self._truth.frame_at(stamp_ns)

    def instants(self, step_ns: int) -> Iterator[int]:
        return (now_ns for now_ns in self._truth.instants(step_ns) if now_ns < self._end_ns)


def caching_pipeline(measured: Measured) -> PerceptionPipeline:
    """Return decision fusion that caches the measurements of units of one level."""
    parameters = PipelineParameters(
        strategy=DECISION, updates=False, skipping=SkipParameters(delta=0.0)
    )
    return PerceptionPipeline(parameters, measure=cached_source(parameters.fusion, measured))


def encoded_flight(task: PredictorFlight, on_share: OnShare) -> EncodedFlight:
    """Read the part of a flight that is used, and encode it with every level.

    :raises EvaluationError: if it lacks a sensor or the truth
    """
    wanted = {options.modality: options.levels for options in task.space.modalities}
    with FlightBeginning(task.path, task.seconds) as recording:
        return encoded_with_truth(recording, task.bundle.encoders(), wanted, on_share)
