"""Figure of CPU-step flights with and without adaptation."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mmedge_lab.rivals.mmedge.cpu_step_report import CpuStepFlight
from mmedge_ros.data_types import NS_PER_S
from mmedge_ros.monitoring.system_state import SystemState
from mmedge_ros.report.configuration_figure import draw_course, draw_states, draw_steps
from mmedge_ros.report.figure_style import (
    GREEN,
    INK,
    LINES,
    MUTED,
    ORANGE,
    FigureFile,
    draw_series,
    legend_above,
    limit_outliers,
    render,
)

ADAPTATION = 'adaptation.png'


def draw_cpu_steps(
    adaptive: CpuStepFlight,
    fixed: CpuStepFlight,
    states: Sequence[tuple[int, SystemState]],
    limit: float,
) -> FigureFile:
    """Draw limit, latency, configuration, voltage and share of the processor over both flights.

    :param states: what the monitor saw of the adaptive flight
    :param limit: s
    """
    caption = (
        'From above: latency of each decision with adaptation beside limit and prediction; the '
        'same without; rate and level of each modality; the share of the machine left to the '
        'graph, and what the monitor saw.'
    )
    return FigureFile(
        ADAPTATION,
        render(lambda figure: _draw(figure, adaptive, fixed, states, limit), 9.4, 8.4),
        'Adaptation',
        caption,
        'Four charts over time: latency with and without adaptation, configuration, processor',
    )


def _draw(
    figure: Figure,
    adaptive: CpuStepFlight,
    fixed: CpuStepFlight,
    states: Sequence[tuple[int, SystemState]],
    limit: float,
) -> None:
    upper, rival, middle, lower = figure.subplots(4, 1, sharex=True)
    zero_ns, end_ns = adaptive.phases[0].begin_ns, adaptive.phases[-1].end_ns
    last = (end_ns - zero_ns) / NS_PER_S
    course = sorted(adaptive.configurations, key=lambda c: c.id)
    begins = np.array([(c.effective_from_ns - zero_ns) / NS_PER_S for c in course])
    times = np.clip(np.append(begins, last), 0.0, last)
    _draw_latency(upper, adaptive, limit, GREEN)
    if course:
        predicted = np.array([1e3 * c.predicted_latency for c in course])
        draw_steps(upper, times, predicted, ORANGE, 'predicted, 95 %')
    legend_above(upper, 'Latency with adaptation')
    _draw_latency(rival, fixed, limit, MUTED)
    legend_above(rival, 'Latency without')
    if course:
        draw_course(middle, times, course)
    ends = np.array([(phase.begin_ns - zero_ns) / NS_PER_S for phase in adaptive.phases])
    shares = np.array([phase.percent for phase in adaptive.phases])
    draw_steps(lower, np.append(ends, last), shares, INK, 'share of the processor, %', LINES[1])
    draw_states(lower, [s for s in states if zero_ns <= s[0] <= end_ns], zero_ns, known=True)
    lower.set_ylim(0.0, 105.0)
    lower.set_xlabel('time [s]')
    lower.set_xlim(0.0, last)


def _draw_latency(axes: Axes, flown: CpuStepFlight, limit: float, colour: str) -> None:
    zero_ns = flown.phases[0].begin_ns
    ends = np.array([(d.window_end_ns - zero_ns) / NS_PER_S for d in flown.decisions])
    latencies = np.array([1e3 * d.latency for d in flown.decisions])
    draw_series(axes, ends, latencies, colour)
    axes.axhline(1e3 * limit, color=INK, linestyle=LINES[1], linewidth=1.2, label='limit')
    limit_outliers(axes, latencies[ends >= 0.0], 1e3 * limit, 'ms')
    axes.set_ylabel('latency [ms]')
