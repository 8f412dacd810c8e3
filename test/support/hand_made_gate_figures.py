"""Figures of flights with a gate, made by hand."""

from __future__ import annotations

from mmedge_lab.training.gates.certificate import FlightLoss
from mmedge_lab.training.gates.loop_figures import FlightFigures


def flight(
    lost: float = 0.0, saved: float = 0.2, missed: int = 0, early: int = 20, people: int = 1000
) -> FlightFigures:
    """A flight of 300 pictures that loses so much of the IoU of all its samples, which is 0.5."""
    return FlightFigures(
        FlightLoss(people, lost * people, people // 2, missed, early, 0.1 * early),
        round(300 * (1.0 - saved)),
        300,
        0.5 * people,
        200,
        0.08 * 200,
        0.04,
    )
