"""Temporal aggregation, in training and as it flies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mmedge_lab.training.networks.aggregator import Aggregator
from mmedge_lab.training.networks.export import export_fusion
from mmedge_lab.training.networks.fusion_network import FusionBatch, FusionNetwork
from mmedge_ros.core.data_types import CAMERA, NS_PER_S, RADAR, UnitKey
from mmedge_ros.encoding.feature_grid import COLUMNS, ROWS
from mmedge_ros.windows.fusion_runtime import FusionNetworkRuntime
from mmedge_ros.windows.window_bank import WindowBank

MS = 1_000_000
CHANNELS = {CAMERA: 64, RADAR: 20}
LARGEST_DIFFERENCE = 1e-5


@pytest.fixture(autouse=True, scope='module')
def one_thread() -> Iterator[None]:
    """Small tensors gain nothing from threads, and these wait for each other on a full machine."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def grids(seed: int, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, ROWS, COLUMNS, generator=torch.Generator().manual_seed(seed))


def aggregator(channels: int = 4, seed: int = 0, **switches: bool) -> Aggregator:
    torch.manual_seed(seed)
    return Aggregator(channels, **switches).eval()


def pooled(one: Aggregator, units: torch.Tensor, seconds: Sequence[float]) -> torch.Tensor:
    """Return what one window's units (N, C, H, V) are pooled to."""
    with torch.no_grad():
        aggregate = one(units[None], torch.tensor([list(seconds)]), torch.ones(1, len(seconds)))
    return aggregate.pooled[0]


def difference(one: torch.Tensor, two: torch.Tensor) -> float:
    return float((one - two).abs().max())


def at_rate(rate: float, count: int) -> list[float]:
    return [(count - 1 - i) / rate for i in range(count)]


# ------------------------------------------------------------------------------ batches


@settings(deadline=None, max_examples=8)
@given(st.integers(0, 2**31), st.integers(1, 3), st.integers(0, 9), st.booleans())
def test_windows_of_a_batch_know_nothing_of_each_other(
    seed: int, windows: int, units: int, whole: bool
) -> None:
    random = np.random.default_rng(seed)
    one = aggregator(3, seed % 7, aggregation=whole)
    values = grids(seed, windows, units, 3)
    seconds = torch.from_numpy(random.uniform(0.0, 0.6, (windows, units))).float()
    valid = torch.from_numpy(random.random((windows, units)) < 0.7)
    with torch.no_grad():
        batch = one(values, seconds, valid.float())
        for w in range(windows):
            is_there = valid[w].nonzero().flatten()
            alone = one(
                values[w : w + 1, is_there],
                seconds[w : w + 1, is_there],
                torch.ones(1, len(is_there)),
            )
            for result, wanted in zip(batch, alone, strict=True):
                assert difference(result[w], wanted[0]) < LARGEST_DIFFERENCE


# ------------------------------------------------------------------------------ what it sees


@pytest.mark.parametrize('differences', [True, False])
def test_differences_do_not_telescope(differences: bool) -> None:
    # Nothing but differences is left that could see an order: no shift, and equal weights.
    one = aggregator(shift=False, differences=differences)
    with torch.no_grad():
        one.decay.fill_(-30.0)
    units, seconds = grids(0, 8, 4), at_rate(20, 8)
    shuffled = units[[0, 3, 5, 1, 6, 2, 4, 7]]
    change = difference(pooled(one, units, seconds), pooled(one, shuffled, seconds))
    assert change > 1e-2 if differences else change < 1e-6


# ------------------------------------------------------------------------------ the head


# ------------------------------------------------------------------------------ the rival


# ------------------------------------------------------------------------------ in flight


def fusion(seed: int = 0, *without: str) -> FusionNetwork:
    """Return a network whose last layer is not zero."""
    torch.manual_seed(seed)
    network = FusionNetwork(without).eval()
    with torch.no_grad():
        torch.nn.init.normal_(network.head.last.weight, std=0.05)
    return network


@pytest.fixture(scope='module')
def network() -> FusionNetwork:
    made = fusion(1)
    made.set_statistics(
        (torch.linspace(-1, 1, 64), torch.linspace(0.5, 2, 64)), (torch.zeros(20), torch.ones(20))
    )
    return made


@pytest.fixture(scope='module')
def runtime(
    network: FusionNetwork, tmp_path_factory: pytest.TempPathFactory
) -> FusionNetworkRuntime:
    folder = tmp_path_factory.mktemp('fusion')
    export_fusion(network, folder, half=False)
    return FusionNetworkRuntime.from_folder(folder)


def window_in_torch(network: FusionNetwork, end_ns: int, units: dict) -> torch.Tensor:
    """Return the maps of one window in one batch; units are (stamp, grid) in any order."""
    parts = []
    for modality in (CAMERA, RADAR):
        came = sorted(units[modality], key=lambda unit: unit[0])
        values = [torch.from_numpy(grid.astype(np.float32)) for _, grid in came]
        empty = torch.zeros(0, CHANNELS[modality], ROWS, COLUMNS)
        seconds = torch.tensor([(end_ns - stamp_ns) / NS_PER_S for stamp_ns, _ in came])
        stacked = torch.stack(values) if values else empty
        parts += [stacked[None], seconds.reshape(1, -1), torch.ones(1, len(came))]
    with torch.no_grad():
        return network(FusionBatch(*parts))[0]


@settings(
    deadline=None, max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    seed=st.integers(0, 2**31),
    rates=st.tuples(st.sampled_from([10, 20, 30]), st.sampled_from([5, 10, 20])),
    lost=st.floats(0.0, 0.8),
    disorder=st.floats(0.0, 0.12),
)
def test_what_streams_in_flight_equals_a_batch(
    network: FusionNetwork,
    runtime: FusionNetworkRuntime,
    seed: int,
    rates: tuple[int, int],
    lost: float,
    disorder: float,
) -> None:
    random, rng = Random(seed), np.random.default_rng(seed)
    arrivals = []
    for modality, rate in zip((CAMERA, RADAR), rates, strict=True):
        for i in range(int(0.7 * rate)):
            stamp = int((i + random.uniform(-0.2, 0.2)) / rate * 1e3) * MS + 100 * MS
            available = stamp + random.randint(5, 40) * MS
            if random.random() >= lost:
                # Levels differ in how long they take, so that units overtake each other.
                arrives = available + int(random.uniform(0.0, disorder) * 1e3) * MS
                shape = (CHANNELS[modality], ROWS, COLUMNS)
                grid = rng.normal(0, 2, shape).astype(np.float16)
                arrivals.append((arrives, modality, grid, stamp, available))
    arrivals.sort(key=lambda unit: unit[0])
    bank = WindowBank(runtime.aggregators)
    ends_ns = range(200 * MS, 1000 * MS, 200 * MS)
    for end_ns in ends_ns:
        members: dict = {CAMERA: [], RADAR: []}
        for number, (arrives, modality, grid, stamp_ns, available_ns) in enumerate(arrivals):
            if end_ns - 200 * MS < arrives <= end_ns:
                contain_it = [e for e in ends_ns if e - 500 * MS < available_ns <= e]
                bank.add(UnitKey(modality, number, stamp_ns), grid, contain_it)
                bank.work_ahead()
            if arrives <= end_ns and end_ns - 500 * MS < available_ns <= end_ns:
                members[modality].append((stamp_ns, grid))
        maps = runtime.fuse(bank.close(end_ns))
        wanted = window_in_torch(network, end_ns, members)
        assert np.abs(maps - wanted.numpy()).max() < LARGEST_DIFFERENCE


@pytest.mark.parametrize('switch', ['shift', 'differences', 'aggregation'])
def test_ablated_networks_are_exported_too(switch: str, tmp_path: Path) -> None:
    check = export_fusion(fusion(0, switch), tmp_path, half=False)
    assert check.maps < LARGEST_DIFFERENCE
