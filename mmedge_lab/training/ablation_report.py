"""The report of ablations: report.json, a page of tables, and a figure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mmedge_lab.training.ablation_table import FULL, TABLE, VARIANTS
from mmedge_ros.report.figure_style import BLUE, GREEN, INK, MUTED, render
from mmedge_ros.report.page import UNKNOWN, difference_words, markdown_table
from mmedge_ros.report.report_files import write_files

FIGURE, PAGE = 'ablations.png', 'report.md'
_CONFIGURATION_TITLES = {
    'full': 'All pictures and scans, large networks',
    'least': '10 pictures and 5 scans a second, small networks',
}
_FIGURE_TITLES = {
    'worth': 'worth',
    'mean_iou': 'mean IoU, 20 px and more',
    'recall': 'recall',
    'precision': 'precision',
    'range_error': 'range error',
}


def write_ablations(folder: Path, table: Mapping[str, Any]) -> None:
    """Write the report of what `ablation_table.tabulate` returned.

    :raises ReportError: if it cannot be written
    """
    write_files(
        folder,
        {
            FIGURE: render(lambda figure: _draw(figure, table), 8.6, 5.2),
            PAGE: page(table).encode(),
            TABLE: json.dumps(table, indent=1, allow_nan=False).encode(),
        },
    )


def page(table: Mapping[str, Any]) -> str:
    """Return the tables as Markdown."""
    seeds, flights = len(table['seeds']), len(table['flights'])
    settings = table.get('plan', {}).get('settings', {})
    learned = len(table.get('plan', {}).get('learned_from', ()))
    lines = [
        '# Ablations of feature fusion',
        '',
        f'Each network was trained {seeds} times, with the seeds {_listed(table["seeds"])}: '
        f'{settings.get("epochs", "?")} epochs on {learned} flights, {table["steps"]} steps of '
        f'{settings.get("batch", "?")} windows. Those of one seed saw the same windows in the '
        f'same order. Judged on {flights} other flights, after the last step; no epoch was '
        'chosen.',
        '',
        'Figures are means over seeds ± their standard deviation. *Worth* is the sum of the IoU '
        'of all people over their number and that of wrong boxes. The threshold is the one at '
        'which the newest picture alone, without any of these networks, is worth most; *best '
        'worth* is that at the best threshold of each network. *Range error* is the mean over '
        'flights of the median share by which ranges are wrong. In brackets: 95 % of the '
        'differences from the full network when trainings and the seeds of flights are drawn '
        'anew, the same ones for both.',
    ]
    titles = list(_FIGURE_TITLES.values())
    others = [variant for variant in VARIANTS if variant.name != FULL]
    for name, entry in table['configurations'].items():
        alone, variants = entry['newest_picture'], entry['variants']
        figures = [
            ['newest picture alone', *(_number(alone[f]) for f in (*_FIGURE_TITLES, 'worth'))]
        ]
        for variant in VARIANTS:
            row = variants[variant.name]
            cells = [_with_spread(row[figure]) for figure in (*_FIGURE_TITLES, 'best_worth')]
            figures.append([variant.title, *cells])
        differences = [
            [v.title, *(_difference(variants[v.name][f]['less_full']) for f in _FIGURE_TITLES)]
            for v in others
        ]
        lines += [
            '',
            f'## {_CONFIGURATION_TITLES.get(name, name)}',
            '',
            f'{entry["people"]} people, threshold {entry["threshold"]}.',
            '',
            markdown_table(['network', *titles, 'best worth'], figures),
            markdown_table(['less full', *titles], differences).rstrip(),
        ]
    costs = [
        [
            variant.title,
            f'{table["training_seconds"][variant.name]:.0f}',
            ', '.join(f'{losses[-1]:.3f}' for losses in table['losses'][variant.name]),
        ]
        for variant in VARIANTS
    ]
    head = ['network', 's of processor time', 'last loss']
    lines += ['', '## Cost of training', '', markdown_table(head, costs).rstrip()]
    return '\n'.join(lines) + '\n'


def summary(table: Mapping[str, Any]) -> list[str]:
    """Return a line for each variant with what it is worth where nothing is missing."""
    entry = table['configurations'][FULL]['variants']
    lines = [f'full: worth {_with_spread(entry[FULL]["worth"])}']
    for variant in VARIANTS:
        if variant.name != FULL:
            worth = entry[variant.name]['worth']
            lines.append(
                f'{variant.title}: {_with_spread(worth)}, {_difference(worth["less_full"])}'
            )
    return lines


def _draw(figure: Figure, table: Mapping[str, Any]) -> None:
    rows = figure.subplots(len(table['configurations']), 2, sharey=True, squeeze=False)
    for (left, right), (name, entry) in zip(rows, table['configurations'].items(), strict=True):
        _draw_worth(left, entry)
        _draw_differences(right, entry)
        left.set_title(_CONFIGURATION_TITLES.get(name, name))
        right.set_title('Less full')
    for axes, label in zip(rows[-1], ('worth', 'difference in worth'), strict=True):
        axes.set_xlabel(label)


def _draw_worth(axes: Axes, entry: Mapping[str, Any]) -> None:
    alone = entry['newest_picture']['worth']
    if alone is not None:
        axes.axvline(alone, color=MUTED, linestyle='--', linewidth=1.0)
        axes.annotate(
            'newest picture alone',
            (alone, 1.0),
            xycoords=('data', 'axes fraction'),
            xytext=(-3, -2),
            textcoords='offset points',
            rotation=90,
            ha='right',
            va='top',
            fontsize=7.5,
            color=MUTED,
        )
    for place, variant in enumerate(VARIANTS):
        worth = entry['variants'][variant.name]['worth']
        known = [value for value in worth['seeds'] if value is not None]
        axes.plot(known, [place] * len(known), '.', color=BLUE, markersize=6, alpha=0.6)
        if worth['mean'] is not None:
            axes.plot(worth['mean'], place, '|', color=INK, markersize=14, markeredgewidth=1.6)
    axes.set_yticks(range(len(VARIANTS)), [variant.title for variant in VARIANTS])
    axes.set_ylim(len(VARIANTS) - 0.5, -0.5)


def _draw_differences(axes: Axes, entry: Mapping[str, Any]) -> None:
    axes.axvline(0.0, color=MUTED, linewidth=1.0)
    for place, variant in enumerate(VARIANTS):
        value, low, high = entry['variants'][variant.name]['worth']['less_full']
        if variant.name == FULL or value is None:
            continue
        if low is not None and high is not None:
            axes.plot([low, high], [place, place], color=GREEN, linewidth=2.0)
        axes.plot(value, place, 'o', color=GREEN, markersize=5)


def _listed(seeds: Sequence[int]) -> str:
    return ', '.join(map(str, seeds))


def _number(value: float | None) -> str:
    return UNKNOWN if value is None else f'{value:.3f}'


def _with_spread(figure: Mapping[str, Any]) -> str:
    spread = figure['deviation']
    return _number(figure['mean']) + ('' if spread is None else f' ± {spread:.3f}')


def _difference(values: Sequence[float | None]) -> str:
    return difference_words(dict(zip(('value', 'low', 'high'), values, strict=True)))
