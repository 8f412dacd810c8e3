"""One picture that shows a flight: frames with their truth, a map, and how it went over time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from mmedge_ros.data_types import FloatArray
from mmedge_ros.lab.reporting.figure_style import INK, MUTED, SKY, VERMILION, render
from mmedge_ros.lab.simulation.camera import CameraSimulator, Picture
from mmedge_ros.lab.simulation.flight_map import LABEL_COLOURS, draw_map
from mmedge_ros.lab.simulation.radar import RadarSimulator
from mmedge_ros.lab.simulation.system_dynamics import SystemDynamics
from mmedge_ros.lab.simulation.world import World

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


@dataclass(frozen=True, eq=False)
class _Course:
    """What the curves show, each (N,) at ``times`` s."""

    times: FloatArray
    voltage: FloatArray
    luma: FloatArray
    altitude: FloatArray
    people: list[tuple[FloatArray, FloatArray]]  # times, and distances in m, while in view


def contact_sheet(world: World) -> bytes:
    """Draw a flight's contact sheet and return it as PNG, equal bytes for equal worlds."""
    camera = CameraSimulator(world)
    radar = RadarSimulator(world)
    # The first and last frames a little inside of the flight.
    share = (np.arange(_ROWS * _COLUMNS) + 0.5) / (_ROWS * _COLUMNS)
    instants = np.asarray(share * world.seconds, np.float64)
    pictures = [camera.picture(float(t)) for t in instants]
    course = _course(world, camera)

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
        _draw_course(panels, world, course)

    return render(draw, _WIDTH, _HEIGHT, _DPI)


def _axes(figure: Figure, left: float, bottom: float, width: float, height: float) -> Axes:
    """Add axes at a place in inches."""
    size = (_WIDTH, _HEIGHT, _WIDTH, _HEIGHT)
    places = (left, bottom, width, height)
    x, y, wide, tall = (v / total for v, total in zip(places, size, strict=True))
    return figure.add_axes((x, y, wide, tall))


def _write_title(figure: Figure, world: World) -> None:
    counts = {name: sum(m.label == name for m in world.movers) for name in LABEL_COLOURS}
    who = '   '.join(
        f'{count} {name if count == 1 else _PLURALS[name]}'
        for name, count in counts.items()
        if count
    )
    base = 1.0 - 0.42 / _HEIGHT
    figure.text(
        _EDGE / _WIDTH, base, f'{world.surroundings} · {world.light_name} · {world.distance}',
        fontsize=20, fontweight='bold', color=INK,
    )  # fmt: skip
    figure.text(
        1.0 - _EDGE / _WIDTH, base, f'{world.seconds:g} s     seed {world.seed}     {who}',
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
    number = max(0, math.floor((t - world.rig.radar_phase) / world.rig.radar_period))
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


def _course(world: World, camera: CameraSimulator) -> _Course:
    times = np.linspace(0.0, world.seconds, _SAMPLES)
    dynamics = SystemDynamics(world)
    voltage = np.array([dynamics.battery(float(t)).voltage for t in times])
    luma = np.zeros(len(times))
    altitude = np.zeros(len(times))
    distances: dict[int, list[tuple[float, float]]] = {}
    states = {mover.id: mover.state for mover in world.movers}
    for i, t in enumerate(times.tolist()):
        picture = camera.picture(t)
        luma[i] = cv2.cvtColor(picture.image, cv2.COLOR_BGR2GRAY).mean()
        eye = world.path.state(t).pose.translation
        altitude[i] = eye[2]
        for seen in picture.objects:
            if seen.label == 'person' and seen.visibility > _HIDDEN:
                away = float(np.linalg.norm(states[seen.id](t).position - eye))
                distances.setdefault(seen.id, []).append((t, away))
    people = [(np.array(d)[:, 0], np.array(d)[:, 1]) for d in distances.values()]
    return _Course(times, voltage, luma, altitude, people)


def _draw_course(panels: Sequence[Axes], world: World, course: _Course) -> None:
    distance, altitude, voltage, luma = panels
    for times, metres in course.people:
        distance.plot(times, metres, '.', color=LABEL_COLOURS['person'], markersize=4.5)
    distance.set_title('People in view: distance, m')
    distance.set_ylim(bottom=0.0)
    altitude.plot(course.times, course.altitude, color=INK, linewidth=1.5)
    altitude.set_title('Drone: altitude, m')
    altitude.set_ylim(0.0, max(1.15 * float(course.altitude.max()), 1.0))
    voltage.plot(course.times, course.voltage, color=VERMILION, linewidth=1.5)
    voltage.set_title('Battery, V')
    luma.fill_between(course.times, course.luma, color=SKY, alpha=0.35, linewidth=0)
    luma.plot(course.times, course.luma, color=SKY, linewidth=1.5)
    luma.set_title('Mean brightness of the picture, 0 to 255')
    luma.set_ylim(0.0, max(60.0, 1.2 * float(course.luma.max())))
    for axes in panels:
        axes.set_xlim(0.0, world.seconds)
        axes.set_xlabel('s', labelpad=0.0, color=MUTED)
