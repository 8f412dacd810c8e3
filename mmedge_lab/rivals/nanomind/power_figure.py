"""Figure of the flight of a battery."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mmedge_lab.rivals.nanomind.discharge import Discharge
from mmedge_lab.rivals.nanomind.power_bench import BELOW, OURS, PRINTED, RULES
from mmedge_lab.rivals.nanomind.power_rows import NOTHING
from mmedge_ros.data_types import FloatArray
from mmedge_ros.power.power_policy import PowerMode
from mmedge_ros.report.figure_style import (
    GREEN,
    INK,
    MUTED,
    ORANGE,
    VERMILION,
    FigureFile,
    legend_above,
    render,
)

POWER = 'power.png'
_COLOURS = {OURS: GREEN, PRINTED: VERMILION, BELOW: ORANGE, NOTHING: MUTED}
_SHADES = {PowerMode.PROPORTIONAL: '#fdf3dc', PowerMode.CRITICAL: '#f9ddd3'}


def draw_power(
    found: Discharge, accuracy: Mapping[str, FloatArray], share: Mapping[str, FloatArray]
) -> FigureFile:
    """Draw charge and alpha, what is encoded, accuracy and encoder time over a discharge.

    :param accuracy: streaming mean IoU (K,) of each rule
    :param share: the encoder's processor time per second of flight (K,) of each rule
    """
    caption = (
        'From above: charge and alpha; one picture in so many is encoded; streaming mean IoU; '
        "processor time of the camera's encoder. Shaded: PROPORTIONAL, then CRITICAL."
    )
    return FigureFile(
        POWER,
        render(lambda figure: _draw(figure, found, accuracy, share), 9.4, 8.4),
        'Flight of a battery',
        caption,
        'Four charts over a discharge: charge and alpha, reuse, accuracy, encoder time',
    )


def _draw(
    figure: Figure,
    found: Discharge,
    accuracy: Mapping[str, FloatArray],
    share: Mapping[str, FloatArray],
) -> None:
    upper, reuse, seen, spent = figure.subplots(4, 1, sharex=True)
    minutes = found.times / 60.0
    upper.plot(minutes, 100.0 * found.charges, color=INK, label='charge, %')
    alphas = [100.0 * state.alpha for state in found.states]
    upper.plot(minutes, alphas, color=GREEN, label='alpha, %')
    legend_above(upper, 'Battery')
    reuse.step(minutes, found.reuse, color=GREEN, where='post')
    reuse.set_ylim(0.0, 7.0)
    reuse.set_title('Pictures for each encoded one')
    for rule in RULES:
        seen.plot(minutes, accuracy[rule], color=_COLOURS[rule], label=rule)
        spent.plot(minutes, 1e3 * share[rule], color=_COLOURS[rule])
    legend_above(seen, 'Streaming mean IoU')
    seen.set_ylim(0.0, None)
    spent.set_title("Processor time of the camera's encoder [ms/s]")
    spent.set_ylim(0.0, None)
    spent.set_xlabel('time [min]')
    for axes in (upper, reuse, seen, spent):
        _shade(axes, found, minutes)
        axes.set_xlim(0.0, minutes[-1])


def _shade(axes: Axes, found: Discharge, minutes: FloatArray) -> None:
    modes = np.array([int(state.mode) for state in found.states])
    for mode, colour in _SHADES.items():
        held = np.flatnonzero(modes == mode)
        if len(held):
            axes.axvspan(minutes[held[0]], minutes[held[-1]], color=colour, zorder=0)
