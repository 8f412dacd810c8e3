"""The figures of the latency bench as a table and a figure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from matplotlib.figure import Figure

from mmedge_lab.rivals.mmedge.latency_bench import BLOCKING, CACHED, FLOOR, OURS
from mmedge_ros.report.figure_style import (
    BLUE,
    GREEN,
    INK,
    MUTED,
    ORANGE,
    PURPLE,
    SKY,
    VERMILION,
    FigureFile,
    label_rows,
    legend_outside,
    render,
)
from mmedge_ros.report.page import UNKNOWN, markdown_table

FIGURE = 'latency.png'
WORDS = {
    FLOOR: 'floor: one encode, one hop',
    OURS: 'ours',
    CACHED: 'blocking, cached',
    BLOCKING: 'blocking',
}
_STAGE_WORDS = {
    'acquisition': 'sensing',
    'transport': 'to the encoder',
    'queue': 'waiting',
    'encode': 'encoding',
    'transport_features': 'to fusion',
    'window': 'closing',
    'fusion': 'fusion',
}
_COLOURS = dict(zip(_STAGE_WORDS, (INK, PURPLE, MUTED, BLUE, SKY, ORANGE, GREEN), strict=True))
HEAD = (
    'graph',
    'latency p50, ms',
    'p95, ms',
    'age of the picture p50, ms',
    'p95, ms',
    'pictures + scans encoded per s',
    'windows dropped',
    'processor s per s',
    'memory, MB',
)
_NODES = ('camera_encoder', 'radar_encoder', 'fusion')


def table_rows(report: Mapping[str, Any]) -> Iterator[list[str]]:
    """Yield the cells of the floor and of each graph."""
    for name, words in WORDS.items():
        row = report[FLOOR] if name == FLOOR else report['systems'][name]
        times = [
            _number(row[key][quantile])
            for key in ('latency_ms', 'camera_age_ms')
            for quantile in ('p50', 'p95')
        ]
        if name == FLOOR:
            yield [words, *times, *[UNKNOWN] * 4]
            continue
        encodes = ' + '.join(f'{value:.0f}' for value in row['encodes_per_s'].values())
        memory = ' + '.join(f'{row["memory_mb"].get(node, 0.0):.0f}' for node in _NODES)
        seconds = sum(row['cpu_s_per_s'].get(node, 0.0) for node in _NODES)
        dropped = f'{row["dropped"]} of {row["windows"]}'
        yield [words, *times, encodes, dropped, f'{seconds:.2f}', memory]


def stage_rows(report: Mapping[str, Any]) -> Iterator[list[str]]:
    """Yield the parts of the mean latency of each graph."""
    for name, row in report['systems'].items():
        parts = [_number(row['after_end_ms'][stage]) for stage in report['stages']]
        yield [WORDS[name], *parts, _number(row['latency_ms']['mean'])]


def stage_head(report: Mapping[str, Any]) -> list[str]:
    """Return the heading of `stage_rows`."""
    return ['graph', *(_STAGE_WORDS[stage] for stage in report['stages']), 'mean latency']


def below_words(report: Mapping[str, Any]) -> str:
    """Say by how much ours is below the others, and what the floor allows."""
    parts = []
    for rival in (BLOCKING, CACHED):
        below = report['below'][rival]
        parts.append(
            f'{100 * below["value"]:.1f} % below {WORDS[rival]} '
            f'({100 * below["least"]:.1f} to {100 * below["most"]:.1f} by run; the floor allows '
            f'{100 * below["floor_allows"]:.1f})'
        )
    wanted = report['wanted_below_blocking']
    kept = report['below'][BLOCKING]['value'] >= wanted
    return (
        f'Mean latency of ours: {"; ".join(parts)}. The goal of {100 * wanted:.0f} % below '
        f'blocking is {"met" if kept else "missed"}.'
    )


def latency_markdown(report: Mapping[str, Any], command: str) -> str:
    """Write the tables as Markdown."""
    notes = ''.join(f'- {problem}\n' for problem in report['problems'])
    return '\n'.join(
        [
            f'# Decision latency, live: {report["flight"]}\n',
            f'{report["repeats"]} times each, in turn; without the first second. '
            f'{report["machine"]["processor"]}, {report["machine"]["cores"]} processors.\n',
            markdown_table(HEAD, list(table_rows(report))),
            f'{below_words(report)}\n',
            'Memory and processor are those of the camera’s encoder, the radar’s and fusion.\n',
            '## Parts of the mean latency after the end of the window, ms\n',
            markdown_table(stage_head(report), list(stage_rows(report))),
            notes,
            f'Repeat with `{command}`\n',
        ]
    )


def draw_latency(report: Mapping[str, Any]) -> FigureFile:
    """Draw what decisions wait for after the end of their window, and the age of the picture."""
    return FigureFile(
        FIGURE,
        render(lambda figure: _draw(figure, report), 9.4, 3.2),
        'Decision latency, live',
        'Left: parts of the mean latency after the end of the window, and its p95. Right: age of '
        'the newest picture when a decision is published, p50 and p95.',
        'Bars of latency by stage, and intervals of age, for the floor and three graphs',
    )


def _draw(figure: Figure, report: Mapping[str, Any]) -> None:
    left, right = figure.subplots(1, 2, sharey=True, width_ratios=(2.0, 1.0))
    rows = {name: report[FLOOR] if name == FLOOR else report['systems'][name] for name in WORDS}
    for height, row in enumerate(rows.values()):
        begin = 0.0
        parts = row.get('after_end_ms', {'encode': row['latency_ms']['mean']})
        for stage, length in parts.items():
            left.barh(height, length, 0.6, left=begin, color=_COLOURS[stage])
            begin += length
        left.plot(row['latency_ms']['p95'], height, '|', color=INK, markersize=15)
        ages = row['camera_age_ms']
        right.plot([ages['p50'], ages['p95']], [height, height], color=VERMILION, linewidth=2.0)
        right.plot(ages['p50'], height, 'o', color=VERMILION, markersize=5)
    for stage, words in _STAGE_WORDS.items():
        if any(row.get('after_end_ms', {}).get(stage, 0.0) >= 0.05 for row in rows.values()):
            left.barh([0], [0], color=_COLOURS[stage], label=words)
    left.plot([], [], '|', color=INK, markersize=11, linestyle='none', label='p95')
    label_rows(left, list(WORDS.values()))
    left.set_xlabel('after the end of the window [ms]')
    right.set_xlabel('age of the picture [ms]')
    for axes in (left, right):
        axes.set_xlim(left=0.0)
    legend_outside(figure, 'upper center', ncol=8)


def _number(value: float | None) -> str:
    return UNKNOWN if value is None else f'{value:.1f}'
