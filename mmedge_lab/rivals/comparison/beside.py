"""Another bundle beside that of the headline: ours with each, on the same flights."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from mmedge_lab.judging.bundle_report import plain
from mmedge_lab.rivals.comparison.estimates import CPU, MEAN_IOU, P50, P95, STREAMING
from mmedge_lab.rivals.comparison.plan import OURS, ComparisonPlan
from mmedge_lab.rivals.comparison.report import Comparison
from mmedge_ros.report.page import difference_words

# Key, heading, and how it is written.
BESIDE = (
    (STREAMING, 'streaming mean IoU', 'share'),
    (MEAN_IOU, 'mean IoU', 'share'),
    ('accuracy.mean_iou_20px', 'mean IoU, 20 px and more', 'share'),
    ('accuracy.mean_iou_40px', 'mean IoU, 40 px and more', 'share'),
    ('tracking.mota', 'MOTA', 'plain'),
    ('tracking.idf1', 'IDF1', 'plain'),
    ('accuracy.nees', 'NEES', 'plain'),
    (P50, 'latency p50', 'ms'),
    (P95, 'latency p95', 'ms'),
    ('age_ms.camera.p50', 'age of the picture p50', 'ms'),
    (CPU, 'processor s per s', 'plain'),
)


def ours_alone(plan: ComparisonPlan) -> ComparisonPlan:
    """Return the plan for ours alone, at the headline's protocol, share and limit."""
    return ComparisonPlan(
        (plan.facts(OURS),),
        (plan.protocol,),
        plan.shares[:1],
        plan.limits_ms[:1],
        (plan.base(OURS),),
    )


def beside_report(name: str, headline: Comparison, other: Comparison) -> dict[str, Any]:
    """Return figures of ours with each bundle, and the headline's minus the other's."""
    case = headline.plan.base(OURS)
    figures = {}
    for key, _, _ in BESIDE:
        mine, theirs = headline.figure(case, key), other.figure(case, key)
        gain = mine.minus(theirs)
        figures[key] = {
            'headline': plain(mine.estimate),
            'other': plain(theirs.estimate),
            'difference': plain(gain) | {'excludes_zero': gain.excludes_zero},
        }
    return {'name': name, 'figures': figures}


def beside_table(
    report: Mapping[str, Any], cell: Callable[[Mapping[str, float | None], str], str]
) -> tuple[list[str], list[list[str]]] | None:
    """Return heading and rows: ours with each bundle, and the gain; None without another one.

    :param cell: writes a figure in a form
    """
    beside = report.get('beside')
    if beside is None:
        return None
    rows = []
    for key, words, form in BESIDE:
        row = beside['figures'][key]
        estimates = [cell(row[name], form) for name in ('headline', 'other')]
        rows.append([words, *estimates, difference_words(row['difference'])])
    return ['', report['bundle']['name'], beside['name'], 'difference'], rows
