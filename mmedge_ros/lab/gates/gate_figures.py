"""Figures of the report of a gate."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mmedge_ros.lab.gates.gate_report import NAMES
from mmedge_ros.lab.reporting.figure_style import (
    BLUE,
    GREEN,
    INK,
    MUTED,
    ORANGE,
    PURPLE,
    VERMILION,
    FigureFile,
    label_columns,
    legend_above,
    render,
)

ALPHA, RULES, RELIABILITY, HALVES = 'alpha.png', 'rules.png', 'reliability.png', 'halves.png'
GATE_FIGURES = (ALPHA, RULES, RELIABILITY, HALVES)
_COLOURS = {'ours': BLUE, 'fixed': GREEN, 'max_score': ORANGE, 'random': VERMILION}
_PERCENT = 100.0


def draw_gate(report: Mapping[str, Any]) -> list[FigureFile]:
    """Draw every figure for which there is something, in their order, from report.json."""
    drawn = [
        draw_alpha(report),
        draw_rules(report),
        draw_reliability(report),
        draw_halves(report),
    ]
    return [figure for figure in drawn if figure is not None]


def draw_alpha(report: Mapping[str, Any]) -> FigureFile | None:
    """Draw disagreement and saving over the promise, in halves that certified nothing."""
    rows = [row for row in report['splits'] if row['splits']]
    if not rows:
        return None

    def draw(figure: Figure, rows_of_axes: int, columns: int) -> None:
        left, right = figure.subplots(rows_of_axes, columns, squeeze=False).ravel()
        alphas = [_PERCENT * row['alpha'] for row in rows]
        left.plot(alphas, alphas, '--', color=MUTED, lw=1.0, label='promised at most')
        for alpha, row in zip(alphas, rows, strict=True):
            shares = _PERCENT * np.array(row['disagreements'])
            left.plot(np.full(len(shares), alpha), shares, '.', color=BLUE, alpha=0.3, ms=4.0)
        left.plot(
            alphas,
            _percents(rows, 'disagreement'),
            'o-',
            color=BLUE,
            lw=1.2,
            ms=4.5,
            label='measured',
        )
        left.set_ylabel('differing [% of early decisions]')
        right.axhline(
            _PERCENT * report['ceiling'], ls='--', color=MUTED, lw=1.0, label='the rule allows'
        )
        right.plot(
            alphas, _percents(rows, 'saved'), 'o-', color=BLUE, lw=1.2, ms=4.5, label='saved'
        )
        right.set_ylabel('camera encodes saved [%]')
        for axes, title in ((left, 'Early decisions that differ'), (right, 'What is saved')):
            axes.set_xlabel('alpha [%]')
            axes.set_ylim(bottom=0.0)
            legend_above(axes, title)

    return FigureFile(
        ALPHA,
        render(lambda figure: draw(figure, 1, 2), 9.4, 3.4),
        'Promise, disagreement and saving',
        'Thresholds certified with a random half of the flights and judged in the other half, '
        'where nothing certified counts as nothing saved; small points are single splits.',
        'Share of differing early decisions, and of camera encodes saved, over alpha',
        render(lambda figure: draw(figure, 2, 1), 4.6, 6.2),
    )


def draw_rules(report: Mapping[str, Any]) -> FigureFile:
    """Draw what the gate and its rivals save against how often they are wrong."""

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        own = [row for row in report['thresholds'] if row['early']]
        axes.plot(
            _percents(own, 'saved'),
            _percents(own, 'disagreement'),
            '.-',
            color=PURPLE,
            lw=1.2,
            label='this gate, all thresholds',
        )
        for row in report['rules']:
            if not row['early']:
                continue
            place = _PERCENT * row['saved'], _PERCENT * row['disagreement']
            name = row['name']
            colour = _COLOURS.get(name, INK)
            axes.plot(*place, 'o', color=colour, ms=6.5, label=NAMES.get(name, name))
            _draw_cross(axes, row, place, colour)
        axes.axvline(_PERCENT * report['ceiling'], ls='--', color=MUTED, lw=1.0)
        axes.axhline(_PERCENT * report['alpha'], ls=':', color=MUTED, lw=1.0)
        axes.set_xlim(0.0, _PERCENT * report['ceiling'] * 1.08)
        axes.set_ylim(bottom=0.0)
        axes.set_xlabel('camera encodes saved [%]')
        axes.set_ylabel('differing [% of early decisions]')
        legend_above(axes, 'Rules beside each other')

    return FigureFile(
        RULES,
        render(draw, 7.2, 4.2),
        'The gate beside other rules',
        'Down and to the right is better; lines are 95 % intervals, dotted what was promised and '
        'dashed the most that the rule allows to save.',
        'Differing early decisions over camera encodes saved, for the gate and its rivals',
    )


def draw_reliability(report: Mapping[str, Any]) -> FigureFile | None:
    """Draw how often early decisions were right against how sure the gate was."""
    rows = report['reliability']
    if not rows:
        return None

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        low = 10.0 * math.floor(10.0 * min(min(r['confidence'], r['agreement']) for r in rows))
        axes.plot((low, 100.0), (low, 100.0), '--', color=MUTED, lw=1.0, label='as sure as right')
        axes.plot(
            _percents(rows, 'confidence'),
            _percents(rows, 'agreement'),
            'o-',
            color=BLUE,
            ms=4.5,
            label='this gate',
        )
        for row in rows:
            axes.annotate(
                str(row['early']),
                (_PERCENT * row['confidence'], _PERCENT * row['agreement']),
                xytext=(5, -10),
                textcoords='offset points',
                fontsize=8,
                color=MUTED,
            )
        axes.set_xlabel('confidence [%]')
        axes.set_ylabel('equal to the reference [%]')
        legend_above(axes, 'Reliability')

    return FigureFile(
        RELIABILITY,
        render(draw, 5.0, 4.2),
        'How sure and how often right',
        'Early decisions in closed loop, with their number, by confidence; windows are decided at '
        'the first that suffices, so that the points need not lie on the diagonal.',
        'Share of equal early decisions over confidence',
    )


def draw_halves(report: Mapping[str, Any]) -> FigureFile:
    """Draw the easy half of the windows against the hard half."""
    rules = report['rules']

    def draw(figure: Figure, rows: int, columns: int) -> None:
        drawn = figure.subplots(rows, columns, squeeze=False).ravel()
        for axes, figure_name, label in zip(
            drawn,
            ('saved', 'disagreement'),
            ('camera encodes saved [%]', 'differing [% of early decisions]'),
            strict=True,
        ):
            places = np.arange(len(rules))
            for shift, half, colour in ((-0.2, 'easy_half', BLUE), (0.2, 'hard_half', ORANGE)):
                values = _percents([row[half] for row in rules], figure_name)
                axes.bar(places + shift, values, 0.38, color=colour, label=half.split('_')[0])
            label_columns(axes, [NAMES.get(row['name'], row['name']) for row in rules])
            axes.set_ylabel(label)
            legend_above(axes, 'Saved' if figure_name == 'saved' else 'Differing')

    return FigureFile(
        HALVES,
        render(lambda figure: draw(figure, 1, 2), 9.4, 3.4),
        'Easy half and hard half',
        'Easy is the half of all windows in which the run without a gate does best by mean IoU, '
        'settled before any gate was tried.',
        'Bars of saving and disagreement in the easy and the hard half of the windows',
        render(lambda figure: draw(figure, 2, 1), 4.6, 6.2),
    )


def _draw_cross(
    axes: Axes, row: Mapping[str, Any], place: tuple[float, float], colour: str
) -> None:
    (left, right), (low, high) = row['saved_interval'], row['disagreement_interval']
    if left is not None and right is not None:
        axes.plot([_PERCENT * left, _PERCENT * right], [place[1]] * 2, color=colour, lw=1.0)
    if low is not None and high is not None:
        axes.plot([place[0]] * 2, [_PERCENT * low, _PERCENT * high], color=colour, lw=1.0)


def _percents(rows: Sequence[Mapping[str, Any]], name: str) -> list[float]:
    return [math.nan if row[name] is None else _PERCENT * row[name] for row in rows]
