"""One flight of a comparison: encoded once, then every case run, what is there already kept."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from mmedge_ros.data_types import CAMERA, RADAR
from mmedge_ros.encoding.weights import sha256_of
from mmedge_ros.evaluation.bundle_cases import LEVELS
from mmedge_ros.evaluation.bundle_under_test import BundleUnderTest
from mmedge_ros.evaluation.comparison.outcome import Outcome, PolicyResult, outcome_of
from mmedge_ros.evaluation.comparison.outcome_file import outcome_bytes, read_outcome
from mmedge_ros.evaluation.comparison.plan import ComparisonCase
from mmedge_ros.evaluation.errors import EvaluationError
from mmedge_ros.evaluation.flight_cases import RememberedTruth
from mmedge_ros.evaluation.remembered_networks import RememberedNetworks
from mmedge_ros.evaluation.report_files import write_files
from mmedge_ros.pipeline.perception_pipeline import PipelineParameters
from mmedge_ros.replay.encoded_flight import EncodedFlight, encode_flight, load_flight
from mmedge_ros.replay.recording import Recording

MS_PER_S = 1e3
# Of the work on a flight; a guess that only the progress depends on.
_ENCODING_SHARE = 0.3
_LARGEST_FILE = 50 << 20
_PACKAGE = Path(__file__).resolve().parents[2]
# What decides about an outcome beside what `BundleUnderTest` knows of.
_DECIDING = (
    *('configuration', 'skipping', 'evaluation/policies', 'evaluation/tracking_accuracy.py'),
    *('evaluation/comparison/outcome.py', 'evaluation/comparison/task.py'),
)


class PolicyRunner(Protocol):
    """Runs a policy over an encoded flight; must be one that can be pickled."""

    def __call__(
        self,
        case: ComparisonCase,
        flight: EncodedFlight,
        bundle: BundleUnderTest,
        networks: RememberedNetworks | None,
    ) -> PolicyResult: ...


@dataclass(frozen=True)
class ComparisonTask:
    """A flight to compare policies on, and where what is found is kept.

    ``name`` tells it from the other flights, of other sets too. ``extra`` is the digest of
    whatever else decides: trained plug-ins, the runner's own software.
    """

    name: str
    flight: Path
    digest: str
    bundle: BundleUnderTest
    cases: tuple[ComparisonCase, ...]
    folder: Path
    run: PolicyRunner
    extra: str = ''

    def pending(self) -> tuple[ComparisonCase, ...]:
        """Return the cases without an outcome of this bundle, flight and software."""
        return tuple(case for case in self.cases if self.result(case) is None)

    def result(self, case: ComparisonCase) -> Outcome | None:
        """Return the outcome of a case; None where it is not there yet, or damaged."""
        path = self._path(case)
        try:
            if not path.is_file() or path.stat().st_size > _LARGEST_FILE:
                return None
            return read_outcome(path.read_bytes(), self._key(case))
        except OSError:
            return None

    def content(self, outcome: Outcome, case: ComparisonCase) -> bytes:
        """Return what is kept of an outcome."""
        return outcome_bytes(outcome, self._key(case))

    def keep(self, case: ComparisonCase, content: bytes) -> None:
        """Write what `content` gave.

        :raises EvaluationError: if that is not possible
        """
        path = self._path(case)
        write_files(path.parent, {path.name: content})

    def _path(self, case: ComparisonCase) -> Path:
        return self.folder / self.name / f'{case.key}.npz'

    def _key(self, case: ComparisonCase) -> str:
        return f'{self.bundle.digest} {self.digest} {self.extra} {case.key}'


def software_digest() -> str:
    """Return what changes with the code that policies and their judgement depend on."""
    digest = hashlib.sha256()
    for name in _DECIDING:
        path = _PACKAGE / name
        for file in [path] if path.is_file() else sorted(path.rglob('*.py')):
            digest.update(f'{file.relative_to(_PACKAGE)} {sha256_of(file)}\n'.encode())
    return digest.hexdigest()


def compare_flight(
    task: ComparisonTask, on_progress: Callable[[float], None] | None = None
) -> None:
    """Run and judge every case of a flight that has no outcome yet, and keep each.

    :param on_progress: called with the share done, 0..1
    :raises EvaluationError: if the flight has no ground truth or an outcome cannot be written
    :raises ReplayError: if the flight cannot be read
    :raises EncodingError: if the bundle cannot be used
    """
    compare_pending(task, task.keep, on_progress)


def compare_pending(
    task: ComparisonTask,
    keep: Callable[[ComparisonCase, bytes], None],
    on_progress: Callable[[float], None] | None = None,
) -> None:
    """Do as `compare_flight` does, and hand what is to be kept to ``keep``."""
    pending = task.pending()
    if not pending:
        return

    def tell(share: float) -> None:
        if on_progress:
            on_progress(share)

    flight = _encoded(task, lambda share: tell(_ENCODING_SHARE * share))
    assert flight.truth is not None  # `_encoded` has seen to that
    truth, networks = RememberedTruth(flight.truth), task.bundle.networks()
    for number, case in enumerate(pending):
        run = task.run(case, flight, task.bundle, networks)
        outcome = outcome_of(run, truth, case.limit_ms / MS_PER_S)
        keep(case, task.content(outcome, case))
        tell(_ENCODING_SHARE + (1.0 - _ENCODING_SHARE) * (number + 1) / len(pending))


def _encoded(task: ComparisonTask, tell: Callable[[float], None]) -> EncodedFlight:
    encoders = task.bundle.encoders()
    with Recording(task.flight) as recording:
        flight = load_flight(recording, PipelineParameters())
        if flight.truth is None or not flight.truth.scenes:
            why = 'none that can be used' if flight.truth else 'none'
            raise EvaluationError(
                f'{task.flight}: ground truth is needed to judge anything, and this recording '
                f'has {why}; use flights made by `mmedge simulate`'
            )
        missing = [m for m in (CAMERA, RADAR) if m not in recording.modalities]
        if missing:
            raise EvaluationError(
                f'{task.flight}: the recording has no {missing[0]}; use flights with camera and '
                'radar, as `mmedge simulate` writes them'
            )
        wanted = {modality: encoder.levels or LEVELS for modality, encoder in encoders.items()}
        encode_flight(flight, recording, encoders, wanted, tell)
    return flight
