"""Figures about people's tracks: from above, and their distance over time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from matplotlib import patheffects
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Ellipse, Polygon
from numpy.typing import NDArray

from mmedge_ros.core.data_types import CAMERA, FloatArray
from mmedge_ros.core.run_record import RunRecord
from mmedge_ros.geometry.projection import CameraModel
from mmedge_ros.report.figure_style import (
    CYCLE,
    INK,
    LINES,
    MUTED,
    VERMILION,
    FigureFile,
    Series,
    legend_above,
    render,
    render_over_time,
)
from mmedge_ros.report.top_view import FARTHEST, TRACK, TRUE_PERSON, DrawnWay, TopView
from mmedge_ros.report.trajectories import Trajectory
from mmedge_ros.tracking.decision_fusion import DecisionFusionParameters

TRACKS, RANGES = 'tracks.png', 'ranges.png'
_MOST_TRACKS = 12
_MOST_POINTS = 400
_GREY = '#c3cad1'
# So many moments of a run are drawn from above, each with its last seconds.
_MOMENTS, _COLUMNS = 6, 3
_TRAIL = 2.0


class _Line(NamedTuple):
    track: Trajectory
    colour: str
    style: str


def draw_top_view(view: TopView | None) -> FigureFile | None:
    """Draw moments of a run from above; None where there is nothing to draw."""
    if view is None:
        return None
    count = min(_MOMENTS, len(view.times))
    moments = np.unique(np.linspace(0, len(view.times) - 1, count + 2)[1:-1].round().astype(int))

    def draw(figure: Figure) -> None:
        panels = figure.subplots(rows, _COLUMNS, sharex=True, sharey=True, squeeze=False)
        for place, axes in enumerate(panels.ravel()):
            if place >= len(moments):
                axes.set_visible(False)
                continue
            _draw_moment(axes, view, int(moments[place]))
            axes.set_xlabel('y, to the left [m]' if place >= len(moments) - _COLUMNS else '')
            axes.set_ylabel('x, ahead [m]' if place % _COLUMNS == 0 else '')

    caption = (
        f'Dots are tracks with their ids, {"rings the true people, " if view.has_truth else ""}'
        'diamonds tracks of the radar alone, faint what is not seen at that moment, the triangle '
        'is the sensor and the wedge what its camera sees; lines are the last two seconds and '
        'ellipses one standard deviation.'
    )
    tall, wide = view.high - view.low
    rows = -(-len(moments) // _COLUMNS)
    return FigureFile(
        TRACKS,
        render(draw, 9.4, 0.6 + rows * (3.0 * float(tall / wide) + 0.35)),
        'From above',
        caption,
        f'{len(moments)} maps of tracks in front of the sensor, one after the other in time',
    )


def _draw_moment(axes: Axes, view: TopView, place: int) -> None:
    axes.set(aspect='equal', xlim=(view.high[1], view.low[1]), ylim=(view.low[0], view.high[0]))
    axes.set_title(f'{view.times[place]:.1f} s')
    x, y, heading = view.own[place]
    if CAMERA in view.fields:
        right, left, reach = view.fields[CAMERA]
        angles = heading + np.linspace(right, left, 25)
        corners = np.stack([y + reach * np.sin(angles), x + reach * np.cos(angles)], axis=1)
        points = np.concatenate([[[y, x]], corners])
        axes.add_patch(Polygon(points, facecolor=CYCLE[0], alpha=0.07, linewidth=0, zorder=0))
    first = int(np.searchsorted(view.times, view.times[place] - _TRAIL))
    for number, way in enumerate(view.ways):
        rows = way.between(first, place)
        if way.begin <= place < way.begin + len(way.rows) and np.isfinite(rows[-1, 0]):
            _draw_way(axes, way, rows, CYCLE[number % len(CYCLE)])
    marker = (3, 0, float(np.degrees(heading)))
    axes.plot(y, x, marker=marker, color=INK, markersize=8, linestyle='')


def _draw_way(axes: Axes, way: DrawnWay, rows: FloatArray, colour: str) -> None:
    """Draw where an object was lately (N, 6), and where it is; faint where it is not seen."""
    (x, y, seen), (long, short, angle) = rows[-1, :3], rows[-1, 3:]
    alpha = 1.0 if seen else 0.35
    if not way.is_track:
        shape, size = ('o', 9.0) if way.kind == TRUE_PERSON else ('s', 5.0)
        axes.plot(rows[:, 1], rows[:, 0], color=_GREY, linewidth=2.5, zorder=1)
        axes.plot(y, x, shape, color=MUTED, markersize=size, markerfacecolor='none', alpha=alpha)
        return
    colour, shape = (colour, 'o') if way.kind == TRACK else (VERMILION, 'D')
    axes.plot(rows[:, 1], rows[:, 0], color=colour, linewidth=1.2, alpha=alpha)
    axes.plot(y, x, shape, color=colour, markersize=4.0, alpha=alpha)
    if seen and np.isfinite(long):
        ellipse = Ellipse((y, x), 2 * long, 2 * short, angle=90.0 - float(np.degrees(angle)))
        ellipse.set(facecolor=colour, alpha=0.16, linewidth=0)
        axes.add_patch(ellipse)
    text = axes.annotate(
        f'{way.id}', (y, x), (4, 4), textcoords='offset points', fontsize=7.5, color=colour
    )
    outline = patheffects.withStroke(linewidth=2, foreground='white')
    text.set(path_effects=[outline], clip_on=True, alpha=alpha)


def draw_ranges(record: RunRecord, tracks: Sequence[Trajectory]) -> FigureFile | None:
    """Draw the distance of each track over time beside the one its box's height gives."""
    sane = [track for track in tracks if len(_path(track))]
    if not sane:
        return None
    lines, others = _styled(sane), sane[_MOST_TRACKS:]
    camera, pose = record.camera, record.camera_pose
    height = DecisionFusionParameters().person_height
    calibrated = camera is not None and pose is not None

    def distance(track: Trajectory) -> FloatArray:
        return track.depths if calibrated else track.ranges

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        highest, ends = 1.0, []
        if others:
            axes.plot(
                _joined([track.times[_usable(track)] for track in others]),
                _joined([distance(track)[_usable(track)] for track in others]),
                color=_GREY,
                linewidth=0.8,
            )
        for line in lines:
            track, keep = line.track, _usable(line.track)
            times, values = track.times[keep], distance(track)[keep]
            if calibrated and camera is not None:
                expected = _height_depths(track.boxes[keep], camera, height)
                axes.plot(times, expected, '.', color=line.colour, markersize=3, alpha=0.4)
            axes.plot(times, values, color=line.colour, linestyle=line.style, linewidth=1.8)
            highest = max(highest, float(values.max()))
            ends.append((line, np.array([times[-1], values[-1]])))
        axes.set_ylim(0.0, highest * 1.2)
        axes.margins(x=0.06)
        axes.autoscale_view(scaley=False)
        figure.draw_without_rendering()
        _label_ends(axes, ends)
        axes.set_xlabel('time since the start of the recording [s]')
        kind = 'depth along the optical axis' if calibrated else 'distance from the sensor'
        axes.set_ylabel(f'{kind} [m]')
        axes.plot([], [], color=MUTED, linewidth=1.8, label='track')
        if calibrated:
            axes.plot([], [], '.', color=MUTED, label=f'{height:g} m tall person in its box')
        legend_above(axes, 'Distance over time')

    caption = 'Lines are the distances of the tracks, with their ids at the end'
    caption += (
        f'; dots are the distance at which a person {height:g} m tall fills the box of the track '
        f'(focal length × {height:g} m / box height).'
        if calibrated
        else '; without camera calibration there is no distance from box heights to compare with.'
    )
    times = np.unique(np.concatenate([line.track.times for line in lines]))
    series = [Series(f'track {n.id}', ' m', _at(times, n, distance(n))) for n, _, _ in lines]
    (png,), readout = render_over_time(draw, ((6.2, 4.2),), times, series)
    return FigureFile(
        RANGES,
        png,
        'Distance of each track',
        caption + _left_out(tracks, sane, others),
        f'Chart of the distance of {len(lines)} tracks over time',
        readout=readout,
    )


def _at(times: FloatArray, track: Trajectory, values: FloatArray) -> FloatArray:
    """Values of a track at all times (N,); NaN where there is none."""
    row = np.full(len(times), np.nan)
    row[np.searchsorted(times, track.times)] = values
    return row


def _left_out(
    tracks: Sequence[Trajectory], sane: Sequence[Trajectory], others: Sequence[Trajectory]
) -> str:
    words = ''
    if others:
        words += f' Only the {_MOST_TRACKS} longest of {len(sane)} tracks have an id here; '
        words += 'the others are grey.'
    if len(sane) < len(tracks):
        words += f' {len(tracks) - len(sane)} tracks without a usable position are not drawn.'
    return words


def _styled(tracks: Sequence[Trajectory]) -> list[_Line]:
    """Give the longest tracks a colour, and a line style once the colours repeat."""
    return [
        _Line(track, CYCLE[i % len(CYCLE)], LINES[i // len(CYCLE) % len(LINES)])
        for i, track in enumerate(tracks[:_MOST_TRACKS])
    ]


def _path(track: Trajectory) -> FloatArray:
    """Positions worth drawing, (M, 3) with M at most a few hundred."""
    return track.positions[_usable(track)]


def _usable(track: Trajectory) -> NDArray[np.intp]:
    """Where in a track there is something to draw, thinned to a few hundred places."""
    places: NDArray[np.intp] = np.flatnonzero((np.abs(track.positions) < FARTHEST).all(axis=1))
    if len(places) > _MOST_POINTS:
        places = places[np.linspace(0, len(places) - 1, _MOST_POINTS).astype(int)]
    return places


def _joined(parts: Sequence[FloatArray]) -> FloatArray:
    """Put lines into one array with gaps between them: thousands are drawn as quickly."""
    gap = np.full((1, *parts[0].shape[1:]), np.nan)
    return np.concatenate([piece for part in parts for piece in (part, gap)])


def _height_depths(boxes: FloatArray, camera: CameraModel, height: float) -> FloatArray:
    tall = np.maximum(boxes[:, 3] - boxes[:, 1], 1.0)
    depths: FloatArray = camera.k[1, 1] * height / tall
    return depths


def _label_ends(axes: Axes, ends: Sequence[tuple[_Line, FloatArray]]) -> None:
    """Write ids beside the ends of lines, moved apart where they would cover each other."""
    taken: list[tuple[float, float]] = []
    points_per_pixel = 72.0 / axes.figure.dpi
    for line, end in sorted(ends, key=lambda item: float(item[1][1])):
        right, up = axes.transData.transform(end) * points_per_pixel
        lift = 0.0
        while any(abs(right - r) < 28 and abs(up + lift - u) < 11 for r, u in taken):
            lift += 2.0
        taken.append((right, up + lift))
        text = axes.annotate(
            f'{line.track.id}',
            (float(end[0]), float(end[1])),
            (6, lift),
            textcoords='offset points',
            va='center',
            fontsize=9,
            fontweight='bold',
            color=line.colour,
        )
        text.set_path_effects([patheffects.withStroke(linewidth=2.5, foreground='white')])
