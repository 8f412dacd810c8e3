"""How the configuration went over a flight, drawn."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mmedge_ros.core.data_types import NS_PER_S, Configuration, FloatArray, ModalityConfiguration
from mmedge_ros.core.run_record import RunRecord
from mmedge_ros.monitoring.system_state import SystemState
from mmedge_ros.report.energy import computer_watts, watts_over_time
from mmedge_ros.report.figure_style import (
    BLUE,
    GREEN,
    INK,
    LINES,
    ORANGE,
    PURPLE,
    VERMILION,
    FigureFile,
    Series,
    draw_series,
    legend_above,
    limit_outliers,
    modality_colour,
    printable,
    render_over_time,
)
from mmedge_ros.report.trajectories import configurations_in_order, start_ns

CONFIGURATIONS = 'configurations.png'
# Of the longest name of a level, as a share of the chart.
_NAME_WIDTH = 0.07


def draw_configurations(record: RunRecord) -> FigureFile | None:
    """Draw limit, latency, configuration and supply over time; None without configurations."""
    if not record.configurations or not record.decisions:
        return None
    caption = (
        'Top: latency of each decision beside the limit and the prediction for 95 % of them; '
        'then rate and level of each modality; what the monitor saw; and power by part: work by a '
        'stated model, beside what was measured.'
    )
    (wide, narrow), readout = render_over_time(
        lambda figure: _draw(figure, record), ((9.4, 7.6), (4.3, 8.6)), *_readings(record)
    )
    return FigureFile(
        CONFIGURATIONS,
        wide,
        'Configurations',
        caption,
        'Four charts over time: latency with its limit and prediction; rates and levels; load and '
        'battery voltage; power by part and battery current',
        narrow,
        readout,
    )


def _readings(record: RunRecord) -> tuple[FloatArray, list[Series]]:
    """Return the ends of windows (N,) in s, and at each latency, limit and rates."""
    ends_ns = np.array([decision.window_end_ns for decision in record.decisions])
    course = configurations_in_order(record)
    begins_ns = [configuration.effective_from_ns for configuration in course]
    places = np.maximum(np.searchsorted(begins_ns, ends_ns, 'right') - 1, 0)
    limits = np.array([1e3 * configuration.latency_limit for configuration in course])
    latencies = np.array([1e3 * decision.latency for decision in record.decisions])
    series = [Series('latency', ' ms', latencies), Series('limit', ' ms', limits[places])]
    for modality in _modalities(course):
        rates = np.array([configuration.of(modality).rate for configuration in course])
        series.append(Series(f'{modality[:20]} rate', ' Hz', rates[places]))
    return (ends_ns - start_ns(record)) / NS_PER_S, series


def _draw(figure: Figure, record: RunRecord) -> None:
    upper, middle, lower, lowest = figure.subplots(4, 1, sharex=True)
    zero_ns = start_ns(record)
    ends = np.array([(d.window_end_ns - zero_ns) / NS_PER_S for d in record.decisions])
    last = float(ends.max())
    course = configurations_in_order(record)
    begins = np.array([(c.effective_from_ns - zero_ns) / NS_PER_S for c in course])
    times = np.clip(np.append(begins, last), 0.0, last)
    latencies = np.array([1e3 * d.latency for d in record.decisions])
    draw_series(upper, ends, latencies, GREEN)
    limits = np.array([1e3 * c.latency_limit for c in course])
    draw_steps(upper, times, limits, INK, 'limit', LINES[1])
    predicted = np.array([1e3 * c.predicted_latency for c in course])
    draw_steps(upper, times, predicted, ORANGE, 'predicted, 95 %')
    known = limits[np.isfinite(limits)]
    limit_outliers(upper, latencies, float(known.max()) if len(known) else 0.0, 'ms')
    upper.set_ylabel('latency [ms]')
    legend_above(upper, 'Latency')
    draw_course(middle, times, course)
    draw_states(lower, record.states, zero_ns)
    draw_power(lowest, record, zero_ns)
    lowest.set_xlabel('time since the start of the recording [s]')


def draw_course(axes: Axes, times: FloatArray, course: Sequence[Configuration]) -> None:
    """Draw the rate of each modality over time, and name its level where it changes."""
    for place, modality in enumerate(_modalities(course)):
        parts = [c.of(modality) for c in course]
        colour = modality_colour(modality, place)
        rates = np.array([part.rate for part in parts])
        draw_steps(axes, times, rates, colour, printable(modality, 12))
        name_levels(axes, times, [(p.rate, _level_words(p)) for p in parts], colour)
    axes.set_ylabel('rate [Hz]')
    axes.set_ylim(bottom=0.0)
    legend_above(axes, 'Configuration')


def _level_words(part: ModalityConfiguration) -> str:
    """Return the level, and which share of the units is encoded: ``medium 1/3``."""
    return part.level if part.reuse <= 1 else f'{part.level} 1/{part.reuse}'.lstrip()


def _modalities(course: Sequence[Configuration]) -> list[str]:
    return list(dict.fromkeys(p.modality for c in course for p in c.modalities))[:4]


def draw_steps(
    axes: Axes,
    times: FloatArray,
    values: FloatArray,
    colour: str,
    label: str,
    line: str = '-',
) -> None:
    """Draw values that each hold until the next; ``times`` has one more than ``values``."""
    if np.isfinite(values).any():
        held = np.append(values, values[-1])
        axes.step(times, held, line, where='post', color=colour, label=label, linewidth=1.2)


def name_levels(
    axes: Axes, times: FloatArray, parts: Sequence[tuple[float, str]], colour: str
) -> None:
    """Write a level where it takes the place of another and lasts as long as its name is wide."""
    changes: list[tuple[float, float, str]] = []
    for time, (rate, level) in zip(times.tolist(), parts, strict=False):
        if level and (not changes or level != changes[-1][2]):
            changes.append((time, rate, level))
    widest = _NAME_WIDTH * float(times[-1] - times[0])
    for (time, rate, level), (end, _, _) in pairwise([*changes, (math.inf, 0.0, '')]):
        if end - time >= widest:
            axes.annotate(
                printable(level, 10),
                (time, rate),
                xytext=(2, 3),
                textcoords='offset points',
                fontsize=7.5,
                color=colour,
            )


def draw_states(axes: Axes, states: Sequence[tuple[int, SystemState]], zero_ns: int) -> None:
    """Draw load of processor and GPU and battery voltage by the monitor."""
    times = np.array([(stamp_ns - zero_ns) / NS_PER_S for stamp_ns, _ in states])
    loads = np.array([state.mean_cpu for _, state in states])
    volts = np.array([state.voltage for _, state in states])
    if np.isfinite(loads).any():
        axes.plot(times, loads, color=BLUE, label='processor, %', linewidth=1.0)
    graphics = np.array([state.gpu for _, state in states])
    if np.isfinite(graphics).any():
        axes.plot(times, graphics, color=ORANGE, label='GPU, %', linewidth=1.0)
    axes.set_ylim(0.0, 100.0)
    axes.set_ylabel('load [%]')
    if np.isfinite(volts).any():
        _draw_beside(axes, times, volts, 'battery [V]')
    elif not np.isfinite(loads).any():
        axes.annotate('nothing known', (0.5, 0.5), xycoords='axes fraction', ha='center')
    legend_above(axes, 'System')


def draw_power(axes: Axes, record: RunRecord, zero_ns: int) -> None:
    """Draw the power of each part by the model, what was measured, and the battery's current."""
    middles, watts = watts_over_time(record, zero_ns)
    for part, colour in zip(sorted(watts), (BLUE, GREEN, ORANGE, PURPLE), strict=False):
        axes.plot(middles, watts[part], color=colour, label=f'{part}, model', linewidth=1.0)
    times = np.array([(stamp_ns - zero_ns) / NS_PER_S for stamp_ns, _ in record.states])
    measured = np.array([computer_watts(state) for _, state in record.states])
    if np.isfinite(measured).any():
        axes.plot(times, measured, color=INK, label='computer, measured', linewidth=1.0)
    axes.set_ylabel('power [W]')
    axes.set_ylim(bottom=0.0)
    amperes = np.array([state.current for _, state in record.states])
    if np.isfinite(amperes).any():
        _draw_beside(axes, times, amperes, 'battery [A]')
    legend_above(axes, 'Power')


def _draw_beside(axes: Axes, times: FloatArray, values: FloatArray, label: str) -> None:
    """Draw values of the battery along an axis of their own to the right."""
    right = axes.twinx()
    right.plot(times, values, color=VERMILION, linewidth=1.0)
    right.set_ylabel(label, color=VERMILION)
    right.grid(visible=False)
    axes.plot([], [], color=VERMILION, label=label.replace(' [', ', ').rstrip(']'))
