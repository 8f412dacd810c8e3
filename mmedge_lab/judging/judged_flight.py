"""A flight that rows replay in virtual time, each judged by the flight's truth.

Its pictures are encoded once per level, so a row costs a replay without networks.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mmedge_lab.judging import EvaluationError
from mmedge_lab.judging.accuracy_sums import accuracy_sums
from mmedge_lab.judging.bench import Row, Subject, Sums, flights_about
from mmedge_lab.judging.bundle_cases import FUSION
from mmedge_lab.judging.bundle_under_test import NOMINAL, BundleUnderTest, open_bundle
from mmedge_lab.judging.cached_networks import CachedNetworks
from mmedge_lab.judging.encoded_flight import EncodedFlight, encode_flight, load_flight
from mmedge_lab.simulation.flight_folder import FlightDescription, read_description
from mmedge_lab.worker_processes import OnShare
from mmedge_ros.core.data_types import CAMERA, RADAR
from mmedge_ros.core.device_profile import DeviceProfile, read_profile
from mmedge_ros.core.run_record import RunRecord
from mmedge_ros.encoding.bundle.default_model import default_detector
from mmedge_ros.encoding.unit_encoder import UnitEncoder
from mmedge_ros.pipeline.perception_pipeline import PerceptionPipeline
from mmedge_ros.pipeline.pipeline_parameters import PipelineParameters
from mmedge_ros.replay.ground_truth import GroundTruth, TrueFrame
from mmedge_ros.replay.recording import Recording
from mmedge_ros.report.accuracy import Accuracy, accuracy_of


class CachedTruth(GroundTruth):
    """A truth that interpolates an instant once, however many runs are judged by it."""

    def __init__(self, truth: GroundTruth) -> None:
        super().__init__(truth.scenes, truth.problems)
        self._remembered: dict[int, TrueFrame | None] = {}
        self._instants: dict[int, list[int]] = {}

    def frame_at(self, stamp_ns: int) -> TrueFrame | None:
        if stamp_ns not in self._remembered:
            self._remembered[stamp_ns] = super().frame_at(stamp_ns)
        return self._remembered[stamp_ns]

    def instants(self, step_ns: int) -> Iterator[int]:
        if step_ns not in self._instants:
            self._instants[step_ns] = list(super().instants(step_ns))
        return iter(self._instants[step_ns])


def encoded_with_truth(
    recording: Recording,
    encoders: Mapping[str, UnitEncoder],
    levels: Mapping[str, Collection[str]],
    on_progress: Callable[[float], None],
    *,
    with_greys: bool = False,
) -> EncodedFlight:
    """Read a flight that can be judged and encode its units with the ``levels`` of a modality.

    What of it could not be read is in the problems of its record.

    :param on_progress: called with the share done, 0..1
    :param with_greys: as of `encode_flight`
    :raises EvaluationError: if it lacks a sensor or the truth
    :raises ReplayError: if it cannot be read
    :raises EncodingError: if the bundle cannot be used
    """
    flight = load_flight(recording, PipelineParameters())
    if flight.truth is None or not flight.truth.scenes:
        why = 'none that can be used' if flight.truth else 'none'
        raise EvaluationError(
            f'{recording.bag.path}: ground truth is needed, and this recording has '
            f'{why}; use flights made by `mmedge simulate`'
        )
    missing = [m for m in (CAMERA, RADAR) if m not in recording.modalities]
    if missing:
        raise EvaluationError(
            f'{recording.bag.path}: the recording has no {missing[0]}; use flights with camera '
            'and radar, as `mmedge simulate` writes them'
        )
    encode_flight(flight, recording, encoders, levels, on_progress, with_greys=with_greys)
    flight.record.problems += [
        *recording.bag.problems,
        *recording.problems,
        *flight.truth.problems,
    ]
    return flight


@dataclass(frozen=True)
class JudgedFlight:
    """An encoded flight with its truth, and the bundle that is replayed."""

    flight: EncodedFlight
    truth: CachedTruth
    bundle: BundleUnderTest
    networks: CachedNetworks | None

    def pipeline(self) -> PerceptionPipeline:
        """Return a new pipeline, as the bundle says."""
        return self.bundle.pipeline(FUSION, self.networks)

    def sums(self, record: RunRecord) -> Sums:
        """Return the sums of a run, see `accuracy_sums`."""
        return accuracy_sums(self.accuracy(record), record)

    def accuracy(self, record: RunRecord) -> Accuracy:
        """Return what a run has right."""
        accuracy = accuracy_of(record, self.truth, at_once=False)
        assert accuracy is not None  # the truth has scenes
        return accuracy


@dataclass(frozen=True)
class FlightOpener:
    """Opens a subject as a `JudgedFlight`, encoded with the levels of its rows.

    :ivar levels: of the camera, to encode as well
    :ivar with_greys: keep what replays with ``reuse`` need, see `encode_flight`
    """

    bundle: BundleUnderTest
    levels: tuple[str, ...] = ()
    with_greys: bool = False

    def __call__(self, subject: Subject, rows: Sequence[Row], on_share: OnShare) -> JudgedFlight:
        """Encode the flight.

        :raises EvaluationError: if it lacks a sensor or the truth
        :raises ReplayError: if it cannot be read
        :raises EncodingError: if the bundle cannot be used
        """
        wanted = {*self.levels, *(level for row in rows for level in row.levels)}
        encoders = self.bundle.encoders()
        levels: dict[str, Collection[str]] = {
            CAMERA: wanted,
            RADAR: encoders[RADAR].levels or ('',),
        }
        with Recording(subject.flight) as recording:
            flight = encoded_with_truth(
                recording, encoders, levels, on_share, with_greys=self.with_greys
            )
        assert flight.truth is not None  # `encoded_with_truth` requires it
        return JudgedFlight(flight, CachedTruth(flight.truth), self.bundle, self.bundle.networks())


def bundle_of(detector: str, profile: str = '', usual: DeviceProfile = NOMINAL) -> BundleUnderTest:
    """Open the bundle that is asked for, with the service times of a file or usual ones.

    :raises EncodingError: if the bundle cannot be used
    :raises ReplayError: if the profile cannot be read
    """
    times = read_profile(Path(profile)) if profile else usual
    return open_bundle(default_detector(detector or 'flight_people'), times)


def bundle_about(bundle: BundleUnderTest, subjects: Sequence[Subject]) -> dict[str, Any]:
    """Return the facts for the head of a page."""
    return {
        **flights_about(subjects),
        'bundle': bundle.folder.name,
        'service times': bundle.profile.description,
    }


def simulated_truth(recording: Recording) -> GroundTruth:
    """Return what is true of a simulated flight.

    :raises EvaluationError: if that is not known
    """
    truth = recording.truth()
    if truth is None or not truth.scenes:
        raise EvaluationError(f'{recording.bag.path} has no ground truth; name simulated flights')
    return truth


def simulated_flight(flight: Path) -> FlightDescription:
    """Return what a flight was made from.

    :raises EvaluationError: if it is no flight of `mmedge simulate` with pictures
    """
    made = read_description(flight)
    if made is None or made.trace_only:
        raise EvaluationError(
            f'{flight} is no flight of `mmedge simulate`, so what it shows is not known; name a '
            'set of those'
        )
    return made
