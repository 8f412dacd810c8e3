"""Trains the radar's networks to locate people in its view by the truth, and exports them.

The largest level learns first, together with the probe that reads its grid. The others learn to
be read by the same probe and to put out the same grid: levels may then be mixed in one window.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn import functional

from mmedge_lab.training import Report, TrainingError, part_of
from mmedge_lab.training.epoch_training import (
    BFLOAT16,
    EpochTraining,
    Task,
    TrainingParameters,
)
from mmedge_lab.training.feature_cache import (
    recorded_truth,
    recording_geometry,
    window_truth,
)
from mmedge_lab.training.fusion_settings import LEVELS, FusionSettings
from mmedge_lab.training.network_export import greatest_difference, write_stages
from mmedge_lab.training.networks.radar_network import RadarProbe, RadarUnitNetwork
from mmedge_lab.training.picture_set import is_clear
from mmedge_lab.worker_processes import OnShare
from mmedge_ros.core.data_types import RADAR, Unit
from mmedge_ros.encoding.feature_grid import COLUMNS, ROWS, view_directions
from mmedge_ros.encoding.radar_network import inputs_of
from mmedge_ros.encoding.tapped_network import TappedNetwork
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
_BATCH = 32
_LEARNING_RATE, _WEIGHT_DECAY = 2e-3, 1e-3
_RANGE_GAIN, _LIKENESS_GAIN = 0.5, 1.0
_WARM_UP, _LARGEST_GRADIENT = 50, 5.0
_SEED = 20260  # features do not depend on a training's seed, so that trainings can share them
# Every so many-th sample is held out for the evaluation.
_HELD_OUT = 10
# Weights are stored as float16, of which that is the rounding of many layers.
_LARGEST_DIFFERENCE = 0.02


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


class RadarAccuracy(NamedTuple):
    """Of held-out samples: share of cells with people among those marked, and the reverse.

    ``range_error`` is the mean difference of ln(m) where people are.
    """

    precision: float
    recall: float
    range_error: float


class RadarSet(NamedTuple):
    """Samples as arrays: both rasters, float16, and the targets of `RadarSample`."""

    view: NDArray[np.float16]
    birds_eye: NDArray[np.float16]
    people: NDArray[np.int8]
    log_range: NDArray[np.float32]

    def rows(self, chosen: NDArray[np.intp]) -> RadarSet:
        """Return some of the samples."""
        rasters = self.view[chosen], self.birds_eye[chosen]
        return RadarSet(*rasters, self.people[chosen], self.log_range[chosen])


class TrainedRadar(NamedTuple):
    """A network in evaluation mode and its accuracy."""

    network: RadarUnitNetwork
    accuracy: RadarAccuracy


def radar_set(samples: Sequence[RadarSample]) -> RadarSet:
    """Rasterise samples.

    :raises TrainingError: if there are too few
    """
    if len(samples) < 2:
        raise TrainingError(
            'the flights hold not two radar scans whose truth is known; fusion needs both sensors'
        )
    rasters = [tuple(r[0] for r in inputs_of(s.returns).values()) for s in samples]
    view, birds_eye = (
        np.stack(column).astype(np.float16) for column in zip(*rasters, strict=True)
    )
    return RadarSet(
        view,
        birds_eye,
        np.stack([s.people for s in samples]),
        np.stack([s.log_range for s in samples]),
    )


def train_radar(
    samples: RadarSet, settings: FusionSettings, report: Report
) -> dict[str, TrainedRadar]:
    """Train the networks of all levels.

    :raises TrainingError: if the loss diverges
    """
    places = np.arange(len(samples.people))
    held = places % _HELD_OUT == _HELD_OUT - 1
    learned, unseen = samples.rows(places[~held]), samples.rows(places[held])
    steps = -(-len(learned.people) // _BATCH)
    torch.manual_seed(_SEED)
    probe = RadarProbe()
    trained: dict[str, TrainedRadar] = {}
    best: RadarUnitNetwork | None = None
    for number, level in enumerate(reversed(LEVELS)):
        network = RadarUnitNetwork(level)
        # The probe learns with the first network alone.
        learning = nn.ModuleList((network, probe) if best is None else (network,))

        def loss(batch: RadarSet, of: RadarUnitNetwork = network, like: Any = best) -> Any:
            with torch.autocast('cpu', torch.bfloat16, enabled=settings.precision == BFLOAT16):
                return _loss(of, probe, like, batch)

        training = EpochTraining(
            Task(learning, partial(_shuffled_batches, learned), loss),
            TrainingParameters(
                learning_rate=_LEARNING_RATE,
                weight_decay=_WEIGHT_DECAY,
                warm_up=_WARM_UP,
                largest_gradient=_LARGEST_GRADIENT,
                averaged=1,
                epochs=settings.radar_epochs,
                steps=steps,
            ),
        )
        training.run(part_of(report, number / len(LEVELS), (number + 1) / len(LEVELS)))
        network.eval()
        best = best or network
        trained[level] = TrainedRadar(network, _accuracy(network, probe, unseen))
    return {level: trained[level] for level in LEVELS}


def _loss(
    network: RadarUnitNetwork, probe: RadarProbe, best: RadarUnitNetwork | None, batch: RadarSet
) -> Any:
    grid = _grid(network, batch).float()
    logits, ranges = (read.float() for read in probe(grid))
    people = torch.from_numpy(batch.people)[:, None]
    counts, present = (people >= 0).float(), (people > 0).float()
    seen = functional.binary_cross_entropy_with_logits(logits, present, counts, reduction='sum')
    truth = torch.from_numpy(batch.log_range)[:, None]
    known = torch.isfinite(truth)
    apart = (ranges - torch.where(known, truth, 0.0)).abs() * known
    loss = (seen + _RANGE_GAIN * apart.sum()) / present.sum().clamp(min=1.0)
    if best is not None:
        with torch.no_grad():
            wanted = _grid(best, batch).float()
        loss = loss + _LIKENESS_GAIN * functional.mse_loss(grid, wanted) / wanted.var().clamp(
            min=1e-6
        )
    return loss


def _accuracy(network: RadarUnitNetwork, probe: RadarProbe, samples: RadarSet) -> RadarAccuracy:
    """Return how well the probe reads the grids that a network makes of samples."""
    marked = right = present = 0
    errors = [np.zeros(0, np.float32)]
    count = len(samples.people)
    for first in range(0, count, _BATCH):
        batch = samples.rows(np.arange(first, min(first + _BATCH, count)))
        with torch.no_grad():
            logits, ranges = (read[:, 0].numpy() for read in probe(_grid(network, batch)))
        positive = (logits > 0.0) & (batch.people >= 0)
        true = batch.people > 0
        marked, present = marked + int(positive.sum()), present + int(true.sum())
        right += int((positive & true).sum())
        gaps = np.abs(ranges - batch.log_range)
        errors.append(gaps[np.isfinite(gaps)])
    gaps = np.concatenate(errors)
    return RadarAccuracy(
        right / marked if marked else float('nan'),
        right / present if present else float('nan'),
        float(gaps.mean()) if len(gaps) else float('nan'),
    )


def _shuffled_batches(samples: RadarSet, epoch: int) -> Iterator[RadarSet]:
    """Yield all samples in another order in each epoch, the same for each network."""
    order = np.random.default_rng((_SEED, epoch)).permutation(len(samples.people))
    for first in range(0, len(order), _BATCH):
        yield samples.rows(order[first : first + _BATCH])


def _grid(network: RadarUnitNetwork, batch: RadarSet) -> Any:
    rasters = batch.view, batch.birds_eye
    return network(*(torch.from_numpy(raster.astype(np.float32)) for raster in rasters))


def export_radar_level(
    network: RadarUnitNetwork, folder: Path, level: str, scans: Sequence[NDArray[np.float32]]
) -> tuple[list[Path], float]:
    """Write ``radar_<level>_1.onnx`` and so on, in the order in which they run.

    :param network: trained; it stays as it is
    :param scans: returns (N, 5) of some scans, to check the files on
    :return: the files, and the greatest difference as a share of the greatest value
    :raises TrainingError: if the files do not put out what the network does
    :raises OSError: if a file cannot be written
    """
    network = copy.deepcopy(network).float().cpu().eval()
    empty = _tensors(np.zeros((0, 5), np.float32))
    paths = write_stages(network.stages, empty, folder / f'radar_{level}')
    tapped, worst = TappedNetwork(paths), 0.0
    for returns in scans:
        with torch.no_grad():
            wanted = network(*_tensors(returns).values()).numpy()
        made = tapped.run(inputs_of(returns))['grid']
        worst = max(worst, greatest_difference(wanted, made, _LARGEST_DIFFERENCE, 'radar network'))
    return paths, worst


def _tensors(returns: NDArray[np.float32]) -> dict[str, Any]:
    rasters = inputs_of(returns).items()
    return {name: torch.from_numpy(np.ascontiguousarray(raster)) for name, raster in rasters}
