"""What a verdict on a promise says, and what it is made from."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mmedge_ros.lab.comparison.measured_results import Result
from mmedge_ros.lab.comparison.plan import ComparisonCase
from mmedge_ros.lab.comparison.report import Comparison
from mmedge_ros.lab.evaluation.flight_bootstrap import Estimate
from mmedge_ros.records.device_profile import DeviceProfile

MET, MISSED, NOT_SHOWN, NOT_MEASURED = 'met', 'missed', 'not shown', 'not measured'


@dataclass(frozen=True)
class Verdict:
    """One promise: ``found`` beside it, the verdict, by how much, why, and what repeats it."""

    key: str
    target: str
    paper: str
    found: str
    verdict: str
    by: str = ''
    why: str = ''
    command: str = ''


@dataclass(frozen=True)
class Evidence:
    """What verdicts are made from; ``command`` evaluates, without its options.

    ``contention`` is what `contention` found, ``accuracies`` says by which the optimiser chose,
    ``results`` are what other commands measured, by kind. ``bundle`` is the name of the one
    under test.
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


def unmeasured(key: str, target: str, needed: str, command: str, paper: str = '') -> Verdict:
    """Return a verdict that there is none, and what it would need."""
    return Verdict(key, target, paper, '–', NOT_MEASURED, '', f'It needs {needed}.', command)


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
    """Say by how much a target is kept or missed."""
    return f'{abs(spare):.2f}{unit} {"to spare" if spare >= 0.0 else "short"}'
