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

from mmedge_ros.data_types import FloatArray
from mmedge_ros.fusion.decision_fusion import DecisionFusionParameters
from mmedge_ros.geometry.projection import CameraModel
from mmedge_ros.lab.evaluation.trajectories import Trajectory, sensor_mount, sensor_pose
from mmedge_ros.lab.reporting.figure_style import (
    CYCLE,
    INK,
    LINES,
    MUTED,
    FigureFile,
    legend_above,
    render,
)
from mmedge_ros.records.run_record import RunRecord

TRACKS, RANGES = 'tracks.png', 'ranges.png'
_MOST_TRACKS = 12
_MOST_POINTS = 400
_ELLIPSES = 7
_GREY = '#c3cad1'
# Nothing these sensors see is farther; a track there has diverged and would hide the others.
_FARTHEST = 1000.0


class _Line(NamedTuple):
    track: Trajectory
    colour: str
    style: str


def draw_tracks(record: RunRecord, tracks: Sequence[Trajectory]) -> FigureFile | None:
    """Draw the tracks from above with their uncertainty; None when there are none."""
    sane = [track for track in tracks if len(_path(track))]
    if not sane:
        return None
    lines, others = _styled(sane), sane[_MOST_TRACKS:]
    way = sensor_way(record)
    places = np.concatenate([_path(track)[:, 1::-1] for track in sane])
    low, high = frame_around(places, way)

    def draw(figure: Figure) -> None:
        axes = ground_axes(figure, low, high, 'Tracks from above')
        _draw_view(axes, record, reach=3.0 * float(high[1] - low[1]))
        if others:
            grey = _joined([_path(track) for track in others])
            axes.plot(grey[:, 1], grey[:, 0], color=_GREY, linewidth=0.8)
        for line in lines:
            _draw_line(axes, line)
        draw_sensor(axes, way)
        figure.draw_without_rendering()  # settles where the ends of the lines are
        _label_ends(axes, [(line, _path(line.track)[-1, 1::-1]) for line in lines])

    caption = (
        'Each line is one confirmed track with its id, from the ring where it began to the dot '
        'where it ended; colours only tell them apart. Ellipses hold one standard deviation of '
        'the position. The triangle is the sensor'
    )
    moves = len(way) > 1
    caption += ', where it was at the end of its dotted way' if moves else ''
    seen = record.camera is not None and record.camera_pose is not None
    caption += ', the shaded wedge what its camera sees.' if seen else '.'
    if ((places < low) | (places > high)).any():
        caption += ' A few far positions lie outside the figure.'
    return FigureFile(
        TRACKS,
        render(draw, 4.5, 4.5),
        'Where the tracks went',
        caption + _left_out(tracks, sane, others),
        f'Map of {len(lines)} tracks in front of the sensor',
    )


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

    caption = 'Lines are the distances of the tracks, with their ids at the end. '
    caption += (
        f'Dots are an independent guess: how far away a person {height:g} m tall would be to '
        f'fill the box of the track (focal length × {height:g} m / box height). They stray '
        f'where a person is bent, hidden or cut by the edge of the picture.'
        if calibrated
        else 'Without camera calibration there is no distance from box heights to compare with.'
    )
    return FigureFile(
        RANGES,
        render(draw, 4.5, 4.5),
        'How far away they were',
        caption + _left_out(tracks, sane, others),
        f'Chart of the distance of {len(lines)} tracks over time',
    )


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
    places: NDArray[np.intp] = np.flatnonzero((np.abs(track.positions) < _FARTHEST).all(axis=1))
    if len(places) > _MOST_POINTS:
        places = places[np.linspace(0, len(places) - 1, _MOST_POINTS).astype(int)]
    return places


def _joined(parts: Sequence[FloatArray]) -> FloatArray:
    """Put lines into one array with gaps between them: thousands are drawn as quickly."""
    gap = np.full((1, *parts[0].shape[1:]), np.nan)
    return np.concatenate([piece for part in parts for piece in (part, gap)])


def _draw_line(axes: Axes, line: _Line) -> None:
    path = _path(line.track)
    across, ahead = path[:, 1], path[:, 0]
    axes.plot(across, ahead, color=line.colour, linestyle=line.style, linewidth=1.8)
    axes.plot(across[0], ahead[0], 'o', color=line.colour, markersize=5.5, markerfacecolor='white')
    axes.plot(across[-1], ahead[-1], 'o', color=line.colour, markersize=5.5)
    count = len(line.track.times)
    for place in np.unique(np.linspace(0, count - 1, min(count, _ELLIPSES)).astype(int)):
        ellipse = _ellipse(line.track.positions[place], line.track.covariances[place])
        if ellipse is not None:
            ellipse.set(facecolor=line.colour, alpha=0.16, linewidth=0)
            axes.add_patch(ellipse)


def _ellipse(position: FloatArray, covariance: FloatArray) -> Ellipse | None:
    """One standard deviation of (y, x); None when the covariance is none."""
    ground = covariance[1::-1, 1::-1]
    if not (np.isfinite(ground).all() and (np.abs(position) < _FARTHEST).all()):
        return None
    values, vectors = np.linalg.eigh((ground + ground.T) / 2)
    if values[0] <= 0 or values[1] > _FARTHEST:
        return None
    angle = np.degrees(np.arctan2(vectors[1, 1], vectors[0, 1]))
    long, short = 2 * np.sqrt(values[1]), 2 * np.sqrt(values[0])
    return Ellipse((position[1], position[0]), long, short, angle=angle)


def sensor_way(record: RunRecord) -> FloatArray:
    """Return where the sensor was, (K, 2) as y and x; one place where it stood still."""
    poses = [
        sensor_pose(record, d.state_ns, d.frame_id)
        for d in record.decisions[:: max(len(record.decisions) // _MOST_POINTS, 1)]
        if d.frame_id == record.frame_id
    ] or [sensor_mount(record)]
    way = np.array([pose.translation for pose in poses])[:, 1::-1]
    near = way[(np.abs(way) < _FARTHEST).all(axis=1)]
    return near if len(near) and np.ptp(near, axis=0).max() > 0.0 else way[-1:]


def draw_sensor(axes: Axes, way: FloatArray) -> None:
    """Draw the sensor's way (K, 2), and a triangle where it ends."""
    axes.plot(way[:, 0], way[:, 1], ':', color=INK, linewidth=1.2)
    axes.plot(way[-1, 0], way[-1, 1], marker='^', color=INK, markersize=8, linestyle='')


def ground_axes(figure: Figure, low: FloatArray, high: FloatArray, title: str) -> Axes:
    """Return the axes of a map between two corners (y, x), seen from above."""
    axes = figure.subplots()
    axes.set(aspect='equal', xlim=(high[0], low[0]), ylim=(low[1], high[1]))
    axes.set(xlabel='y, to the left [m]', ylabel='x, ahead [m]')
    axes.set_title(title)
    return axes


def frame_around(places: FloatArray, way: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the corners of a square around nearly all (y, x) places and the sensor's way."""
    low = np.minimum(np.quantile(places, 0.003, axis=0), way.min(axis=0))
    high = np.maximum(np.quantile(places, 0.997, axis=0), way.max(axis=0))
    half = max(float((high - low).max()) * 0.57, 1.0)
    middle = (low + high) / 2
    return middle - half, middle + half


def _draw_view(axes: Axes, record: RunRecord, reach: float) -> None:
    """Shade the camera's horizontal field of view at the end, beyond the edge of the figure."""
    if record.camera is None or record.camera_pose is None or not record.decisions:
        return
    last = record.decisions[-1]
    camera, pose = record.camera, sensor_pose(record, last.state_ns, record.frame_id)
    middle = camera.height / 2
    edges = camera.bearing(np.array([[0.0, middle], [camera.width, middle]]))
    rays = edges @ np.asarray(pose.rotation).T
    if not np.isfinite(rays).all():
        return
    origin = np.asarray(pose.translation)[1::-1]
    corners = [origin, *(origin + reach * ray[1::-1] for ray in rays)]
    axes.add_patch(Polygon(corners, facecolor=CYCLE[0], alpha=0.07, linewidth=0, zorder=0))


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
