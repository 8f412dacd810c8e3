"""One flight that rivals learn from or are judged on: encoded, run, and its samples kept."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mmedge_ros.data_types import NS_PER_S
from mmedge_ros.lab.evaluation.bundle_under_test import BundleUnderTest
from mmedge_ros.lab.evaluation.encoded_flight import EncodedFlight
from mmedge_ros.lab.evaluation.flight_cases import CachedTruth, encoded_with_truth
from mmedge_ros.lab.policies.policy_run import levels_needed
from mmedge_ros.lab.policies.rivals_folder import choices_of
from mmedge_ros.lab.training import TrainingError
from mmedge_ros.lab.training.gate_flights import Tell
from mmedge_ros.lab.training.rivals.picture_samples import picture_samples
from mmedge_ros.lab.training.rivals.samples import FlightSamples, keep_samples, kept_samples
from mmedge_ros.lab.training.rivals.window_samples import WindowRuns
from mmedge_ros.pipeline.window_assembler import WindowParameters
from mmedge_ros.replay.recording import Recording

# Of the work on a flight; a guess that only the progress depends on.
_ENCODED, _GATED = 0.5, 0.7


@dataclass(frozen=True)
class RivalFlight:
    """A flight, its number among others, and the folder that keeps its samples."""

    path: Path
    number: int
    bundle: BundleUnderTest
    folder: Path

    @property
    def samples_path(self) -> Path:
        return self.folder / f'{self.path.name}.npz'

    def encoded(self, tell: Tell) -> EncodedFlight:
        """Read the flight and encode it with every level.

        :raises ReplayError: if it cannot be read
        :raises EncodingError: if the bundle cannot be used
        :raises EvaluationError: if it lacks a sensor or the truth
        """
        with Recording(self.path) as recording:
            wanted = levels_needed(self.bundle)
            return encoded_with_truth(recording, self.bundle.encoders(), wanted, tell)


def collect(task: RivalFlight, tell: Tell) -> None:
    """Collect the samples of a flight; those that are there already are kept.

    :raises TrainingError: if they cannot be written, or the flight cannot be used
    """
    if kept_samples(task.samples_path) is None:
        flight = task.encoded(lambda share: tell(_ENCODED * share))
        keep_samples(task.samples_path, samples_of(flight, task, tell))
    tell(1.0)


def samples_of(flight: EncodedFlight, task: RivalFlight, tell: Tell) -> FlightSamples:
    """Run an encoded flight for all three rivals.

    :raises ReplayError: if it is not encoded with every level
    """
    assert flight.truth is not None  # `RivalFlight.encoded` has seen to that
    choices = choices_of(task.bundle.folder)
    runs = WindowRuns(
        flight,
        CachedTruth(flight.truth),
        task.bundle,
        task.bundle.networks(),
        choices,
        task.number,
    )
    gating = runs.gating()
    tell(_GATED)
    window_ns = round(WindowParameters().window * NS_PER_S)
    return FlightSamples(
        gating,
        runs.selection(),
        picture_samples(flight, task.number, choices.levels[-1], window_ns, task.number),
    )


def collected(task: RivalFlight) -> FlightSamples:
    """Read the samples of a flight.

    :raises TrainingError: if there are none
    """
    found = kept_samples(task.samples_path)
    if found is None:
        raise TrainingError(
            f'{task.samples_path} is missing or of another version; run the same command again'
        )
    return found
