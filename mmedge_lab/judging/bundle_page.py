"""The page and the Markdown table of an evaluation of a bundle."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mmedge_lab.judging import TEMPLATES
from mmedge_lab.judging.bundle_cases import strategy_named
from mmedge_lab.judging.bundle_report import FIGURES, GRID_FIGURES, figure_words
from mmedge_ros.report.page import (
    UNKNOWN,
    Tile,
    capital,
    difference_words,
    level_words,
    markdown_table,
    number,
    render_page,
)

if TYPE_CHECKING:
    from mmedge_ros.report.figure_style import FigureFile

_FACTORS = {
    'size': 'height, px',
    'range': 'range, m',
    'occlusion': 'to be seen',
    'claims': 'day, free, near',
}
_TILES = (
    ('mean_iou_20px', 'people at least 20 px tall, 0 for missed people'),
    ('mean_iou_40px', 'people at least 40 px tall'),
    ('streaming_mean_iou', 'every 10 ms: the latest published result'),
    ('recall', 'met by a box (IoU at least 0.5)'),
    ('precision', 'share of judged boxes that meet a person'),
    ('position_error_m', 'median, horizontal'),
)


def render_bundle_page(report: Mapping[str, Any], figures: Sequence[FigureFile]) -> str:
    """Render the page from the content of report.json and the figures."""
    return render_page(
        'bundle.html.j2',
        report,
        figures,
        {
            'verdict': _verdict,
            'strategy': _short,
            'words': figure_words,
            'capital': capital,
            'step': _step_words,
        },
        folder=TEMPLATES,
        title=report['bundle']['name'],
        summary=summary(report),
        tiles=[_tile(report, figure, note) for figure, note in _TILES],
        strata=list(_strata(report)),
        figure_names=FIGURES,
        grid_figures=GRID_FIGURES,
    )


def bundle_markdown(report: Mapping[str, Any]) -> str:
    """Write the figures as Markdown tables."""
    strategies = report['strategies']
    claims = [
        [
            row['claim'],
            row['flights'],
            *(difference_words(row['mean_iou']), _verdict(row['mean_iou'])),
            *(difference_words(row['place_recall']), _verdict(row['place_recall'])),
        ]
        for row in report['claims']
    ]
    levels = [
        [
            figure_words(figure),
            *(level_words(entry['overall'][figure]) for entry in strategies.values()),
        ]
        for figure in FIGURES
    ]
    strata = [
        [factor, name, row['flights'], row['people'], *_levels(row, FIGURES)]
        for factor, name, row in _strata(report)
    ]
    configurations = [
        [
            *(row['camera_level'], number(row['camera_rate'], 0)),
            *(row['radar_level'], number(row['radar_rate'], 0)),
            *_levels(row, GRID_FIGURES),
        ]
        for row in report['configurations']
    ]
    names = [figure_words(figure) for figure in FIGURES]
    grid_names = [figure_words(figure) for figure in GRID_FIGURES]
    head = ['fusion is', 'flights', 'mean IoU', '', 'placed within 2 m', '']
    parts = [
        f'# {report["bundle"]["name"]}\n\n{summary(report)}\n',
        markdown_table(head, claims),
        markdown_table(['', *map(_short, strategies)], levels),
        markdown_table(['people', '', 'flights', 'visible', *names], strata),
        markdown_table(['camera', 'Hz', 'radar', 'Hz', *grid_names], configurations),
    ]
    return '\n'.join(parts)


def _levels(row: Mapping[str, Any], figures: Sequence[str]) -> list[str]:
    return [level_words(row[figure]) for figure in figures]


def summary(report: Mapping[str, Any]) -> str:
    """Say in plain words what was judged."""
    full = report['full_configuration']
    camera = _level(full['camera_level'])
    radar = _level(full['radar_level'])
    count, seeds = len(report['configurations']), report['bootstrap']['seeds']
    words = (
        f'Judged by the ground truth of {len(report["flights"])} simulated flights of '
        f'{seeds} seed{"" if seeds == 1 else "s"}. The figures '
        f'are those of camera{camera} at {full["camera_rate"]:g} Hz and radar{radar} at '
        f'{full["radar_rate"]:g} Hz'
    )
    if count > 1:
        words += f', one of {count} configurations judged'
    drawn = 'in brackets 95 % intervals drawn by seed: flights that share one are drawn together'
    return f'{words}; {drawn}.'


def _verdict(claim: Mapping[str, Any]) -> str:
    if claim['holds'] is None:
        return 'too few seeds' if claim['value'] is not None else UNKNOWN
    if claim['holds']:
        return 'yes'
    return 'no' if (claim['high'] or 0.0) < 0.0 else 'not shown'


def _tile(report: Mapping[str, Any], figure: str, note: str) -> Tile:
    estimate = report['strategies']['fusion']['overall'][figure]
    value, low, high = (estimate[key] for key in ('value', 'low', 'high'))
    unit, digits = (' m', 2) if figure.endswith('_m') else ('', 3)
    if value is not None and low is not None and high is not None:
        note = f'{low:.{digits}f} to {high:.{digits}f}; {note}'
    name = figure_words(figure).removesuffix(', m')
    shown = UNKNOWN if value is None or math.isnan(value) else f'{value:.{digits}f}{unit}'
    return Tile(name, shown, note)


def _strata(report: Mapping[str, Any]) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    fusion = report['strategies']['fusion']
    yield 'all', '', fusion['overall']
    for factor, rows in fusion['strata'].items():
        for name, row in rows.items():
            yield _FACTORS.get(factor, factor), name, row


def _level(level: str) -> str:
    return '' if level == 'any' else f' {level}'


def _short(strategy: str) -> str:
    return strategy_named(strategy).short


def _step_words(fall: Mapping[str, Any]) -> str:
    """Say what was raised in a step that lowered a figure."""
    axis = fall['axis']
    before, after = (
        f'{value:g} Hz' if isinstance(value, float) else str(value)
        for value in (fall['from'][axis], fall['to'][axis])
    )
    return f'{axis.replace("_", " ")} from {before} to {after}'
