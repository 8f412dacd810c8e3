"""Writes a radar level as ONNX stages, and checks them against the network they come from."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from mmedge_ros.encoding.radar_network import inputs_of
from mmedge_ros.encoding.tapped_network import TappedNetwork
from mmedge_ros.lab.training import TrainingError
from mmedge_ros.lab.training.camera_export import write_graph
from mmedge_ros.lab.training.networks.radar_network import RadarNetwork

# Weights are stored as float16, of which that is the rounding of many layers.
_LARGEST_DIFFERENCE = 0.02


def export_radar_level(
    network: RadarNetwork,
    folder: Path,
    level: str,
    scans: Sequence[NDArray[np.float32]],
) -> tuple[list[Path], float]:
    """Write ``radar_<level>_1.onnx`` and so on, in the order in which they run.

    :param network: trained; it stays as it is
    :param scans: returns (N, 5) of some scans, to check the files on
    :return: the files, and the greatest difference as a share of the greatest value
    :raises TrainingError: if the files do not put out what the network does
    :raises OSError: if a file cannot be written
    """
    network = copy.deepcopy(network).float().cpu().eval()
    rasters = inputs_of(np.zeros((0, 5), np.float32))
    tensors = {name: torch.from_numpy(np.ascontiguousarray(r)) for name, r in rasters.items()}
    paths = []
    for number, stage in enumerate(network.stages, start=1):
        path = folder / f'radar_{level}_{number}.onnx'
        inputs = {name: tensors[name] for name in stage.reads}
        (tensors[stage.writes],) = write_graph(stage, inputs, [stage.writes], path)
        paths.append(path)
    return paths, check_radar_stages(network, paths, scans)


def check_radar_stages(
    network: RadarNetwork, paths: Sequence[Path], scans: Sequence[NDArray[np.float32]]
) -> float:
    """Return the greatest difference between torch and the files, as a share of the values.

    :raises TrainingError: if it is more than rounding explains
    """
    tapped = TappedNetwork(paths)
    worst = 0.0
    for returns in scans:
        rasters = inputs_of(returns)
        with torch.no_grad():
            parts = (torch.from_numpy(np.ascontiguousarray(r)) for r in rasters.values())
            wanted = network(*parts).numpy()
        difference = np.abs(wanted - tapped.run(rasters)['grid']).max()
        # np.maximum keeps a NaN, which the comparison below then refuses.
        worst = float(np.maximum(worst, difference / max(float(np.abs(wanted).max()), 1.0)))
    if not worst <= _LARGEST_DIFFERENCE:
        raise TrainingError(
            f'the exported radar network differs from the trained one by {worst:.1%}; it is not '
            'used. Export again with the pinned versions of torch and onnx'
        )
    return worst
