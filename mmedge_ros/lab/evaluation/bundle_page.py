"""The page and the Markdown table of an evaluation of a bundle."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mmedge_ros.lab.evaluation.bundle_cases import strategy_named
from mmedge_ros.lab.evaluation.bundle_report import FIGURES, GRID_FIGURES
from mmedge_ros.lab.reporting.report_page import Tile, number, page_environment

if TYPE_CHECKING:
    from mmedge_ros.lab.reporting.figure_style import FigureFile

_WORDS = {
    'mean_iou': 'mean IoU',
    'mean_iou_20px': 'mean IoU, 20 px up',
    'mean_iou_40px': 'mean IoU, 40 px up',
    'streaming_mean_iou': 'streaming mean IoU',
    'streaming_mean_iou_20px': 'streaming mean IoU, 20 px up',
    'recall': 'recall',
    'recall_20px': 'recall, 20 px up',
    'precision': 'precision',
    'place_recall': 'placed within 2 m',
    'range_error_m': 'range error, m',
    'position_error_m': 'position error, m',
}
_FACTORS = {
    'size': 'height, px',
    'range': 'range, m',
    'occlusion': 'to be seen',
    'claims': 'day, free, near',
}
_TILES = (
    ('mean_iou_20px', 'people at least 20 px tall, 0 for whoever is missed'),
    ('mean_iou_40px', 'people at least 40 px tall'),
    ('streaming_mean_iou', 'every 10 ms: the latest published result'),
    ('recall', 'met by a box (IoU at least 0.5)'),
    ('precision', 'share of judged boxes that meet a person'),
    ('position_error_m', 'median, horizontal'),
)
_UNKNOWN = '–'


def render_bundle_page(report: Mapping[str, Any], figures: Sequence[FigureFile]) -> str:
    """Render the page from the content of report.json and the figures."""
    environment = page_environment()
    environment.filters |= {
        'interval': difference_words,
        'level': level_words,
        'strategy': _short,
        'words': _figure_words,
        'capital': _capital,
        'step': _step_words,
    }
    return environment.get_template('bundle.html.j2').render(
        report=_with_verdicts(report),
        summary=summary(report),
        tiles=[_tile(report, figure, note) for figure, note in _TILES],
        figures={figure.name.removesuffix('.png'): figure for figure in figures},
        strata=list(_strata(report)),
        figure_names=FIGURES,
        grid_figures=GRID_FIGURES,
    )


def bundle_markdown(report: Mapping[str, Any]) -> str:
    """Write the figures as Markdown tables."""
    strategies = report['strategies']
    parts = [
        f'# {report["bundle"]["name"]}\n\n{summary(report)}\n',
        _table(
            ['fusion is', 'flights', 'mean IoU', '', 'placed within 2 m', ''],
            [
                [
                    row['claim'],
                    str(row['flights']),
                    difference_words(row['mean_iou']),
                    _verdict(row['mean_iou']),
                    difference_words(row['place_recall']),
                    _verdict(row['place_recall']),
                ]
                for row in report['claims']
            ],
        ),
        _table(
            ['', *map(_short, strategies)],
            [
                [
                    _figure_words(figure),
                    *(level_words(entry['overall'][figure]) for entry in strategies.values()),
                ]
                for figure in FIGURES
            ],
        ),
        _table(
            ['people', '', 'flights', 'asked for', *map(_figure_words, FIGURES)],
            [
                [
                    factor,
                    name,
                    str(row['flights']),
                    str(row['people']),
                    *(level_words(row[figure]) for figure in FIGURES),
                ]
                for factor, name, row in _strata(report)
            ],
        ),
        _table(
            ['camera', 'Hz', 'radar', 'Hz', *map(_figure_words, GRID_FIGURES)],
            [
                [
                    row['camera_level'],
                    number(row['camera_rate'], 0),
                    row['radar_level'],
                    number(row['radar_rate'], 0),
                    *(level_words(row[figure]) for figure in GRID_FIGURES),
                ]
                for row in report['configurations']
            ],
        ),
    ]
    return '\n'.join(parts)


def summary(report: Mapping[str, Any]) -> str:
    """Say in plain words what was judged."""
    full = report['full_configuration']
    camera = _level(full['camera_level'])
    radar = _level(full['radar_level'])
    count = len(report['configurations'])
    words = (
        f'Judged by the ground truth of {len(report["flights"])} simulated flights. The figures '
        f'are those of camera{camera} at {full["camera_rate"]:g} Hz and radar{radar} at '
        f'{full["radar_rate"]:g} Hz'
    )
    if count > 1:
        words += f', one of {count} configurations judged'
    return f'{words}; in brackets 95 % intervals, the flight being the unit that is drawn.'


def level_words(estimate: Mapping[str, float | None]) -> str:
    """Write a figure with its interval."""
    value, low, high = (estimate[key] for key in ('value', 'low', 'high'))
    if value is None:
        return _UNKNOWN
    if low is None or high is None:
        return f'{value:.3f}'
    return f'{value:.3f} ({low:.3f}–{high:.3f})'


def difference_words(estimate: Mapping[str, float | None]) -> str:
    """Write a difference with its interval."""
    value, low, high = (estimate[key] for key in ('value', 'low', 'high'))
    if value is None:
        return _UNKNOWN
    if low is None or high is None:
        return f'{value:+.3f}'
    return f'{value:+.3f} ({low:+.3f} to {high:+.3f})'


def _with_verdicts(report: Mapping[str, Any]) -> dict[str, Any]:
    claims = [
        row
        | {
            figure: row[figure] | {'verdict': _verdict(row[figure])}
            for figure in ('mean_iou', 'place_recall')
        }
        for row in report['claims']
    ]
    return {**report, 'claims': claims}


def _verdict(claim: Mapping[str, Any]) -> str:
    if claim['holds'] is None:
        return 'too few flights' if claim['value'] is not None else _UNKNOWN
    if claim['holds']:
        return 'yes'
    return 'no' if (claim['high'] or 0.0) < 0.0 else 'not shown'


def _tile(report: Mapping[str, Any], figure: str, note: str) -> Tile:
    estimate = report['strategies']['fusion']['overall'][figure]
    value, low, high = (estimate[key] for key in ('value', 'low', 'high'))
    unit, digits = (' m', 2) if figure.endswith('_m') else ('', 3)
    if value is not None and low is not None and high is not None:
        note = f'{low:.{digits}f} to {high:.{digits}f}; {note}'
    name = _figure_words(figure).removesuffix(', m')
    shown = _UNKNOWN if value is None or math.isnan(value) else f'{value:.{digits}f}{unit}'
    return Tile(name, shown, note)


def _strata(report: Mapping[str, Any]) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    fusion = report['strategies']['fusion']
    yield 'all', '', fusion['overall']
    for factor, rows in fusion['strata'].items():
        for name, row in rows.items():
            yield _FACTORS.get(factor, factor), name, row


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [list(head), ['---', *('---:' for _ in head[1:])], *rows]
    cells = [[str(cell).replace('|', '/') for cell in line] for line in lines]
    return ''.join(f'| {" | ".join(line)} |\n' for line in cells)


def _level(level: str) -> str:
    return '' if level == 'any' else f' {level}'


def _short(strategy: str) -> str:
    return strategy_named(strategy).short


def _figure_words(figure: str) -> str:
    return _WORDS.get(figure, figure)


def _capital(words: str) -> str:
    return words[:1].upper() + words[1:]


def _step_words(fall: Mapping[str, Any]) -> str:
    """Say what was raised in a step that lowered a figure."""
    axis = fall['axis']
    before, after = (
        f'{value:g} Hz' if isinstance(value, float) else str(value)
        for value in (fall['from'][axis], fall['to'][axis])
    )
    return f'{axis.replace("_", " ")} from {before} to {after}'
