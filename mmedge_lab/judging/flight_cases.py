"""One flight of an evaluation: every case replayed and judged, what is there already kept."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mmedge_lab.judging import EvaluationError
from mmedge_lab.judging.bundle_cases import Case, strategy_named
from mmedge_lab.judging.bundle_under_test import BundleUnderTest
from mmedge_lab.judging.cached_networks import CachedNetworks
from mmedge_lab.judging.case_figures import (
    CaseFigures,
    case_figures,
    figures_bytes,
    read_figures,
)
from mmedge_lab.judging.encoded_flight import (
    EncodedFlight,
    encode_flight,
    load_flight,
    replay_encoded,
)
from mmedge_ros.data_types import CAMERA, RADAR
from mmedge_ros.encoding.unit_encoder import UnitEncoder
from mmedge_ros.pipeline.pipeline_parameters import PipelineParameters
from mmedge_ros.records.ground_truth import GroundTruth, TrueFrame
from mmedge_ros.replay.recording import Recording
from mmedge_ros.report.accuracy import accuracy_of
from mmedge_ros.report.report_files import kept_content, write_files

# Of the work on a flight; a guess that only the progress depends on.
_ENCODING_SHARE = 0.3


@dataclass(frozen=True)
class FlightTask:
    """A flight to evaluate: its folder and digest, what to judge, and where results are kept."""

    flight: Path
    digest: str
    bundle: BundleUnderTest
    cases: tuple[Case, ...]
    folder: Path

    @property
    def name(self) -> str:
        return self.flight.name

    def pending(self) -> tuple[Case, ...]:
        """Return the cases without a result of this bundle, flight and software."""
        return tuple(case for case in self.cases if self.result(case) is None)

    def result(self, case: Case) -> CaseFigures | None:
        """Return the figures of a case; None where they are not there yet."""
        content = kept_content(self._path(case))
        return None if content is None else read_figures(content, self._key(case))

    def keep(self, case: Case, figures: CaseFigures) -> None:
        """Write the figures of a case.

        :raises EvaluationError: if that is not possible
        """
        path = self._path(case)
        write_files(path.parent, {path.name: figures_bytes(figures, self._key(case))})

    def _path(self, case: Case) -> Path:
        return self.folder / self.name / f'{case.key}.npz'

    def _key(self, case: Case) -> str:
        return f'{self.bundle.digest} {self.digest} {case.key}'


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


def evaluate_flight(task: FlightTask, on_progress: Callable[[float], None] | None = None) -> None:
    """Replay and judge every case of a flight that has no result yet.

    :param on_progress: called with the share done, 0..1
    :raises EvaluationError: if the flight has no ground truth or a result cannot be written
    :raises ReplayError: if the flight cannot be read
    :raises EncodingError: if the bundle cannot be used
    """
    pending = task.pending()
    if not pending:
        return

    def report(share: float) -> None:
        if on_progress:
            on_progress(share)

    flight = _encoded(task, pending, lambda share: report(_ENCODING_SHARE * share))
    assert flight.truth is not None  # `_encoded` requires it
    truth, networks = CachedTruth(flight.truth), task.bundle.networks()
    for number, case in enumerate(pending):
        task.keep(case, judge_case(flight, truth, task.bundle, case, networks))
        report(_ENCODING_SHARE + (1.0 - _ENCODING_SHARE) * (number + 1) / len(pending))


def judge_case(
    flight: EncodedFlight,
    truth: GroundTruth,
    bundle: BundleUnderTest,
    case: Case,
    networks: CachedNetworks | None = None,
) -> CaseFigures:
    """Replay an encoded flight as a case says, and judge it.

    :param networks: those of the bundle; None for decision fusion
    """
    strategy = strategy_named(case.strategy)
    record = replay_encoded(
        flight,
        bundle.pipeline(strategy, networks),
        case.configuration,
        bundle.profile,
        strategy.modalities,
    )
    accuracy = accuracy_of(record, truth, at_once=False)
    assert accuracy is not None  # the truth has scenes
    return case_figures(record, truth, accuracy)


def _encoded(
    task: FlightTask, pending: Sequence[Case], on_progress: Callable[[float], None]
) -> EncodedFlight:
    levels: dict[str, set[str]] = {CAMERA: set(), RADAR: set()}
    for case in pending:
        for modality in strategy_named(case.strategy).modalities:
            levels[modality].add(case.configuration.of(modality).level)
    with Recording(task.flight) as recording:
        return encoded_with_truth(recording, task.bundle.encoders(), levels, on_progress)


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
