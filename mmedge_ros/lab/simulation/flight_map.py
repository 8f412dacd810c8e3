"""A flight seen from above: what stands where, and the ways of drone and movers."""

from __future__ import annotations

import math

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Circle, Polygon

from mmedge_ros.data_types import FloatArray
from mmedge_ros.lab.reporting.figure_style import GREEN, INK, ORANGE, PURPLE, SKY
from mmedge_ros.lab.simulation.world import World

LABEL_COLOURS = {'person': ORANGE, 'cyclist': SKY, 'car': GREEN, 'dog': PURPLE}
_SURFACES = {
    'grass': '#dfead6', 'asphalt': '#c9cdd2', 'gravel': '#e6dfd0', 'paving': '#e4e2de',
}  # fmt: skip
_STEPS = 200
_MARGIN = 5.0


def draw_map(axes: Axes, world: World, instants: FloatArray, shape: float) -> None:
    """Draw a world's map; ``instants`` (N,) s are marked on the drone's way.

    :param shape: height of the axes over their width
    """
    times = np.linspace(0.0, world.seconds, _STEPS)
    drone = np.array([world.path.state(float(t)).pose.translation for t in times])
    ways = {
        mover.id: np.array([mover.state(float(t)).position for t in times])
        for mover in world.movers
    }
    people = [ways[m.id] for m in world.movers if m.label == 'person']
    _fit(axes, np.concatenate([drone, *people])[:, :2], shape)
    _draw_site(axes, world)
    for mover in world.movers:
        colour, way = LABEL_COLOURS[mover.label], ways[mover.id]
        axes.plot(way[:, 0], way[:, 1], color=colour, linewidth=1.1, alpha=0.75, zorder=4)
        axes.plot(*way[-1, :2], 'o', color=colour, markersize=4.5, markeredgecolor='white',
                  markeredgewidth=0.6, zorder=5)  # fmt: skip
    axes.plot(drone[:, 0], drone[:, 1], color=INK, linewidth=1.8, zorder=6)
    for t in instants.tolist():
        place = world.path.state(t).pose.translation
        axes.plot(*place[:2], 'o', color='white', markeredgecolor=INK, markersize=4, zorder=7)
    _draw_view(axes, world, float(instants[len(instants) // 2]))
    axes.set_title('From above, m')
    for label, colour in LABEL_COLOURS.items():
        if any(mover.label == label for mover in world.movers):
            axes.plot([], [], 'o-', color=colour, linewidth=1.3, markersize=4.5, label=label)
    axes.plot([], [], 'o-', color=INK, markerfacecolor='white', markersize=4, label='drone')
    legend = axes.legend(loc='lower right', frameon=True, facecolor='white', framealpha=0.85)
    legend.set_zorder(9)


def _fit(axes: Axes, points: FloatArray, shape: float) -> None:
    """Show all points (N, 2) in a window as high as ``shape`` times its width."""
    low, high = points.min(axis=0) - _MARGIN, points.max(axis=0) + _MARGIN
    middle, size = 0.5 * (low + high), high - low
    half = 0.5 * max(float(size[0]), float(size[1]) / shape)
    axes.set_aspect('equal', adjustable='box')
    axes.set_xlim(middle[0] - half, middle[0] + half)
    axes.set_ylim(middle[1] - half * shape, middle[1] + half * shape)


def _draw_site(axes: Axes, world: World) -> None:
    axes.set_facecolor(_SURFACES[world.ground.surface])
    axes.grid(visible=False)
    for strip in world.ground.strips:
        line = np.asarray(strip.line, np.float64)
        ahead = np.gradient(line, axis=0)
        left = np.column_stack([-ahead[:, 1], ahead[:, 0]])
        left *= 0.5 * strip.width / np.maximum(np.hypot(*left.T), 1e-9)[:, None]
        outline = np.concatenate([line + left, (line - left)[::-1]])
        axes.add_patch(Polygon(outline, color=_SURFACES[strip.surface], linewidth=0, zorder=1))
    for building in world.buildings:
        blue, green, red = (value / 255.0 for value in building.colour)
        axes.add_patch(
            Polygon(
                building.footprint,
                facecolor=(red, green, blue),
                edgecolor=INK,
                linewidth=0.6,
                zorder=3,
            )
        )
    for plant in world.plants:
        blue, green, red = (value / 255.0 for value in plant.colour)
        axes.add_patch(
            Circle(
                (plant.position[0], plant.position[1]),
                plant.crown_radius,
                facecolor=(red, green, blue),
                alpha=0.55,
                linewidth=0,
                zorder=3,
            )
        )
    for lamp in world.lamps:
        if lamp.lit:
            axes.add_patch(
                Circle((lamp.position[0], lamp.position[1]), 0.5 * lamp.reach,
                       color='#ffd97a', alpha=0.28, linewidth=0, zorder=2)
            )  # fmt: skip
        axes.plot(*lamp.position, '+', color=INK, markersize=5, markeredgewidth=0.9, zorder=3)


def _draw_view(axes: Axes, world: World, t: float) -> None:
    pose = world.path.state(t).pose.compose(world.rig.camera_pose)
    camera = world.rig.camera
    middle = 0.5 * (camera.height - 1)
    rays = pose.rotate(camera.bearing([[0.0, middle], [camera.width - 1.0, middle]]))
    eye = pose.translation[:2]
    reach = math.hypot(*np.ptp(np.array([axes.get_xlim(), axes.get_ylim()]), axis=1)) * 0.6
    ends = eye + reach * rays[:, :2] / np.linalg.norm(rays[:, :2], axis=1, keepdims=True)
    axes.add_patch(
        Polygon([eye, ends[0], ends[1]], facecolor=INK, alpha=0.07, linewidth=0, zorder=2)
    )
