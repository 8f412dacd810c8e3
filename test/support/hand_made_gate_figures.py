"""Figures of flights with a gate, made by hand."""

from __future__ import annotations

import numpy as np

from mmedge_ros.lab.gates.certificate import FlightOutcome
from mmedge_ros.lab.gates.loop_figures import FlightFigures, WindowWork


def flight(
    windows: int = 40, early: int = 20, differing: int = 1, confidence: float = 0.9
) -> FlightFigures:
    """A flight whose first windows are decided early, the first of these wrongly.

    Each early decision saves one of three encodes; quality falls from window to window.
    """
    work = tuple(
        WindowWork(1.0 - n / windows, 3, 3 - (n < early), n < early, n < differing)
        for n in range(windows)
    )
    return FlightFigures(
        FlightOutcome(windows, early, differing),
        work,
        {'camera': {'captured': 3 * windows - early, 'encoded': 3 * windows - early}},
        0.01 * (3 * windows - early),
        0.03 * windows,
        np.linspace(-0.01, 0.08, windows),
        np.full(early, confidence),
        np.array([float(n >= differing) for n in range(early)]),
        (0.5 * windows - 0.01 * differing, windows),
        (0.5 * windows, windows),
    )
