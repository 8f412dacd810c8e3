"""What each brick of a bundle costs, and what loading them on demand costs and saves."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from mmedge_lab.rivals.nanomind import brick_cascade
from mmedge_ros.data_types import CAMERA, RADAR
from mmedge_ros.encoding.bricks import FUSION, RECOGNISER, brick_name, costs_as_plain
from mmedge_ros.encoding.bundle.model_bundle import is_bundle, load_bundle
from mmedge_ros.power.brick_measurement import bricks_of, figures_of_process, measure_bricks

_PATIENCE = 300.0
# Of the time until the end: measuring bricks takes most of it.
_MEASURING = 0.7


def run_brick_bench(
    model: Path, events: int, on_share: Callable[[float, str], None]
) -> dict[str, Any]:
    """Measure every brick, then events that pass through those of one decision.

    :param on_share: called with the share that is done, and what is measured next
    :raises EncodingError: if a brick cannot be measured on the processor, or a process breaks down
    """
    costs, problems = [], []
    for found in measure_bricks(
        model, on_brick=lambda share, words: on_share(_MEASURING * share, words)
    ):
        if isinstance(found, str):
            problems.append(found)
        else:
            costs.append(found)
    ways = []
    for number, way in enumerate(brick_cascade.WAYS):
        share = _MEASURING + (1.0 - _MEASURING) * number / len(brick_cascade.WAYS)
        on_share(share, f'events with bricks {way}')
        ways.append(_events(model, way, events))
    return {
        'bundle': model.name,
        'runs': brick_cascade.RUNS,
        'bricks': costs_as_plain(costs),
        'problems': problems,
        'ways': ways,
    }


def bricks_of_a_decision(model: Path) -> list[str]:
    """Name the bricks that a decision needs: the default levels, and all that is no level."""
    there = bricks_of(model)
    if not is_bundle(model):
        return there
    bundle = load_bundle(model)
    wanted = {
        brick_name(CAMERA, bundle.default),
        brick_name(RADAR, bundle.radar.default),
        *(FUSION, RECOGNISER),
    }
    return [name for name in there if name in wanted]


def _events(model: Path, way: str, events: int) -> dict[str, Any]:
    bricks = bricks_of_a_decision(model)
    arguments = [str(model), way, str(events), *bricks]
    return figures_of_process(brick_cascade.__name__, arguments, _PATIENCE)
