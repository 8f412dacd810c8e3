"""One picture that shows a flight: frames with their truth, a map, and how it went over time."""

from __future__ import annotations

import math
from collections.abc import Sequence

import cv2
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle, Polygon, Rectangle

from mmedge_lab.simulation.camera import CameraSimulator, Picture
from mmedge_lab.simulation.radar import RadarSimulator
from mmedge_lab.simulation.system_dynamics import SystemDynamics
from mmedge_lab.simulation.world import World
from mmedge_ros.data_types import FloatArray
from mmedge_ros.report.figure_style import (
    GREEN,
    INK,
    MUTED,
    ORANGE,
    PURPLE,
    SKY,
    VERMILION,
    render,
)

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


# Inches.
_WIDTH, _HEIGHT, _DPI = 17.0, 11.85, 110
_EDGE, _HEADER, _FOOT, _GAP = 0.28, 0.62, 0.5, 0.09
_FRAME = (3.8, 2.85)
_PANEL, _PANEL_GAP = 1.45, 0.62
_ROWS, _COLUMNS = 3, 3
# Instants that the curves are made of.
_SAMPLES = 30
# Below this visibility a box is drawn dashed.
_HIDDEN = 0.5
# Returns that move faster than this are drawn in the colour of motion, m/s.
_MOVES = 0.3
_PLURALS = {'person': 'people', 'cyclist': 'cyclists', 'car': 'cars', 'dog': 'dogs'}


def contact_sheet(world: World) -> bytes:
    """Draw a flight's contact sheet and return it as PNG, equal bytes for equal worlds."""
    camera = CameraSimulator(world)
    radar = RadarSimulator(world)
    # The first and last frames a little inside of the flight.
    share = (np.arange(_ROWS * _COLUMNS) + 0.5) / (_ROWS * _COLUMNS)
    instants = np.asarray(share * world.seconds, np.float64)
    pictures = [camera.picture(float(t)) for t in instants]

    def draw(figure: Figure) -> None:
        # Pictures have a shape of their own, so every place is given in inches.
        figure.set_layout_engine('none')
        _write_title(figure, world)
        for i, (t, picture) in enumerate(zip(instants.tolist(), pictures, strict=True)):
            row, column = divmod(i, _COLUMNS)
            left = _EDGE + column * (_FRAME[0] + _GAP)
            bottom = _HEIGHT - _HEADER - (row + 1) * _FRAME[1] - row * _GAP
            _draw_frame(_axes(figure, left, bottom, *_FRAME), world, radar, t, picture)
        beside = _EDGE + _COLUMNS * (_FRAME[0] + _GAP) + 0.45
        tall = _ROWS * _FRAME[1] + (_ROWS - 1) * _GAP - 0.25
        wide = _WIDTH - beside - _EDGE
        draw_map(
            _axes(figure, beside, _HEIGHT - _HEADER - 0.25 - tall, wide, tall), world, instants,
            tall / wide,
        )  # fmt: skip
        wide = (_WIDTH - 2.0 * _EDGE - 3.0 * _PANEL_GAP - 0.25) / 4.0
        panels = [
            _axes(figure, _EDGE + 0.25 + i * (wide + _PANEL_GAP), _FOOT, wide, _PANEL)
            for i in range(4)
        ]
        _draw_course(panels, world, camera)

    return render(draw, _WIDTH, _HEIGHT, _DPI)


def _axes(figure: Figure, left: float, bottom: float, width: float, height: float) -> Axes:
    """Add axes at a place in inches."""
    size = (_WIDTH, _HEIGHT, _WIDTH, _HEIGHT)
    places = (left, bottom, width, height)
    x, y, wide, tall = (v / total for v, total in zip(places, size, strict=True))
    return figure.add_axes((x, y, wide, tall))


def _write_title(figure: Figure, world: World) -> None:
    counts = {name: sum(m.label == name for m in world.movers) for name in LABEL_COLOURS}
    movers = '   '.join(
        f'{count} {name if count == 1 else _PLURALS[name]}'
        for name, count in counts.items()
        if count
    )
    base = 1.0 - 0.42 / _HEIGHT
    figure.text(
        _EDGE / _WIDTH, base, ' · '.join(world.scenario),
        fontsize=20, fontweight='bold', color=INK,
    )  # fmt: skip
    figure.text(
        1.0 - _EDGE / _WIDTH, base, f'{world.seconds:g} s     seed {world.seed}     {movers}',
        ha='right', fontsize=12, color=MUTED,
    )  # fmt: skip


def _draw_frame(
    axes: Axes, world: World, radar: RadarSimulator, t: float, picture: Picture
) -> None:
    axes.imshow(cv2.cvtColor(picture.image, cv2.COLOR_BGR2RGB), interpolation='antialiased')
    axes.set_axis_off()
    for seen in picture.objects:
        if seen.box is None or seen.visibility <= 0.0:
            continue
        x0, y0, x1, y1 = seen.box
        style = '-' if seen.visibility >= _HIDDEN else (0, (3, 2))
        colour = LABEL_COLOURS[seen.label]
        # An image's pixels are centred on whole numbers, boxes end on their edges.
        axes.add_patch(
            Rectangle(
                (x0 - 0.5, y0 - 0.5),
                x1 - x0,
                y1 - y0,
                fill=False,
                edgecolor=colour,
                linewidth=1.1,
                linestyle=style,
            )
        )
    _draw_returns(axes, world, radar, t)
    axes.set_xlim(-0.5, picture.image.shape[1] - 0.5)
    axes.set_ylim(picture.image.shape[0] - 0.5, -0.5)
    axes.text(
        10, 468, f'{t:.1f} s', color='white', fontsize=9.5, fontweight='bold', va='bottom',
        bbox={'facecolor': 'black', 'alpha': 0.45, 'edgecolor': 'none', 'pad': 2.5},
    )  # fmt: skip


def _draw_returns(axes: Axes, world: World, radar: RadarSimulator, t: float) -> None:
    number = max(0, math.floor((t - world.rig.radar_timing.phase) / world.rig.radar_timing.period))
    returns = np.asarray(radar.scan(t, number), np.float64)
    if not len(returns):
        return
    to_camera = world.rig.camera_pose.inverse().compose(world.rig.radar_pose)
    pixels, in_view = world.rig.camera.project(to_camera.apply(returns[:, :3]))
    drone = world.path.state(t)
    pose = drone.pose.compose(world.rig.radar_pose)
    arm = drone.pose.rotate(world.rig.radar_pose.translation)
    own = pose.inverse().rotate(drone.velocity + np.cross(drone.angular_velocity, arm))
    towards = returns[:, :3] / np.linalg.norm(returns[:, :3], axis=1, keepdims=True)
    moves = np.abs(returns[:, 3] + towards @ own) > _MOVES
    for chosen, colour, size in ((~moves, 'white', 5.0), (moves, VERMILION, 13.0)):
        spots = pixels[in_view & chosen]
        axes.scatter(
            spots[:, 0], spots[:, 1], s=size, color=colour, edgecolors='black', linewidths=0.35,
            alpha=0.9, zorder=3,
        )  # fmt: skip


def _draw_course(panels: Sequence[Axes], world: World, camera: CameraSimulator) -> None:
    """Draw curves over the flight: people's distances, altitude, voltage and brightness."""
    times = np.linspace(0.0, world.seconds, _SAMPLES)
    dynamics = SystemDynamics(world)
    volts = [dynamics.battery(float(t)).voltage for t in times]
    brightness, heights = [], []
    distances: dict[int, list[tuple[float, float]]] = {}
    states = {mover.id: mover.state for mover in world.movers}
    for t in times.tolist():
        picture = camera.picture(t)
        brightness.append(cv2.cvtColor(picture.image, cv2.COLOR_BGR2GRAY).mean())
        eye = world.path.state(t).pose.translation
        heights.append(eye[2])
        for seen in picture.objects:
            if seen.label == 'person' and seen.visibility > _HIDDEN:
                away = float(np.linalg.norm(states[seen.id](t).position - eye))
                distances.setdefault(seen.id, []).append((t, away))
    distance, altitude, voltage, luma = panels
    for points in distances.values():
        distance.plot(
            *zip(*points, strict=True), '.', color=LABEL_COLOURS['person'], markersize=4.5
        )
    distance.set_title('People in view: distance, m')
    distance.set_ylim(bottom=0.0)
    altitude.plot(times, heights, color=INK, linewidth=1.5)
    altitude.set_title('Drone: altitude, m')
    altitude.set_ylim(0.0, max(1.15 * max(heights), 1.0))
    voltage.plot(times, volts, color=VERMILION, linewidth=1.5)
    voltage.set_title('Battery, V')
    luma.fill_between(times, brightness, color=SKY, alpha=0.35, linewidth=0)
    luma.plot(times, brightness, color=SKY, linewidth=1.5)
    luma.set_title('Mean brightness of the picture, 0 to 255')
    luma.set_ylim(0.0, max(60.0, 1.2 * max(brightness)))
    for axes in panels:
        axes.set_xlim(0.0, world.seconds)
        axes.set_xlabel('s', labelpad=0.0, color=MUTED)
