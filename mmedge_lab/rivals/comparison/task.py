"""One flight of a comparison: encoded once, then every case run that has no outcome yet."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

from mmedge_lab.judging.bundle_under_test import BundleUnderTest, software_digest
from mmedge_lab.judging.cached_networks import CachedNetworks
from mmedge_lab.judging.encoded_flight import EncodedFlight
from mmedge_lab.judging.flight_cases import CachedTruth, encoded_with_truth
from mmedge_lab.policies.policy_run import PolicyRun, run_policy
from mmedge_lab.policies.registry import policy_named
from mmedge_lab.policies.steering import Plugins
from mmedge_lab.rivals.comparison.outcome import (
    Outcome,
    outcome_bytes,
    outcome_of,
    read_outcome,
)
from mmedge_lab.rivals.comparison.plan import ComparisonCase
from mmedge_ros.configuration.configuration_space import LEVELS_FROM_CHEAPEST
from mmedge_ros.replay.recording import Recording
from mmedge_ros.report.report_files import kept_content, write_files

MS_PER_S = 1e3
# Of the work on a flight; a guess that only the progress depends on.
_ENCODING_SHARE = 0.3


# Runs a policy over an encoded flight; must be one that can be pickled.
PolicyRunner: TypeAlias = Callable[
    [ComparisonCase, EncodedFlight, BundleUnderTest, CachedNetworks | None], PolicyRun
]


def run_case(
    plugins: Plugins,
    case: ComparisonCase,
    flight: EncodedFlight,
    bundle: BundleUnderTest,
    networks: CachedNetworks | None,
) -> PolicyRun:
    """Run the policy of a case with the service times of the bundle under test."""
    return run_policy(
        case.policy,
        flight,
        bundle,
        protocol=case.protocol,
        cpu_share=case.share / 100.0,
        latency_limit=case.limit_ms / MS_PER_S,
        plugins=plugins,
        networks=networks,
    )


@dataclass(frozen=True)
class ComparisonTask:
    """A flight to compare policies on, and the folder that keeps outcomes.

    ``name`` is unique among the flights of all sets. ``extra`` is the digest of
    everything else that decides: trained plug-ins, the runner's own software.
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
        content = kept_content(self._path(case))
        return None if content is None else read_outcome(content, self._key(case))

    def keep(self, case: ComparisonCase, outcome: Outcome) -> None:
        """Write the outcome of a case.

        :raises ReportError: if that is not possible
        """
        path = self._path(case)
        write_files(path.parent, {path.name: outcome_bytes(outcome, self._key(case))})

    def _path(self, case: ComparisonCase) -> Path:
        return self.folder / self.name / f'{case.key}.npz'

    def _key(self, case: ComparisonCase) -> str:
        return f'{self.bundle.digest} {self.digest} {self.extra} {case.key}'


def policies_digest() -> str:
    """Return what changes with the code that policies and their judgement depend on."""
    return software_digest()


def compare_flight(
    task: ComparisonTask,
    on_progress: Callable[[float], None] | None = None,
) -> None:
    """Run and judge every case of a flight that has no outcome yet, and keep each.

    :param on_progress: called with the share done, 0..1
    :raises EvaluationError: if the flight has no ground truth or an outcome cannot be written
    :raises ReplayError: if the flight cannot be read
    :raises EncodingError: if the bundle cannot be used
    """
    pending = task.pending()
    if not pending:
        return
    report = on_progress or (lambda _: None)
    encoders = task.bundle.encoders()
    levels = {
        modality: encoder.levels or LEVELS_FROM_CHEAPEST for modality, encoder in encoders.items()
    }
    with Recording(task.flight) as recording:
        flight = encoded_with_truth(
            recording,
            encoders,
            levels,
            lambda share: report(_ENCODING_SHARE * share),
            with_greys=any(policy_named(case.policy).reuses for case in pending),
        )
    assert flight.truth is not None  # it is one that can be judged
    truth, networks = CachedTruth(flight.truth), task.bundle.networks()
    for number, case in enumerate(pending):
        run = task.run(case, flight, task.bundle, networks)
        outcome = outcome_of(run, truth, case.limit_ms / MS_PER_S)
        whole = replace(outcome, problems=tuple(flight.record.problems))
        task.keep(case, whole)
        report(_ENCODING_SHARE + (1.0 - _ENCODING_SHARE) * (number + 1) / len(pending))
