"""The page and the Markdown of a comparison."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from mmedge_lab.judging import TEMPLATES
from mmedge_lab.policies.schedule import SAMPLE, STREAM
from mmedge_lab.rivals.comparison.beside import beside_table
from mmedge_lab.rivals.comparison.condition_figures import ROBUSTNESS, TIMELINE
from mmedge_lab.rivals.comparison.estimates import MEAN, MEAN_IOU, P50, P95, STREAMING
from mmedge_lab.rivals.comparison.figures import (
    ABLATION,
    COSTS,
    PLANE,
    headline_differences,
    measured_overheads,
)
from mmedge_lab.rivals.comparison.plan import BLOCKING, OURS
from mmedge_lab.rivals.comparison.policy_marks import base_case
from mmedge_lab.rivals.comparison.report import FACTORS, figure_of
from mmedge_lab.rivals.comparison.verdict import MET, MISSED, NOT_MEASURED, NOT_SHOWN
from mmedge_ros.report.page import (
    UNKNOWN,
    Tile,
    difference_words,
    level_words,
    markdown_table,
    render_page,
)

if TYPE_CHECKING:
    from mmedge_ros.report.figure_style import FigureFile

_ORDER = (MET, MISSED, NOT_SHOWN, NOT_MEASURED)
# Figures of a policy by the table they stand in: key, heading, and how it is written.
COLUMN_GROUPS = {
    'Accuracy and misses': (
        (STREAMING, 'streaming mean IoU', 'share'),
        (MEAN_IOU, 'mean IoU', 'share'),
        ('tracking.mota', 'MOTA', 'plain'),
        ('tracking.idf1', 'IDF1', 'plain'),
        ('deadline_miss_rate', 'late', 'percent'),
        ('dropped_share', 'dropped', 'percent'),
        ('rested_share', 'rested', 'percent'),
    ),
    'Latency, age and waiting': (
        (P50, 'latency p50', 'ms'),
        (P95, 'p95', 'ms'),
        ('latency_ms.p99', 'p99', 'ms'),
        ('age_ms.camera.p50', 'age of picture p50', 'ms'),
        ('age_ms.camera.p95', 'p95', 'ms'),
        ('age_ms.radar.p50', 'age of scan p50', 'ms'),
        ('waiting_ms.camera.p95', 'waiting, camera p95', 'ms'),
        ('waiting_ms.radar.p95', 'radar p95', 'ms'),
    ),
    'Work and power': (
        ('encoder_calls_per_s.camera', 'encoded pictures /s', 'plain'),
        ('encoder_calls_per_s.radar', 'scans /s', 'plain'),
        ('encoder_busy.camera', 'camera busy', 'percent'),
        ('cpu_s_per_s', 'processor s/s', 'plain'),
        ('power_w', 'power, model', 'watts'),
        ('part_w.camera', 'of it camera', 'watts'),
        ('part_w.radar', 'radar', 'watts'),
        ('part_w.decisions', 'decisions', 'watts'),
    ),
}
COLUMNS = tuple(column for group in COLUMN_GROUPS.values() for column in group)
# The figure of the paper beside each of ours, and its result.
_PAPER = {
    PLANE: (
        'figure 11',
        'On LRW 137.67 ms with everything, 192.03 ms without skipping, a naive pipeline 164 ms at '
        '72.44 %, blocking 242 ms at 92.76 %; under a limit of 120 / 160 ms 76.44 / 91.92 %. On '
        'the drone mean IoU 70.47 % and 75.83 % less latency than blocking.',
    ),
    ROBUSTNESS: (
        'figure 12',
        'With the processor capped to 100, 64 and 50 % latency stays low and accuracy high; it '
        'gives a figure and no numbers.',
    ),
    ABLATION: (
        'figure 13',
        '19.5 points are lost without temporal aggregation, and 137.67 ms become 192.03 ms '
        'without skipping.',
    ),
    COSTS: ('figure 14', 'Aggregation 5.4 ms, optimiser 8.2 ms (5.9 to 37 ms), skipping 8.6 ms.'),
    TIMELINE: (
        'figure 10',
        'Supply, load and configuration over one flight; it gives a figure and no numbers.',
    ),
}


def render_comparison_page(report: Mapping[str, Any], figures: Sequence[FigureFile]) -> str:
    """Render the page from the content of report.json and the figures."""
    return render_page(
        'comparison.html.j2',
        report,
        figures,
        {'cell': cell, 'figure': figure_of},
        folder=TEMPLATES,
        title=report['bundle']['name'],
        summary=summary(report),
        tiles=tiles(report),
        stories=[(figure, *_story(report, figure.name)) for figure in figures],
        groups=COLUMN_GROUPS,
        rows=list(_headline_rows(report)),
        others=list(_other_rows(report)),
        factors=list(_factors(report)),
        beside=beside_table(report, cell),
        policies={facts['name']: facts for facts in report['plan']['policies']},
    )


def comparison_markdown(report: Mapping[str, Any]) -> str:
    """Write the verdicts and the figures as Markdown."""
    keys = ('target', 'found', 'verdict', 'by', 'paper', 'why')
    verdicts = [[verdict[key] for key in keys] for verdict in report['verdicts']]
    policies = [
        [facts['short'], *(cell(figure_of(row, key), form) for key, _, form in COLUMNS)]
        for facts, row in _headline_rows(report)
    ]
    strata = [[factor, name, *cells] for factor, name, cells in _strata(report)]
    shorts = [facts['short'] for facts, _ in _headline_rows(report)]
    beside = beside_table(report, cell)
    parts = [
        f'# {report["bundle"]["name"]}: policies compared\n\n{summary(report)}\n',
        '\n'.join(f'- {problem}' for problem in report['problems']) + '\n',
        '## Targets\n',
        markdown_table(['target', 'ours', *keys[2:]], verdicts, '---'),
        f'## Policies\n\n{_headline_words(report)}\n',
        markdown_table(['policy', *(words for _, words, _ in COLUMNS)], policies, '---'),
        *(['## Ours with another bundle\n', markdown_table(*beside)] if beside else ()),
        '## Streaming mean IoU by factor\n',
        markdown_table(['', '', *shorts], strata, '---'),
        f'Repeat with `{report["command"]}`\n',
    ]
    return '\n'.join(parts)


def summary(report: Mapping[str, Any]) -> str:
    """Say in plain words what was compared."""
    plan = report['plan']
    count = len(report['flights'])
    drawn = report['bootstrap']
    return (
        f'{len(plan["policies"])} policies over the same encoders, heads and {count} simulated '
        f'flight{"" if count == 1 else "s"} of {drawn["seeds"]} '
        f'seed{"" if drawn["seeds"] == 1 else "s"}. {_headline_words(report)} In brackets 95 % '
        'intervals drawn by seed: flights that share one are drawn together.'
    )


def tiles(report: Mapping[str, Any]) -> list[Tile]:
    """Return the headline figures."""
    counts = verdict_counts(report)
    headline = [
        Tile(
            'Targets met',
            f'{counts[MET]} of {sum(counts.values())}',
            f'{counts[MISSED]} missed, {counts[NOT_SHOWN]} not shown, '
            f'{counts[NOT_MEASURED]} not measured',
        )
    ]
    row = base_case(report, OURS)
    if row is not None:
        iou = figure_of(row, STREAMING)
        headline.append(Tile('Streaming mean IoU', _value(iou, '.3f'), _between(iou, 'ours')))
        p95 = figure_of(row, P95)
        age = _value(figure_of(row, 'age_ms.camera.p95'), '.0f')
        note = f'p95; the picture is then {age} ms old (p95)'
        headline.append(Tile('Latency', f'{_value(p95, ".1f")} ms', note))
    gaps = [
        (facts, differences[STREAMING])
        for name, differences in headline_differences(report).items()
        for facts in report['plan']['policies']
        if facts['name'] == name and not name.startswith(f'{OURS}_') and STREAMING in differences
    ]
    if gaps:
        facts, gap = min(gaps, key=lambda item: item[1]['value'])
        headline.append(
            Tile('Over the best rival', f'{gap["value"]:+.3f}', _between(gap, facts['short']))
        )
    headline += _reduction(report)
    if row is not None:
        calls = [figure_of(row, f'encoder_calls_per_s.{m}') for m in ('camera', 'radar')]
        words = ' + '.join(_value(call, '.0f') for call in calls)
        headline.append(Tile('Encoder calls', words, 'pictures and scans per second, ours'))
    return headline


def _reduction(report: Mapping[str, Any]) -> list[Tile]:
    rows = [base_case(report, name, SAMPLE) for name in (OURS, BLOCKING)]
    means = [figure_of(row, MEAN)['value'] for row in rows if row is not None]
    if len(means) < len(rows) or None in means or not means[1]:
        return []
    ours, blocking = (float(mean or 0.0) for mean in means)
    return [
        Tile(
            'Below blocking',
            f'{100 * (1 - ours / blocking):.1f} %',
            f'{ours:.1f} against {blocking:.1f} ms, each window unloaded',
        )
    ]


def verdict_counts(report: Mapping[str, Any]) -> dict[str, int]:
    """Count the verdicts of each kind."""
    return {
        kind: sum(verdict['verdict'] == kind for verdict in report['verdicts']) for kind in _ORDER
    }


def cell(estimate: Mapping[str, float | None], form: str) -> str:
    """Write a figure for a table; with its interval where that is of interest."""
    value = estimate['value']
    if value is None:
        return UNKNOWN
    if form == 'share':
        return level_words(estimate)
    if form == 'ms':
        return f'{value:.0f} ms' if abs(value) >= 100.0 else f'{value:.1f} ms'
    if form == 'percent':
        return f'{100 * value:.1f} %'
    if form == 'watts':
        return f'{value:.2f} W'
    return f'{value:.2f}' if abs(value) < 10.0 else f'{value:.1f}'


def _headline_words(report: Mapping[str, Any]) -> str:
    headline = report['plan']['headline']
    how = (
        'overlapping windows, backlog carried'
        if headline['protocol'] == STREAM
        else 'each window alone and unloaded'
    )
    return (
        f'Where nothing else is said: the {headline["protocol"]} protocol ({how}), '
        f'{headline["share"]:g} % of the processor, a latency limit of '
        f'{headline["limit_ms"]:g} ms.'
    )


def _headline_rows(
    report: Mapping[str, Any],
) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    policies = sorted(report['plan']['policies'], key=lambda facts: facts['name'] != OURS)
    for facts in policies:
        row = base_case(report, facts['name'])
        if row is not None:
            yield facts, row


def _other_rows(report: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    headline = report['plan']['headline']
    for row in report['cases']:
        if any(row[name] != headline[name] for name in ('protocol', 'share', 'limit_ms')):
            yield row


def _strata(report: Mapping[str, Any]) -> Iterator[tuple[str, str, list[str]]]:
    """Yield factor, name, and the streaming mean IoU of each policy."""
    rows = [row for _, row in _headline_rows(report)]
    if not rows:
        return
    for factor in FACTORS:
        for name, entry in rows[0]['strata'].get(factor, {}).items():
            cells = [
                level_words(row['strata'][factor][name]['streaming_mean_iou'])
                if name in row['strata'].get(factor, {})
                else UNKNOWN
                for row in rows
            ]
            yield factor, f'{name}\N{NO-BREAK SPACE}({entry["flights"]})', cells
    for half in ('easy', 'hard') if rows[0]['halves'] else ():
        yield (
            'half',
            half,
            [level_words(row['halves'][half]['streaming_mean_iou']) for row in rows],
        )


def _factors(
    report: Mapping[str, Any],
) -> Iterator[tuple[str, list[str], list[tuple[Mapping[str, Any], list[str]]]]]:
    """Yield each factor with its names, and for each policy the cells below them."""
    policies = [facts for facts, _ in _headline_rows(report)]
    for factor, group in groupby(_strata(report), key=lambda stratum: stratum[0]):
        names, columns = zip(*((name, cells) for _, name, cells in group), strict=True)
        rows = [
            (facts, [cells[place] for cells in columns]) for place, facts in enumerate(policies)
        ]
        yield factor, list(names), rows


def _story(report: Mapping[str, Any], name: str) -> tuple[str, str, str]:
    """Return the figure of the paper, its result, and ours beside it."""
    where, words = _PAPER.get(name, ('', ''))
    return where, words, _ours_beside(report, name)


def _ours_beside(report: Mapping[str, Any], name: str) -> str:
    row = base_case(report, OURS)
    if name == COSTS:
        measured = measured_overheads(report['machine'])
        return ', '.join(f'{what} {value:.2g} ms' for what, value in measured.items())
    if row is None:
        return ''
    if name == PLANE:
        return (
            f'streaming mean IoU {level_words(figure_of(row, STREAMING))}, latency p50 '
            f'{cell(figure_of(row, P50), "ms")}, p95 {cell(figure_of(row, P95), "ms")}'
            + ''.join(f'; {tile.value} below blocking' for tile in _reduction(report))
        )
    if name == ROBUSTNESS:
        return '; '.join(
            f'{share:g} %: {level_words(figure_of(case, STREAMING))}, p95 '
            f'{cell(figure_of(case, P95), "ms")}'
            for share in report['plan']['shares']
            if (case := base_case(report, OURS, share=share)) is not None
        )
    if name == ABLATION:
        shorts = {facts['name']: facts['short'] for facts in report['plan']['policies']}
        return '; '.join(
            f'{shorts[policy]} {difference_words(differences[STREAMING])}'
            for policy, differences in headline_differences(report).items()
            if policy.startswith(f'{OURS}_') and STREAMING in differences
        )
    return ''


def _value(estimate: Mapping[str, float | None], form: str) -> str:
    value = estimate['value']
    return UNKNOWN if value is None else f'{value:{form}}'


def _between(estimate: Mapping[str, float | None], words: str) -> str:
    low, high = estimate['low'], estimate['high']
    return words if low is None or high is None else f'{low:.3f} to {high:.3f}; {words}'
