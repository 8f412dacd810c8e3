"""A run seen from above: where people, tracks and the drone were, as data and as a figure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib import patheffects
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Ellipse, Polygon
from numpy.typing import NDArray

from mmedge_ros.core.data_types import CAMERA, NS_PER_S, RADAR, Decision, FloatArray, Track
from mmedge_ros.core.run_record import RunRecord
from mmedge_ros.geometry.transforms import Transform
from mmedge_ros.replay.ground_truth import PERSON
from mmedge_ros.report.figure_style import (
    CYCLE,
    GREY,
    INK,
    MUTED,
    VERMILION,
    FigureFile,
    Words,
    still_figure,
)
from mmedge_ros.report.trajectories import Trajectory, sensor_mount, start_ns
from mmedge_ros.report.truth_matching import Alignment, counted_people

TRACKS = 'tracks.png'
# So many moments of a run are drawn from above, each with its last seconds.
_MOMENTS, _COLUMNS = 6, 3
_TRAIL = 2.0
# Kinds of ways: tracks of people and by the radar alone, true people and other true objects.
TRACK, RADAR_ALONE, TRUE_PERSON, TRUE_OTHER = 'track', 'radar', 'person', 'other'
COLOURS = 7
_MOST_MOMENTS = 1500
_MOST_ROWS = 40_000
# Nothing these sensors see is farther; a track there has diverged and would hide the others.
FARTHEST = 1000.0
_LEAST_RETURNS = 50
# Moments without an object after which it begins a new way.
_LONGEST_GAP = 20
_CM = 100.0
# Rays of a camera steeper than this have no direction on the ground worth drawing.
_FLATTEST = 0.2


class DrawnWay(NamedTuple):
    """Where one object was in consecutive moments, the first of which is ``begin``.

    ``rows`` (N, 6): x and y (m), 1 where it was seen (of true people: visible, of tracks:
    measured within the last window) else 0, the standard deviations along the long and the
    short axis of the uncertainty (m), and the direction of the long one (rad). NaN where it is
    not known.
    """

    id: int
    label: str
    kind: str
    begin: int
    rows: FloatArray

    @property
    def is_track(self) -> bool:
        return self.kind in (TRACK, RADAR_ALONE)

    def between(self, first: int, last: int) -> FloatArray:
        """Rows of the moments from ``first`` to ``last``, both inclusive."""
        return self.rows[max(first - self.begin, 0) : max(last + 1 - self.begin, 0)]


class TopView(NamedTuple):
    """K moments of a run on the ground.

    ``times`` (K,) s; ``own`` (K, 3) the sensor's x, y (m) and heading (rad). ``fields`` maps a
    sensor to the directions of the right and left edge of what it sees (rad, from the heading)
    and how far that is drawn (m). ``low`` and ``high`` are corners (x, y) around all that matters.
    """

    times: FloatArray
    own: FloatArray
    ways: tuple[DrawnWay, ...]
    fields: dict[str, tuple[float, float, float]]
    low: FloatArray
    high: FloatArray
    has_truth: bool

    def content(self) -> dict[str, Any]:
        """Return it for the page: whole cm and degrees, null where nothing is known."""
        degrees = np.round(np.degrees(self.own[:, 2]))
        return {
            't': np.round(self.times, 2).tolist(),
            'own': [
                [*map(int, place), int(angle)]
                for place, angle in zip(np.round(_CM * self.own[:, :2]), degrees, strict=True)
            ],
            'ways': [
                {
                    'id': way.id,
                    'label': way.label[:40],
                    'kind': way.kind,
                    'c': place % COLOURS,
                    'k': way.begin,
                    'p': [_row_content(row) for row in way.rows],
                }
                for place, way in enumerate(self.ways)
            ],
            'fields': {
                name: [round(np.degrees(right)), round(np.degrees(left)), round(_CM * reach)]
                for name, (right, left, reach) in self.fields.items()
            },
            'low': np.round(_CM * self.low).tolist(),
            'high': np.round(_CM * self.high).tolist(),
            'truth': self.has_truth,
        }


def _row_content(row: FloatArray) -> list[int] | None:
    if not np.isfinite(row[:2]).all():
        return None
    x, y = (int(value) for value in np.round(_CM * row[:2]))
    seen = int(row[2])
    if not np.isfinite(row[3:]).all():
        return [x, y, seen]
    long, short = (max(int(value), 1) for value in np.round(_CM * row[3:5]))
    return [x, y, seen, long, short, round(np.degrees(row[5]))]


def top_view(record: RunRecord, tracks: Sequence[Trajectory]) -> TopView | None:
    """Collect what is to be seen from above; None without anything on the ground.

    :param tracks: in the order that gives them their colours
    """
    decisions = [d for d in record.decisions if d.frame_id == record.frame_id]
    rows = sum(len(decision.tracks) for decision in decisions)
    step = max(-(-len(decisions) // _MOST_MOMENTS), -(-rows // _MOST_ROWS), 1)
    decisions = decisions[::step]
    if not decisions:
        return None
    ways = _Ways()
    for place, decision in enumerate(decisions):
        for track in decision.tracks:
            kind = TRACK if track.label == PERSON else RADAR_ALONE
            ways.note(place, track.id, track.label, kind, _track_row(track, record.window))
    _note_truth(ways, record, decisions)
    own = np.array([_own_place(record, decision) for decision in decisions])
    order = {track.id: place for place, track in enumerate(tracks)}
    known = sorted(ways.ways(), key=lambda w: (not w.is_track, order.get(w.id, len(order)), w.id))
    if not known:
        return None
    low, high = _corners(known, own)
    return TopView(
        np.array([(d.state_ns - start_ns(record)) / NS_PER_S for d in decisions]),
        own,
        tuple(known),
        _fields(record, float(np.linalg.norm(high - low))),
        low,
        high,
        any(not way.is_track for way in known),
    )


class _Ways:
    """Collects rows by object, in the order of moments; long gaps make two ways of one."""

    def __init__(self) -> None:
        self._rows: dict[tuple[str, int], dict[int, FloatArray]] = {}
        self._labels: dict[tuple[str, int], str] = {}

    def note(self, place: int, number: int, label: str, kind: str, row: FloatArray) -> None:
        if (np.abs(row[:2]) < FARTHEST).all():
            self._rows.setdefault((kind, number), {})[place] = row
            self._labels[kind, number] = label

    def ways(self) -> list[DrawnWay]:
        return [
            self._way(key, rows, places)
            for key, rows in self._rows.items()
            for places in np.split(
                list(rows), np.flatnonzero(np.diff(list(rows)) > _LONGEST_GAP) + 1
            )
        ]

    def _way(
        self, key: tuple[str, int], rows: dict[int, FloatArray], places: NDArray[np.int64]
    ) -> DrawnWay:
        begin, end = int(places[0]), int(places[-1])
        table = np.full((end + 1 - begin, 6), np.nan)
        table[places - begin] = [rows[place] for place in places.tolist()]
        kind, number = key
        return DrawnWay(number, self._labels[key], kind, begin, table)


def _track_row(track: Track, window: float) -> FloatArray:
    position = np.asarray(track.position, np.float64)
    ground = np.asarray(track.covariance, np.float64)[:2, :2]
    spread = [np.nan] * 3
    if np.isfinite(ground).all() and np.abs(ground).max() < FARTHEST:
        values, vectors = np.linalg.eigh((ground + ground.T) / 2)
        if values[0] > 0.0:
            short, long = np.sqrt(values)
            spread = [long, short, np.arctan2(vectors[1, 1], vectors[0, 1])]
    return np.array([*position[:2], float(not track.age > window), *spread])


def _note_truth(ways: _Ways, record: RunRecord, decisions: Sequence[Decision]) -> None:
    if record.truth is None:
        return
    alignment = Alignment(record, record.truth)
    for place, decision in enumerate(decisions):
        frame = record.truth.frame_at(decision.state_ns)
        aligned = frame and alignment.carry(frame, decision.state_ns, decision.frame_id)
        if frame is None or aligned is None:
            continue
        visible = counted_people(frame)
        for number, label, position, counts in zip(
            frame.ids.tolist(), frame.labels, aligned.positions, visible, strict=True
        ):
            kind = TRUE_PERSON if label == PERSON else TRUE_OTHER
            shown = kind == TRUE_OTHER or counts
            row = np.array([*position[:2], float(shown), np.nan, np.nan, np.nan])
            ways.note(place, number, str(label), kind, row)


def _own_place(record: RunRecord, decision: Decision) -> FloatArray:
    """Return x, y (m) and heading (rad) of the sensor at a decision; the origin without any."""
    body = Transform.identity()
    if record.ego and record.ego.frame_id == decision.frame_id:
        state = record.ego.nearest(decision.state_ns)
        body = body if state is None else state.pose
    place = np.asarray(body.apply(sensor_mount(record).translation), np.float64)
    turn = np.asarray(body.rotation)
    near = np.clip(np.nan_to_num(place[:2]), -FARTHEST, FARTHEST)
    return np.array([*near, np.arctan2(turn[1, 0], turn[0, 0])])


def _corners(ways: Sequence[DrawnWay], own: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return corners (x, y) around nearly all tracks and visible people, and the sensor's way."""
    rows = np.concatenate([way.rows for way in ways])
    places = rows[(rows[:, 2] > 0.0) & np.isfinite(rows[:, :2]).all(axis=1), :2]
    places = places if len(places) else own[:, :2]
    low = np.minimum(np.quantile(places, 0.005, axis=0), own[:, :2].min(axis=0))
    high = np.maximum(np.quantile(places, 0.995, axis=0), own[:, :2].max(axis=0))
    middle, half = (low + high) / 2, np.maximum(0.54 * (high - low), 1.0)
    # Neither a strip nor a tower, whatever the flight was like.
    half = np.maximum(half, half.max() / 2.5)
    return middle - half, middle + half


def _fields(record: RunRecord, reach: float) -> dict[str, tuple[float, float, float]]:
    """Return what camera and radar see: the picture's edges, and where the returns were."""
    fields = {}
    if record.camera is not None and record.camera_pose is not None:
        middle = record.camera.height / 2
        edges = record.camera.bearing(np.array([[record.camera.width, middle], [0.0, middle]]))
        rays = edges @ np.asarray(record.camera_pose.rotation).T
        if (np.linalg.norm(rays[:, :2], axis=1) > _FLATTEST).all():
            right, left = np.arctan2(rays[:, 1], rays[:, 0])
            fields[CAMERA] = (float(right), float(_after(left, right)), reach)
    scans = [unit.returns[:, :3] for unit in record.features if unit.modality == RADAR]
    places = np.concatenate([*scans, np.zeros((0, 3))])
    if len(places) >= _LEAST_RETURNS:
        pose = record.radar_pose or Transform.identity()
        ahead = np.asarray(pose.rotate(places.astype(np.float64)), np.float64)[:, :2]
        right, left = np.quantile(np.arctan2(ahead[:, 1], ahead[:, 0]), (0.01, 0.99))
        far = float(np.quantile(np.linalg.norm(ahead, axis=1), 0.99))
        fields[RADAR] = (float(right), float(left), min(far, FARTHEST))
    return fields


def _after(left: NDArray[np.float64], right: NDArray[np.float64]) -> float:
    """Return the left edge's direction, counted on from the right one."""
    return float(right + (left - right) % (2 * np.pi))


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
    alternative = (
        f'{len(moments)} maps of tracks in front of the sensor, one after the other in time'
    )
    height = 0.6 + rows * (3.0 * float(tall / wide) + 0.35)
    return still_figure(Words(TRACKS, 'From above', caption, alternative), draw, 9.4, height)


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
        axes.plot(rows[:, 1], rows[:, 0], color=GREY, linewidth=2.5, zorder=1)
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
