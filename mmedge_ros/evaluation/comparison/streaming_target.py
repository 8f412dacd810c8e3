"""The headline's promise: better streaming accuracy than every rival, at each processor share."""

from __future__ import annotations

from collections.abc import Iterator

from mmedge_ros.data_types import CAMERA
from mmedge_ros.evaluation.comparison.estimates import MEAN_IOU, P50, STREAMING
from mmedge_ros.evaluation.comparison.outcome import Outcome
from mmedge_ros.evaluation.comparison.plan import OURS, ComparisonCase
from mmedge_ros.evaluation.comparison.report import Comparison
from mmedge_ros.evaluation.comparison.verdict import (
    MET,
    MISSED,
    NOT_SHOWN,
    Evidence,
    Verdict,
    signed,
    unmeasured,
)
from mmedge_ros.evaluation.policies.schedule import STREAM

_TARGET = 'streaming mean IoU better than every baseline, interval above zero'
# Windows alike from which on a rival did the same, not something better or worse.
_SAME = 0.5


def streaming(evidence: Evidence) -> Iterator[Verdict]:
    """Yield a verdict for each share of the processor."""
    plan = evidence.comparison.plan
    rivals = [f for f in plan.rivals if plan.has(f.name, STREAM)]
    if not plan.has(OURS, STREAM) or not rivals:
        command = evidence.with_options('--protocols stream')
        yield unmeasured('streaming', _TARGET, 'ours and a rival in the stream protocol', command)
        return
    yield _at(evidence, plan.shares[0], 'streaming', _TARGET)
    for share in plan.shares[1:]:
        key, target = f'streaming_{share:g}', f'{_TARGET}, at {share:g} % of the processor'
        yield _at(evidence, share, key, target)


def _at(evidence: Evidence, share: float, key: str, target: str) -> Verdict:
    comparison = evidence.comparison
    plan = comparison.plan
    ours = plan.base(OURS, STREAM)._replace(share=share)
    mine = comparison.figure(ours, STREAMING)
    others = {
        facts: ours._replace(policy=facts.name)
        for facts in plan.rivals
        if ours._replace(policy=facts.name) in comparison.outcomes
    }
    gaps = {f: mine.minus(comparison.figure(case, STREAMING)) for f, case in others.items()}
    worse = [f for f, gap in gaps.items() if gap.value < 0.0]
    unsure = [f for f, gap in gaps.items() if gap.value >= 0.0 and not gap.low > 0.0]
    nearest, least = min(gaps.items(), key=lambda item: item[1].value)
    return Verdict(
        key,
        target,
        '70.47 % mean IoU (its own data, not streamed)',
        f'{mine.value:.3f}; better than {len(gaps) - len(worse) - len(unsure)} of {len(gaps)}',
        MISSED if worse else NOT_SHOWN if unsure else MET,
        f'least margin {signed(least)} against {nearest.short}',
        ' '.join(explained(evidence, ours, others[f], f.short) for f in (*worse, *unsure)),
        evidence.with_options('--protocols stream'),
    )


def explained(evidence: Evidence, ours: ComparisonCase, other: ComparisonCase, short: str) -> str:
    """Tell from measurements whether a rival gains by accuracy or by time, or is the same."""

    def pair(name: str) -> tuple[float, float]:
        return evidence.value(ours, name), evidence.value(other, name)

    iou, p50, age = pair(MEAN_IOU), pair(P50), pair(f'age_ms.{CAMERA}.p50')
    busy = pair(f'encoder_busy.{CAMERA}')
    words = (
        f'Ours and {short}: mean IoU at state times {iou[0]:.3f} and {iou[1]:.3f}, median '
        f'latency {p50[0]:.0f} and {p50[1]:.0f} ms, median age of the picture {age[0]:.0f} and '
        f'{age[1]:.0f} ms, camera encoder busy {100 * busy[0]:.0f} and {100 * busy[1]:.0f} %.'
    )
    alike = alike_share(evidence.comparison, ours, other)
    if alike >= _SAME:
        words += (
            f' In {100 * alike:.0f} % of the windows both had the camera at the same rate and '
            'level, where nothing can be gained over it.'
        )
    return words


def alike_share(comparison: Comparison, ours: ComparisonCase, other: ComparisonCase) -> float:
    """Return the share of our windows in which another had the camera in the same configuration.

    0..1; 0 where there is no window.
    """
    same = count = 0
    for mine, theirs in zip(comparison.outcomes[ours], comparison.outcomes[other], strict=True):
        known = dict(_camera(theirs))
        found = _camera(mine)
        count += len(found)
        same += sum(known.get(end) == how for end, how in found)
    return same / count if count else 0.0


def _camera(outcome: Outcome) -> list[tuple[float, tuple[float, str]]]:
    """Return end, rate and level of each window."""
    ends, rates = outcome.column('end').tolist(), outcome.column(f'rate_{CAMERA}').tolist()
    return [
        (end, (rate, level)) for end, rate, level in zip(ends, rates, outcome.levels, strict=True)
    ]
