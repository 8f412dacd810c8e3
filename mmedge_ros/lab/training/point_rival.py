"""Compares a network on the radar's returns with those on rasters of them, on the same scans.

Run as `python -m mmedge_ros.lab.training.point_rival SET`; it needs torch and takes a few minutes.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from mmedge_ros.encoding.feature_grid import COLUMNS, ROWS, view_positions
from mmedge_ros.encoding.onnx_session import open_session
from mmedge_ros.encoding.radar_network import inputs_of
from mmedge_ros.encoding.radar_raster import return_values
from mmedge_ros.encoding.tapped_network import TappedNetwork
from mmedge_ros.lab.training import TrainingError
from mmedge_ros.lab.training.camera_export import write_graph
from mmedge_ros.lab.training.detector_training import fastest_precision, prepare_torch
from mmedge_ros.lab.training.flight_pictures import flights_in
from mmedge_ros.lab.training.fusion_settings import LEVELS, FusionSettings
from mmedge_ros.lab.training.networks.export_radar import export_radar_level
from mmedge_ros.lab.training.networks.point_network import POINT_VALUES, PointNetwork
from mmedge_ros.lab.training.networks.radar_network import RadarProbe
from mmedge_ros.lab.training.radar_targets import RadarSample, radar_samples
from mmedge_ros.lab.training.radar_training import (
    LARGEST_GRADIENT,
    LEARNING_RATE,
    SEED,
    WEIGHT_DECAY,
    RadarAccuracy,
    RadarSet,
    judge_radar,
    radar_set,
    read_loss,
    shuffled_batches,
    split,
    train_radar,
)

# Of a denser scan the rest is left out.
MOST_POINTS = 128


@dataclass(frozen=True, eq=False)
class PointSet(RadarSet):
    """Samples with their returns: see `PointNetwork.forward`."""

    points: NDArray[np.float32]
    cells: NDArray[np.int64]


class Rival(NamedTuple):
    """A network: how well it does, its parameters, and ms from returns to grid, one thread."""

    accuracy: RadarAccuracy
    parameters: int
    latency_ms: float


def points_of(returns: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Return points (128, 7) and cells (128,) of a scan's returns (N, 5); see `PointNetwork`."""
    points = np.zeros((MOST_POINTS, POINT_VALUES), np.float32)
    cells = np.full(MOST_POINTS, -1, np.int64)
    known = returns[np.isfinite(returns[:, :3]).all(axis=1)]
    ahead = known[known[:, 0] > 0.05]
    if not len(ahead):
        return points, cells
    places = view_positions(ahead[:, :3])
    inside = ((places >= 0.0) & (places < (ROWS, COLUMNS))).all(axis=1)
    values = return_values(ahead, ahead[:, :3].astype(np.float64), known)
    rows = np.column_stack((2.0 * places / (ROWS, COLUMNS) - 1.0, values.T))[inside]
    row, column = np.floor(places[inside]).astype(np.int64).T
    count = min(len(rows), MOST_POINTS)
    points[:count] = np.nan_to_num(rows[:count])
    cells[:count] = (row * COLUMNS + column)[:count]
    return points, cells


def point_set(samples: Sequence[RadarSample]) -> PointSet:
    """Return samples for both kinds of networks.

    :raises TrainingError: if there are too few
    """
    rasters = radar_set(samples)
    points, cells = zip(*(points_of(sample.returns) for sample in samples), strict=True)
    return PointSet(
        rasters.view,
        rasters.birds_eye,
        rasters.people,
        rasters.log_range,
        np.stack(points),
        np.stack(cells),
    )


def train_points(
    samples: PointSet, settings: FusionSettings
) -> tuple[PointNetwork, RadarAccuracy]:
    """Train as `train_radar` trains the largest network.

    :raises TrainingError: if the loss leaves all bounds
    """
    learned, judged = split(samples)
    torch.manual_seed(SEED)
    network, probe = PointNetwork(), RadarProbe()
    parameters = [*network.parameters(), *probe.parameters()]
    optimizer = torch.optim.AdamW(parameters, LEARNING_RATE, weight_decay=WEIGHT_DECAY)
    batches = list(shuffled_batches(learned, settings.radar_epochs))
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, LEARNING_RATE, max(len(batches), 2))
    for batch in batches:
        optimizer.zero_grad(set_to_none=True)
        loss = read_loss(_grid(network, batch), probe, batch)
        if not bool(torch.isfinite(loss)):
            raise TrainingError('the loss has left all bounds; look at the scans of the flights')
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, LARGEST_GRADIENT)
        optimizer.step()
        schedule.step()
    network.eval()
    return network, judge_radar(partial(_grid, network), probe, judged)


def compare(
    samples: Sequence[RadarSample], settings: FusionSettings, timed: int = 200
) -> dict[str, Rival]:
    """Train and time the networks of all levels and the one on returns.

    :param timed: runs whose median is the latency
    :raises TrainingError: if there are too few samples
    """
    both = point_set(samples)
    scans = [sample.returns for sample in samples]
    network, accuracy = train_points(both, settings)
    found = {'points': Rival(accuracy, _size(network), _points_ms(network, scans[:timed]))}
    for level, trained in train_radar(both, settings).items():
        with TemporaryDirectory() as folder:
            paths, _ = export_radar_level(trained.network, Path(folder), level, scans[:2])
            run = partial(_run_level, TappedNetwork(paths))
            took = _milliseconds(run, scans[:timed])
        found[level] = Rival(trained.accuracy, _size(trained.network), took)
    return {name: found[name] for name in ('points', *LEVELS)}


def table(found: dict[str, Rival]) -> str:
    """Return the comparison as Markdown."""
    lines = [
        '| network | precision | recall | F1 | range error, ln | parameters | ms |',
        '| --- | ---: | ---: | ---: | ---: | ---: | ---: |',
    ]
    for name, rival in found.items():
        precision, recall, error = rival.accuracy
        lines.append(
            f'| {name} | {precision:.3f} | {recall:.3f} | '
            f'{2.0 * precision * recall / (precision + recall):.3f} | {error:.3f} | '
            f'{rival.parameters} | {rival.latency_ms:.2f} |'
        )
    return '\n'.join(lines)


def _grid(network: PointNetwork, batch: PointSet) -> Any:
    return network(torch.from_numpy(batch.points), torch.from_numpy(batch.cells))


def _points_ms(network: PointNetwork, scans: Sequence[NDArray[np.float32]]) -> float:
    with TemporaryDirectory() as folder:
        path = Path(folder) / 'points.onnx'
        points, cells = points_of(np.zeros((0, 5), np.float32))
        inputs = {
            'points': torch.from_numpy(points[None]),
            'cells': torch.from_numpy(cells[None]),
        }
        write_graph(network, inputs, ['grid'], path)
        session = open_session(path, 1)

        def run(returns: NDArray[np.float32]) -> None:
            points, cells = points_of(returns)
            session.run(None, {'points': points[None], 'cells': cells[None]})

        return _milliseconds(run, scans)


def _milliseconds(
    run: Callable[[NDArray[np.float32]], Any], scans: Sequence[NDArray[np.float32]]
) -> float:
    """Return the median of processor time from returns to grid."""
    took = []
    for returns in scans:
        begun = time.thread_time()
        run(returns)
        took.append(1e3 * (time.thread_time() - begun))
    return statistics.median(took)


def _run_level(network: TappedNetwork, returns: NDArray[np.float32]) -> None:
    network.run(inputs_of(returns))


def _size(network: Any) -> int:
    return sum(parameter.numel() for parameter in network.parameters())


def main() -> None:
    """Read a set, train, and print the comparison."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('flights', type=Path, metavar='SET')
    parser.add_argument('--threads', type=int, default=1)
    asked = parser.parse_args()
    with TemporaryDirectory() as folder:
        prepare_torch(Path(folder), asked.threads)
        settings = replace(FusionSettings(), precision=fastest_precision())
        samples = list(radar_samples(flights_in(asked.flights), settings.radar_step))
        sys.stdout.write(f'{len(samples)} scans\n{table(compare(samples, settings))}\n')


if __name__ == '__main__':
    main()
