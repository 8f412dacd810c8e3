"""The networks of radar levels in torch, and their export."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from mmedge_lab.training.networks.radar_network import RadarProbe, RadarUnitNetwork
from mmedge_lab.training.radar_training import export_radar_level
from mmedge_ros.encoding.radar_network import RadarNetwork as RadarLevel
from mmedge_ros.encoding.radar_network import inputs_of


def scan(seed: int, count: int = 20) -> np.ndarray:
    rng = np.random.default_rng(seed)
    x = rng.uniform(2.0, 40.0, count)
    sides = [x * rng.uniform(-0.7, 0.7, count) for _ in range(2)]
    values = rng.uniform(-3.0, 3.0, count), rng.uniform(10.0, 30.0, count)
    return np.column_stack((x, *sides, *values)).astype(np.float32)


def lively(level: str, seed: int = 0) -> RadarUnitNetwork:
    torch.manual_seed(seed)
    network = RadarUnitNetwork(level)
    for module in network.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            torch.nn.init.uniform_(module.weight, 0.2, 1.0)
            module.running_mean.normal_(0.0, 0.1)
    return network.eval()


def rasters(*scans: np.ndarray) -> tuple[torch.Tensor, torch.Tensor]:
    parts = [inputs_of(returns) for returns in scans]
    return tuple(
        torch.from_numpy(np.concatenate([part[name] for part in parts]))
        for name in ('view', 'birds_eye')
    )


def test_a_network_learns_where_someone_is() -> None:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    network, probe = RadarUnitNetwork('small').train(), RadarProbe()
    weights = [*network.parameters(), *probe.parameters()]
    optimizer = torch.optim.Adam(weights, 1e-2)
    inputs = rasters(scan(0), scan(1))
    target = (inputs[0][:, 5:] > 0.5).float()  # cells with returns that move
    losses = []
    for _ in range(6):
        logits, _ = probe(network(*inputs))
        loss = torch.nn.functional.binary_cross_entropy_with_logits(logits, target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.7 * losses[0]


def test_an_exported_level_runs_in_flight_as_in_training(tmp_path: Path) -> None:
    network = lively('small').train()
    paths, difference = export_radar_level(network, tmp_path, 'small', [scan(0), scan(0, 0)])
    assert [path.name for path in paths] == [f'radar_small_{n}.onnx' for n in (1, 2, 3, 4)]
    assert difference < 0.02
    assert network.training
    grid, _ = RadarLevel(paths).encode(scan(3))
    with torch.no_grad():
        wanted = network.eval()(*rasters(scan(3)))[0].numpy()
    np.testing.assert_allclose(grid, wanted, atol=0.02 * max(1.0, np.abs(wanted).max()))
