"""A verdict on a target, and the evidence it is made from."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from mmedge_lab.judging.flight_bootstrap import Estimate
from mmedge_lab.rivals.comparison.measured_results import Result
from mmedge_lab.rivals.comparison.plan import ComparisonCase
from mmedge_lab.rivals.comparison.report import Comparison
from mmedge_ros.records.device_profile import DeviceProfile

MET, MISSED, NOT_SHOWN, NOT_MEASURED = 'met', 'missed', 'not shown', 'not measured'


@dataclass(frozen=True)
class Verdict:
    """A target: what was ``found``, the verdict, by how much, why, and what repeats it."""

    key: str
    target: str
    paper: str
    found: str
    verdict: str
    by: str = ''
    why: str = ''
    command: str = ''


class Target(NamedTuple):
    """What is promised, in words, and what the paper reports of it."""

    key: str
    words: str
    paper: str = ''

    def judged(self, found: str, verdict: str, by: str, why: str, command: str) -> Verdict:
        """Return the verdict on what was measured."""
        return Verdict(self.key, self.words, self.paper, found, verdict, by, why, command)

    def unmeasured(self, needed: str, command: str, paper: str = '') -> Verdict:
        """Return the verdict that nothing was measured, and what that needs."""
        why = f'It needs {needed}.'
        return Verdict(self.key, self.words, paper, '–', NOT_MEASURED, '', why, command)

    def gained(self, gain: Estimate, found: str, why: str, command: str) -> Verdict:
        """Return the verdict on a gain that should be above zero, with its whole interval."""
        verdict = MET if gain.low > 0.0 else MISSED if gain.value <= 0.0 else NOT_SHOWN
        by = f'{gain.value:+.3f}' if math.isfinite(gain.value) else ''
        return self.judged(found, verdict, by, why, command)


@dataclass(frozen=True)
class Evidence:
    """What verdicts are made from; ``command`` evaluates, without its options.

    ``contention`` is the report of `contention`, ``accuracies`` says by which the optimiser
    chose, ``results`` are measured by other commands, by kind. ``bundle`` is the name of the
    one under test.
    """

    comparison: Comparison
    profile: DeviceProfile
    overheads: Mapping[str, Any] | None
    command: str
    contention: Mapping[str, Any] | None = None
    accuracies: str = ''
    results: Mapping[str, Result] = field(default_factory=dict)
    bundle: str = ''

    def with_options(self, options: str) -> str:
        """Return the command with options."""
        return f'{self.command} {options}'.strip()

    def value(self, case: ComparisonCase, name: str) -> float:
        """Return a figure of a case."""
        return self.comparison.figure(case, name).value


def signed(estimate: Estimate, digits: int = 3) -> str:
    """Write a difference with its interval."""
    form = f'+.{digits}f'
    return f'{estimate.value:{form}} {interval(estimate, 1.0, form)}'.strip()


def percent(share: float) -> str:
    """Write a share as percentage, or a dash where there is none."""
    return f'{100.0 * share:.1f} %' if math.isfinite(share) else '–'


def interval(estimate: Estimate, scale: float, form: str = '.1f') -> str:
    """Write an interval in brackets; '' where there is none."""
    if not (math.isfinite(estimate.low) and math.isfinite(estimate.high)):
        return ''
    return f'({scale * estimate.low:{form}} to {scale * estimate.high:{form}})'


def margin(spare: float, unit: str) -> str:
    """Write by how much a target is kept or missed."""
    return f'{abs(spare):.2f}{unit} {"to spare" if spare >= 0.0 else "short"}'
