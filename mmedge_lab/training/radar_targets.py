"""What a radar's networks learn from: scans of flights, and where in their view people are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmedge_lab.training.feature_cache import (
    recorded_truth,
    recording_geometry,
    window_truth,
)
from mmedge_lab.training.picture_set import is_clear
from mmedge_lab.worker_processes import OnShare
from mmedge_ros.core.data_types import RADAR, Unit
from mmedge_ros.encoding.feature_grid import COLUMNS, ROWS, view_directions
from mmedge_ros.geometry.sensor_poses import SensorGeometry
from mmedge_ros.replay.ground_truth import CYCLIST, PERSON, TrueFrame
from mmedge_ros.replay.recording import Recording
from mmedge_ros.sensing import SensingError
from mmedge_ros.sensing.radar.filter import RadarLimits, filter_returns
from mmedge_ros.sensing.radar.point_cloud import decode_points

# Directions are compared where both sensors see the same: at this depth (m) exactly.
_SHOWN_DEPTH = 15.0
# Smaller boxes are taken to be so large (cells), or none would hold the middle of a cell.
_SMALLEST_SIDE = 1.2


class RadarSample(NamedTuple):
    """A scan's plausible returns (N, 5) and its targets in the radar's view.

    ``people`` (30, 40) is 1 where people are, 0 where none are and -1 where it does not count;
    ``log_range`` (30, 40) is ln(m) where people are and their range is known, else NaN.
    """

    returns: NDArray[np.float32]
    people: NDArray[np.int8]
    log_range: NDArray[np.float32]


class CellPixels(NamedTuple):
    """Where the middles of the view's cells lie in the picture: (1200, 2) px, NaN outside.

    ``side`` is what a cell measures in the picture, px.
    """

    pixels: NDArray[np.float64]
    side: float


def radar_samples(
    flights: Sequence[Path],
    step: int,
    on_progress: OnShare | None = None,
) -> Iterator[RadarSample]:
    """Yield every ``step``-th scan of flights with its targets.

    Flights without a calibrated camera are passed over: boxes lie nowhere in space there.

    :raises TrainingError: if a flight has no ground truth
    :raises ReplayError: if one cannot be read
    """
    for done, flight in enumerate(flights):
        with Recording(flight) as recording:
            truth = recorded_truth(recording)
            geometry = recording_geometry(recording)
            units = [unit for unit in recording.units() if unit.modality == RADAR]
            known = window_truth(truth, [unit.stamp_ns for unit in units])
            for unit in units[::step]:
                at = geometry(unit.stamp_ns)
                returns = _returns(unit)
                if at.camera is None or unit.stamp_ns not in known or returns is None:
                    continue
                people, log_range = people_in_view(known.at(unit.stamp_ns), cell_pixels(at))
                yield RadarSample(returns, people, log_range)
        if on_progress:
            on_progress((done + 1) / len(flights))


def cell_pixels(geometry: SensorGeometry) -> CellPixels:
    """Project the cells of a radar's view into the picture; the camera must be calibrated."""
    assert geometry.camera is not None
    points = view_directions().reshape(-1, 3) * _SHOWN_DEPTH
    optical = geometry.camera_pose.inverse().apply(geometry.radar_pose.apply(points))
    pixels, _ = geometry.camera.project(optical)
    grid = pixels.reshape(ROWS, COLUMNS, 2)
    side = float(np.nanmedian(np.abs(np.diff(grid[..., 0], axis=1))))
    return CellPixels(pixels, side)


def people_in_view(
    truth: TrueFrame, cells: CellPixels
) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Return the targets of one scan, see `RadarSample`.

    Where people are one behind the other, the nearest counts.
    """
    people = np.zeros(ROWS * COLUMNS, np.int8)
    log_range = np.full(ROWS * COLUMNS, np.nan, np.float32)
    is_person = np.isin(truth.labels, (PERSON, CYCLIST))
    clear, ranges = is_clear(truth), np.where(np.isfinite(truth.ranges), truth.ranges, np.inf)
    least = _SMALLEST_SIDE * cells.side
    # The ignored first and then from far to near, so that what counts most comes last.
    for place in sorted(np.flatnonzero(is_person), key=lambda k: (clear[k], -ranges[k])):
        box = truth.boxes[place]
        middle, size = (box[:2] + box[2:]) / 2, np.maximum(box[2:] - box[:2], least)
        inside = (np.abs(cells.pixels - middle) < size / 2).all(axis=1)
        people[inside] = 1 if clear[place] else -1
        log_range[inside] = np.nan
        if clear[place] and np.isfinite(ranges[place]):
            log_range[inside] = np.log(max(float(ranges[place]), 0.2))
    return people.reshape(ROWS, COLUMNS), log_range.reshape(ROWS, COLUMNS)


def _returns(unit: Unit) -> NDArray[np.float32] | None:
    try:
        return filter_returns(decode_points(unit.payload), RadarLimits())[0]
    except SensingError:
        return None
