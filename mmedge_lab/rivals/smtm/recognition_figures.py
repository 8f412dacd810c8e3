"""The figures of the recognition bench."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mmedge_lab.rivals.smtm.bench_rows import FULL, GUARDED, HEADS, PRINTED
from mmedge_lab.rivals.smtm.streams import FOUR, LONG_TAIL, SCENE, SCENES
from mmedge_ros.report.figure_style import (
    BLUE,
    CYCLE,
    GREEN,
    INK,
    MUTED,
    VERMILION,
    draw_whiskers,
    label_columns,
    legend_above,
    legend_outside,
    render,
)

FILES = ('trade_off.png', 'taps.png', 'fast_memory.png', 'drift.png', 'lock_in.png')
_COLOURS = {PRINTED: VERMILION, GUARDED: BLUE, HEADS: GREEN}
_MARKS = 'sD^v<>Pphd*X'


def recognition_figures(report: Mapping[str, Any]) -> dict[str, bytes]:
    """Draw the figures that a report has content for, as PNG by the name of their file."""
    return {
        name: render(partial(draw, report=report), width, height)
        for name, draw, width, height in _figures(report)
    }


def _figures(report: Mapping[str, Any]) -> Iterator[tuple[str, Callable[..., None], float, float]]:
    yield FILES[0], _trade_off, 10.0, 4.6
    yield FILES[1], _taps, 9.0, 3.6
    if 'lock_in' in report:
        yield FILES[2], _fast_memory, 8.0, 3.2
        yield FILES[3], _drift, 8.0, 3.2
        yield FILES[4], _lock_in, 8.0, 4.2


def _trade_off(figure: Figure, report: Mapping[str, Any]) -> None:
    """Accuracy against the time of a look, a curve over the settings of each method."""
    panels = figure.subplots(1, 3, sharey=True)
    for axes, stream in zip(panels, (FOUR, LONG_TAIL, SCENES), strict=True):
        rows, families = report['streams'][stream], report['families']
        for family, colour in _COLOURS.items():
            of = [row for name, row in rows.items() if families[name][0] == family]
            if of:
                times = [row['ms'] for row in of]
                values = [row['accuracy']['value'] for row in of]
                axes.plot(times, values, 'o-', color=colour, ms=4, lw=1.2, label=family)
                draw_whiskers(axes, np.array(times), [row['accuracy'] for row in of], colour)
        others = [name for name in rows if families[name][0] not in _COLOURS]
        for place, name in enumerate(others):
            axes.plot(
                rows[name]['ms'],
                rows[name]['accuracy']['value'],
                'o' if name == FULL else _MARKS[place % len(_MARKS)],
                color=INK if name == FULL else MUTED,
                ms=5,
                label=name,
                ls='none',
            )
        axes.set_xlabel('ms per look')
        axes.set_title(stream)
    panels[0].set_ylabel('share of looks that are right')
    handles, labels = panels[0].get_legend_handles_labels()
    legend_outside(figure, 'lower center', handles=handles, labels=labels, ncol=4)


def _taps(figure: Figure, report: Mapping[str, Any]) -> None:
    """How well classes are told apart at each tap, and where the methods leave."""
    left, right = figure.subplots(1, 2)
    for (name, values), colour in zip(report['separability'].items(), CYCLE, strict=False):
        known = [float('nan') if value is None else value for value in values]
        if not np.isnan(known).all():
            left.plot(np.arange(1, len(known) + 1), known, 'o-', color=colour, label=name)
    left.axhline(report['whole_accuracy'], color=INK, ls='--', lw=1.0, label='whole')
    left.set_xlabel('tap')
    left.xaxis.get_major_locator().set_params(integer=True)
    left.set_ylabel('share right')
    legend_above(left, 'If all left there')
    rows = report['streams'][FOUR]
    shown = [*report['shown'].values(), report['headline'][HEADS]]
    shown = [name for name in shown if name] or [FULL]
    width = 0.8 / len(shown)
    for place, name in enumerate(shown):
        exits = rows[name]['exits'][1:]
        places = np.arange(len(exits)) + (place - (len(shown) - 1) / 2) * width
        family = report['families'][name][0]
        right.bar(places, exits, width, color=_COLOURS.get(family, INK), label=family)
    label_columns(right, [str(stage) for stage in range(1, len(report['stage_ms']) + 1)])
    right.set_xlabel('stages that ran')
    right.set_ylabel('share of looks')
    legend_above(right, f'Where looks end, {FOUR}')


def _fast_memory(figure: Figure, report: Mapping[str, Any]) -> None:
    """Early exits (bars) and accuracy (marks) of fast memories of constant and adaptive size."""
    panels = figure.subplots(1, 2, sharey=True)
    for axes, (stream, rows) in zip(panels, report['fast_memory'].items(), strict=True):
        sizes = [name.partition(' ')[2] for name in rows if name.startswith(PRINTED)]
        for shift, name in ((-0.2, PRINTED), (0.2, GUARDED)):
            of = [rows[f'{name} {size}'] for size in sizes]
            places = np.arange(len(sizes)) + shift
            early = [row['early']['value'] for row in of]
            axes.bar(places, early, 0.36, color=_COLOURS[name], alpha=0.6, label=name)
            right = [row['accuracy']['value'] for row in of]
            axes.plot(places, right, 'o', color=_COLOURS[name], ms=5, mec='white')
        label_columns(axes, sizes)
        legend_above(axes, stream)
    panels[0].set_ylabel('early (bar), right (mark)')


def _drift(figure: Figure, report: Mapping[str, Any]) -> None:
    """Accuracy and early exits while the light drifts away, with learning centres and fixed."""
    panels = figure.subplots(1, 2, sharey=True)
    for axes, value in zip(panels, ('accuracy', 'early'), strict=True):
        for name, row in report['drift'].items():
            colour = _COLOURS.get(name.partition(' ')[0], INK)
            line = ':' if name.endswith('fixed') else '-'
            axes.plot(
                np.arange(1, len(row[value]) + 1), row[value], line, color=colour, label=name
            )
        axes.set_xlabel('step of the drift')
        axes.xaxis.get_major_locator().set_params(integer=True)
        axes.set_title('right' if value == 'accuracy' else 'early')
    panels[0].set_ylabel('share of looks')
    handles, labels = panels[0].get_legend_handles_labels()
    legend_outside(figure, 'lower center', handles=handles, labels=labels, ncol=5)


def _lock_in(figure: Figure, report: Mapping[str, Any]) -> None:
    """Hot classes, and looks that are right, over streams that switch scenes."""
    hot, right = figure.subplots(2, 1, sharex=True)
    for name, row in report['lock_in'].items():
        looks = (np.arange(len(row['hot'])) + 0.5) * row['bin']
        hot.plot(looks, row['hot'], color=_COLOURS[name], label=report['shown'][name])
        right.plot(looks, row['accuracy'], color=_COLOURS[name])
    for axes in (hot, right):
        _mark_scenes(axes, report['looks'])
    hot.set_ylabel('hot classes')
    right.set_ylabel('share right')
    right.set_xlabel('looks')
    legend_above(hot, 'Scenes')


def _mark_scenes(axes: Axes, looks: int) -> None:
    for begin in range(SCENE, looks, SCENE):
        axes.axvline(begin, color=MUTED, lw=0.7, ls=':')
