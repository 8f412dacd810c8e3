"""All figures of a comparison."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mmedge_ros.lab.comparison.ablation_figure import ABLATION, draw_ablation
from mmedge_ros.lab.comparison.cost_figure import COSTS, draw_costs
from mmedge_ros.lab.comparison.plane_figure import PLANE, draw_plane
from mmedge_ros.lab.comparison.robustness_figure import ROBUSTNESS, draw_robustness
from mmedge_ros.lab.comparison.timeline_figure import TIMELINE, draw_timeline
from mmedge_ros.lab.reporting.figure_style import FigureFile

COMPARISON_FIGURES = (PLANE, ROBUSTNESS, ABLATION, COSTS, TIMELINE)


def draw_comparison(report: Mapping[str, Any]) -> list[FigureFile]:
    """Draw every figure for which there is something, in their order, from report.json."""
    drawn = (
        draw_plane(report),
        draw_robustness(report),
        draw_ablation(report),
        draw_costs(report),
        draw_timeline(report),
    )
    return [figure for figure in drawn if figure is not None]
