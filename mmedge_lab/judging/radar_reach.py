"""How far the shipped chirps reach: python -m mmedge_lab.judging.radar_reach PICTURE.png."""

import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from mmedge_lab.simulation.build import build_world
from mmedge_lab.simulation.radar import RadarSimulator
from mmedge_lab.simulation.world import Body, DroneState, MoverState
from mmedge_ros.core.data_types import FloatArray
from mmedge_ros.geometry.transforms import Transform
from mmedge_ros.report.figure_style import CYCLE, Words, still_figure

_CHIRPS = ('iwr1443_sdk2_20hz', 'iwr1642_sdk3_20hz', 'iwr1843_sdk3_20hz', 'iwr6843_sdk3_20hz')
# Cross-section in dBsm and radial speed in m/s.
_FRONT, _SIDE = ('walks, seen from front or back', 0.0, 1.2), ('walks, seen sideways', -8.0, 0.8)
_PEOPLE = (_FRONT, _SIDE, ('stands still', 0.0, 0.0), ('lies still', -15.0, 0.0))
_TIMES = np.linspace(0.0, 1.0, 55)
_HEIGHT, _DOWN = 5.0, 0.17  # m of the drone, rad of its radar


def _target(reflectivity: float, speed: float) -> Any:
    """Return a sphere 1 m up whose distance grows with time from 3 to 32 m."""
    away, black = np.array([speed, 0, 0]), np.zeros((1, 3), np.uint8)
    size = np.full(1, 0.1), (0, 1), ('',), black
    return SimpleNamespace(
        id=1,
        label='target',
        reflectivity=reflectivity,
        state=lambda t: MoverState(np.array([3.0 + 29.0 * t, 0, 0]), away, 0.0),
        body=lambda t: Body(np.array([[3.0 + 29.0 * t, 0, 1]]), away[None], *size),
    )


def _chances(chirps: str, decibel: float, speed: float) -> FloatArray:
    c, s = np.cos(_DOWN), np.sin(_DOWN)
    down = Transform(np.array([[c, 0, s], [0, 1, 0], [-s, 0, c]]), np.zeros(3))
    hovers = DroneState(Transform(np.eye(3), np.array([0, 0, _HEIGHT])), np.zeros(3), np.zeros(3))
    bare: Any = {'plants': (), 'lamps': (), 'buildings': (), 'terrain': None}
    bare['movers'] = (_target(10.0 ** (0.1 * decibel), speed),)
    bare['path'] = SimpleNamespace(state=lambda _: hovers)
    found = []
    for seed in range(6):
        world: Any = build_world('meadow_day_middle', seed, 1.0, condition='dark')
        rig, ground = replace(world.rig, radar_pose=down), replace(world.ground, strips=())
        hard = replace(world.hard, chirps=chirps)
        radar = RadarSimulator(replace(world, rig=rig, ground=ground, hard=hard, **bare))
        found.append([radar.detection_probability(float(t))[1] for t in _TIMES])
    return np.asarray(np.mean(found, axis=0), np.float64)


def draw(figure: Figure) -> None:
    """Draw a panel per board, a line per kind of person: the mean of six meadows."""
    panels = figure.subplots(2, 2, sharex=True, sharey=True)
    for axes, chirps in zip(panels.flat, _CHIRPS, strict=True):
        for colour, (who, *person) in zip(CYCLE, _PEOPLE, strict=False):
            ranges = np.hypot(3.0 + 29.0 * _TIMES, _HEIGHT - 1.0)
            axes.plot(ranges, _chances(chirps, *person), color=colour, label=who)
        axes.set(title=chirps[:7].upper(), xlabel='distance, m', ylabel='returned by a scan')
        axes.label_outer()
    figure.legend(*panels[0, 0].get_legend_handles_labels(), loc='outside upper left', ncols=2)


if __name__ == '__main__':
    Path(sys.argv[1]).write_bytes(still_figure(Words('', '', '', ''), draw, 7.2, 5.0).png)
