"""A map of what was there and what was tracked."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure

from mmedge_ros.data_types import FloatArray
from mmedge_ros.lab.evaluation.track_figures import draw_sensor, frame_around, sensor_way
from mmedge_ros.lab.evaluation.truth_alignment import Alignment
from mmedge_ros.lab.evaluation.truth_matching import counted_people
from mmedge_ros.lab.reporting.figure_style import BLUE, INK, MUTED, VERMILION, FigureFile, render
from mmedge_ros.records.ground_truth import PERSON
from mmedge_ros.records.run_record import RunRecord

TRUTH = 'truth.png'
_MOST_DECISIONS = 600
_FARTHEST = 1000.0

# Way of an object or a track: places (K, 2) as y and x, NaN where a line is broken.
Ways = dict[tuple[int, str], list[FloatArray]]


def draw_truth(record: RunRecord) -> FigureFile | None:
    """Draw the ways of everything true and of the tracks from above; None without any."""
    true, tracked, seen = _ways(record)
    if not true or not tracked:
        return None
    way = sensor_way(record)
    low, high = frame_around(np.concatenate([*seen, *_places(tracked)]), way)

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        axes.set(aspect='equal', xlim=(high[0], low[0]), ylim=(low[1], high[1]))
        for (_, label), places in true.items():
            line = np.array(places)
            is_person = label == PERSON
            axes.plot(
                line[:, 0],
                line[:, 1],
                color=INK if is_person else MUTED,
                linewidth=3.2 if is_person else 1.6,
                linestyle='-' if is_person else '--',
                alpha=0.35,
                solid_capstyle='round',
            )
        for (_, label), places in tracked.items():
            line = np.array(places)
            colour = BLUE if label == PERSON else VERMILION
            axes.plot(line[:, 0], line[:, 1], color=colour, linewidth=1.2)
        draw_sensor(axes, way)
        axes.plot([], [], color=INK, linewidth=3.2, alpha=0.35, label='true person')
        axes.plot([], [], '--', color=MUTED, linewidth=1.6, alpha=0.6, label='other')
        axes.plot([], [], color=BLUE, linewidth=1.2, label='track')
        axes.plot([], [], color=VERMILION, linewidth=1.2, label='radar only')
        axes.legend(loc='best', fontsize=7.5, frameon=True, framealpha=0.8, edgecolor='none')
        axes.set_xlabel('y, to the left [m]')
        axes.set_ylabel('x, ahead [m]')
        axes.set_title('Truth and tracks from above')

    return FigureFile(
        TRUTH,
        render(draw, 4.5, 4.5),
        'Where people were, and where tracks were',
        'Broad grey lines are the true ways of people, dashed ones those of cyclists, cars and '
        'dogs; thin blue lines are the tracks of people, thin red ones tracks of the radar alone. '
        'The triangle is the drone at the end of its dotted way. Everything is drawn in the '
        'frame of the tracks, into which the truth is carried by the pose of the drone.',
        f'Map of {len(true)} true ways and {len(tracked)} tracks',
    )


def _ways(record: RunRecord) -> tuple[Ways, Ways, list[FloatArray]]:
    """Return true ways, ways of tracks, and the places (K, 2) of people when visible."""
    true: Ways = {}
    tracked: Ways = {}
    seen: list[FloatArray] = []
    truth = record.truth
    if truth is None:
        return true, tracked, seen
    alignment = Alignment(record, truth)
    for decision in record.decisions[:: max(len(record.decisions) // _MOST_DECISIONS, 1)]:
        frame = truth.frame_at(decision.state_ns)
        if frame is None or decision.frame_id != record.frame_id:
            continue
        aligned = alignment.carry(frame, decision.state_ns, decision.frame_id)
        if aligned is None:
            continue
        places = aligned.positions[:, 1::-1]
        seen.append(places[counted_people(frame)])
        for number, label, place in zip(frame.ids, frame.labels, places, strict=True):
            true.setdefault((int(number), str(label)), []).append(place)
        for track in decision.tracks:
            place = np.asarray(track.position, np.float64)[1::-1]
            if (np.abs(place) < _FARTHEST).all():
                tracked.setdefault((track.id, _kind(track.label)), []).append(place)
    return true, tracked, seen


def _kind(label: str) -> str:
    return PERSON if label == PERSON else ''


def _places(ways: Mapping[tuple[int, str], list[FloatArray]]) -> list[FloatArray]:
    return [np.array(places) for places in ways.values()]
