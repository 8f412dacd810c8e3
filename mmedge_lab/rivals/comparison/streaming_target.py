"""The headline's target: better streaming accuracy than every rival, at each share and limit."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from mmedge_lab.judging.flight_bootstrap import Estimate
from mmedge_lab.policies.schedule import STREAM
from mmedge_lab.rivals.comparison.estimates import MEAN_IOU, P50, STREAMING
from mmedge_lab.rivals.comparison.outcome import Outcome
from mmedge_lab.rivals.comparison.plan import OURS, ComparisonCase, PolicyFacts
from mmedge_lab.rivals.comparison.report import Comparison
from mmedge_lab.rivals.comparison.verdict import (
    MET,
    MISSED,
    NOT_SHOWN,
    Evidence,
    Target,
    Verdict,
    percent,
    signed,
)
from mmedge_ros.data_types import CAMERA

_TARGET = Target(
    'streaming',
    'streaming mean IoU better than every baseline, interval above zero',
    '70.47 % mean IoU (its own data, not streamed)',
)
# Windows alike from which on it is worth a word, and from which on it is a tie.
_SAME, _TIE = 0.5, 0.9
_DIGITS = 4
# Late or dropped windows up to which the machine is said to have room for everything.
_FITS = 0.01


class _Beside(NamedTuple):
    """Ours beside the rivals at one share and limit: its gain over each, by how that turned out.

    ``ties`` are rivals that did the same in nearly all windows.
    """

    ours: ComparisonCase
    gaps: Mapping[PolicyFacts, Estimate]
    ties: tuple[PolicyFacts, ...]

    @property
    def worse(self) -> list[PolicyFacts]:
        return [f for f, gap in self.gaps.items() if gap.value < 0.0 and f not in self.ties]

    @property
    def unsure(self) -> list[PolicyFacts]:
        near = [f for f, gap in self.gaps.items() if gap.value >= 0.0 and not gap.low > 0.0]
        return [f for f in near if f not in self.ties]

    @property
    def verdict(self) -> str:
        if self.worse:
            return MISSED
        return NOT_SHOWN if self.unsure or self.ties else MET

    @property
    def place(self) -> str:
        return f'{self.ours.share:g} % of the processor and {self.ours.limit_ms:g} ms'


def streaming(evidence: Evidence) -> Iterator[Verdict]:
    """Yield a verdict for each share of the processor and each latency limit."""
    plan = evidence.comparison.plan
    if not plan.has(OURS, STREAM) or not any(plan.has(f.name, STREAM) for f in plan.rivals):
        command = evidence.with_options('--protocols stream')
        yield _TARGET.unmeasured('ours and a rival in the stream protocol', command)
        return
    base = plan.base(OURS, STREAM)
    cases = [case for case in plan.cases if case.policy == OURS and case.protocol == STREAM]
    results = [_beside(evidence.comparison, case) for case in cases]
    for beside in results:
        share, limit_ms = beside.ours.share, beside.ours.limit_ms
        target, elsewhere = _TARGET, ''
        if share != base.share:
            words = f'{_TARGET.words}, at {share:g} % of the processor'
            target = _TARGET._replace(key=f'streaming_{share:g}', words=words)
        elif limit_ms != base.limit_ms:
            words = f'{_TARGET.words}, at a limit of {limit_ms:g} ms'
            target = _TARGET._replace(key=f'streaming_{limit_ms:g}ms', words=words)
        elif len(results) > 1:
            elsewhere = _elsewhere(results)
        yield _judged(evidence, beside, target, elsewhere)


def _beside(comparison: Comparison, ours: ComparisonCase) -> _Beside:
    mine = comparison.figure(ours, STREAMING)
    gaps, ties = {}, []
    for facts in comparison.plan.rivals:
        other = ours._replace(policy=facts.name)
        if other in comparison.outcomes:
            gaps[facts] = mine.minus(comparison.figure(other, STREAMING))
            sure = gaps[facts].excludes_zero
            if not sure and alike_share(comparison, ours, other) >= _TIE:
                ties.append(facts)
    return _Beside(ours, gaps, tuple(ties))


def _judged(evidence: Evidence, beside: _Beside, target: Target, more: str) -> Verdict:
    nearest, least = min(beside.gaps.items(), key=lambda item: item[1].value)
    others = [*beside.worse, *beside.unsure, *beside.ties]
    words = f'better than {len(beside.gaps) - len(others)} of {len(beside.gaps)}'
    if beside.ties:
        words += f', a tie with {" and ".join(facts.short for facts in beside.ties)}'
    why = [
        explained(evidence, beside.ours, beside.ours._replace(policy=f.name), f.short)
        for f in others
    ]
    lost = evidence.value(beside.ours, 'late_or_dropped_share')
    if beside.ties and lost <= _FITS:
        why.append(
            f'With {percent(lost)} late or dropped all that is asked for fits, so that choosing '
            'rates and levels can gain nothing over always having the highest.'
        )
    return target.judged(
        f'{evidence.value(beside.ours, STREAMING):.3f}; {words}',
        beside.verdict,
        f'least margin {signed(least)} against {nearest.short}',
        ' '.join([*why, *([more] if more else [])]),
        evidence.with_options('--protocols stream'),
    )


def _elsewhere(results: list[_Beside]) -> str:
    shown = [beside.place for beside in results if beside.verdict == MET]
    rest = [beside.place for beside in results if beside.verdict != MET]
    if not shown:
        return 'It is shown at none of the shares and limits that were run.'
    return f'It is shown at {", ".join(shown)}' + (
        f', and not at {", ".join(rest)}.' if rest else '.'
    )


def explained(evidence: Evidence, ours: ComparisonCase, other: ComparisonCase, short: str) -> str:
    """Say by measurements whether a rival gains by accuracy or by time, or is the same."""

    def pair(name: str) -> tuple[float, float]:
        return evidence.value(ours, name), evidence.value(other, name)

    iou, p50, age = pair(MEAN_IOU), pair(P50), pair(f'age_ms.{CAMERA}.p50')
    busy, late = pair(f'encoder_busy.{CAMERA}'), pair('late_or_dropped_share')
    words = (
        f'Ours and {short}: mean IoU at state times {iou[0]:.3f} and {iou[1]:.3f}, median '
        f'latency {p50[0]:.0f} and {p50[1]:.0f} ms, median age of the picture {age[0]:.0f} and '
        f'{age[1]:.0f} ms, camera encoder busy {100 * busy[0]:.0f} and {100 * busy[1]:.0f} %, '
        f'windows late or dropped {percent(late[0])} and {percent(late[1])}.'
    )
    alike = alike_share(evidence.comparison, ours, other)
    if alike >= _SAME:
        words += (
            f' In {100 * alike:.0f} % of the windows both had the camera at the same rate and '
            'level and the same latency.'
        )
    return words


def alike_share(comparison: Comparison, ours: ComparisonCase, other: ComparisonCase) -> float:
    """Return the share of our windows in which another did the same.

    That is: the camera at the same rate and level, and the decision at the same time. 0..1; 0
    where there is no window.
    """
    same = count = 0
    for mine, theirs in zip(comparison.outcomes[ours], comparison.outcomes[other], strict=True):
        known = dict(_windows(theirs))
        windows = _windows(mine)
        count += len(windows)
        same += sum(known.get(end) == how for end, how in windows)
    return same / count if count else 0.0


def _windows(outcome: Outcome) -> list[tuple[float, tuple[float, str, float | None]]]:
    """Return end, rate and level of the camera and latency of each window; None where dropped."""
    columns = (outcome.column(name).tolist() for name in ('end', f'rate_{CAMERA}', 'latency'))
    return [
        (end, (rate, level, round(latency, _DIGITS) if math.isfinite(latency) else None))
        for end, rate, latency, level in zip(*columns, outcome.levels, strict=True)
    ]
