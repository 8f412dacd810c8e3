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

from mmedge_lab.training import TrainingError
from mmedge_lab.training.networks.aggregator import Aggregator, NetworkAggregate
from mmedge_lab.training.networks.export import check_fusion_export, export_fusion
from mmedge_lab.training.networks.fusion_network import (
    FusionBatch,
    FusionNetwork,
    FusionNetworkSettings,
    nothing_seen,
)
from mmedge_lab.training.networks.whole_window_encoder import WholeWindowEncoder
from mmedge_ros.core.data_types import CAMERA, NS_PER_S, RADAR, UnitKey
from mmedge_ros.encoding.feature_grid import COLUMNS, ROWS
from mmedge_ros.encoding.feature_grid import SEMANTIC_CHANNELS as SEMANTICS
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


def test_gradients_reach_every_weight() -> None:
    one = aggregator()
    aggregate = one(grids(0, 2, 6, 4), torch.tensor([at_rate(20, 6)] * 2), torch.ones(2, 6))
    (aggregate.pooled * grids(1, 2, 32)).sum().backward()
    assert all(p.grad is not None and bool(p.grad.any()) for p in one.parameters())


# ------------------------------------------------------------------------------ what it sees


def test_the_order_of_inner_units_matters() -> None:
    one = aggregator()
    units, seconds = grids(0, 8, 4), at_rate(20, 8)
    shuffled = units[[0, 3, 5, 1, 6, 2, 4, 7]]
    assert difference(pooled(one, units, seconds), pooled(one, shuffled, seconds)) > 1e-2


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


def alone(one: Aggregator, units: torch.Tensor, seconds: Sequence[float]) -> torch.Tensor:
    """Return the weighted mean of units that know nothing of each other."""
    decay = torch.nn.functional.softplus(one.decay.detach())
    weights = [torch.exp(-decay * s) for s in seconds]
    parts = [pooled(one, unit[None], [s]) for unit, s in zip(units, seconds, strict=True)]
    total = sum(w[:, None, None] * part for w, part in zip(weights, parts, strict=True))
    return total / sum(weights)[:, None, None]


def test_without_shift_units_know_nothing_of_their_neighbours() -> None:
    one = aggregator(shift=False, differences=False)
    units, seconds = grids(0, 4, 4), at_rate(30, 4)
    assert difference(pooled(one, units, seconds), alone(one, units, seconds)) < LARGEST_DIFFERENCE


def test_without_aggregation_only_the_newest_unit_counts() -> None:
    one = aggregator(aggregation=False)
    units = grids(0, 5, 4)
    result = pooled(one, units, at_rate(20, 5))
    assert difference(result, pooled(one, units[4:], [0.0])) == 0.0
    assert difference(pooled(aggregator(), units, at_rate(20, 5)), result) > 1e-2


def test_older_units_weigh_less() -> None:
    one = aggregator(shift=False, differences=False)
    units = torch.stack([grids(0, 4), grids(1, 4)])
    near, far = (pooled(one, units, [before, 0.0]) for before in (0.1, 2.0))
    newest = pooled(one, units[1:], [0.0])
    assert float((far - newest).abs().mean()) < float((near - newest).abs().mean())


def test_standardising_equals_standardised_grids() -> None:
    one = aggregator()
    units, mean, deviation = grids(0, 5, 4), torch.randn(4), torch.tensor([2.0, 0.5, 1.0, 0.0])
    plain = pooled(
        one,
        (units - mean[:, None, None]) / torch.tensor([2.0, 0.5, 1.0, 1.0])[:, None, None],
        at_rate(20, 5),
    )
    one.standardise.set_statistics(mean, deviation)
    assert difference(pooled(one, units, at_rate(20, 5)), plain) < LARGEST_DIFFERENCE


# ------------------------------------------------------------------------------ the head


def fusion(seed: int = 0, **switches: bool) -> FusionNetwork:
    """Return a network whose last layer is not zero."""
    torch.manual_seed(seed)
    network = FusionNetwork(FusionNetworkSettings(**switches)).eval()
    with torch.no_grad():
        torch.nn.init.normal_(network.head.last.weight, std=0.05)
    return network


def batch_of(seed: int, camera: int, radar: int, windows: int = 2) -> FusionBatch:
    parts = []
    for channels, units in ((CHANNELS[CAMERA], camera), (CHANNELS[RADAR], radar)):
        seconds = torch.tensor([at_rate(20, units)] * windows).reshape(windows, units)
        parts += [grids(seed, windows, units, channels), seconds, torch.ones(windows, units)]
    return FusionBatch(*parts)


def test_an_untrained_head_says_what_the_detector_says() -> None:
    batch = batch_of(0, 4, 3)
    with torch.no_grad():
        maps = FusionNetwork().eval()(batch)
    assert maps.shape == (2, 54, 30, 40)
    assert torch.equal(maps[:, :SEMANTICS], batch.camera[:, -1, :SEMANTICS])
    np.testing.assert_allclose(maps[:, SEMANTICS:].exp(), 15.0, rtol=1e-5)


def test_without_a_camera_unit_there_is_nothing_but_what_was_learned() -> None:
    with torch.no_grad():
        maps = FusionNetwork().eval()(batch_of(0, 0, 3))
    expected = nothing_seen()[:, None, None].expand(-1, 30, 40)
    assert torch.equal(maps[0, :SEMANTICS], expected)
    assert sorted(set(nothing_seen().tolist())) == [-10.0, 0.0]


def test_a_missing_modality_is_masked_whatever_its_tensors_hold() -> None:
    head = fusion().head
    absent = [
        NetworkAggregate(grids(s, 1, 32), grids(s, 1, 20), torch.zeros(1, 3)) for s in (1, 2)
    ]
    camera = NetworkAggregate(grids(3, 1, 32), grids(4, 1, 64), torch.tensor([[1.0, 0.1, 1.0]]))
    with torch.no_grad():
        assert torch.equal(head(camera, absent[0]), head(camera, absent[1]))


# ------------------------------------------------------------------------------ the rival


def test_the_whole_window_encoder_gives_what_aggregators_give() -> None:
    torch.manual_seed(0)
    rival = WholeWindowEncoder(4)
    units, seconds, valid = grids(0, 2, 5, 4), torch.tensor([at_rate(20, 5)] * 2), torch.ones(2, 5)
    valid[1] = torch.tensor([1.0, 0.0, 1.0, 0.0, 0.0])
    with torch.no_grad():
        result, wanted = rival(units, seconds, valid), aggregator()(units, seconds, valid)
        empty = rival(units[:, :0], seconds[:, :0], valid[:, :0])
    assert [part.shape for part in result] == [part.shape for part in wanted]
    assert torch.equal(result.newest, wanted.newest)
    np.testing.assert_allclose(result.facts, wanted.facts, atol=1e-6)
    assert not empty.facts.any()
    assert not empty.newest.any()


def test_the_whole_window_encoder_sees_all_units_in_their_order() -> None:
    torch.manual_seed(0)
    rival = WholeWindowEncoder(4)
    units, seconds = grids(0, 10, 4), at_rate(20, 10)
    shuffled = units[[0, 3, 5, 1, 6, 2, 4, 8, 7, 9]]
    result = [
        pooled(rival, order, seconds)
        for order in (units, shuffled, torch.cat((units[:1] + 1, units[1:])))
    ]
    assert difference(result[0], result[1]) > 1e-3
    assert difference(result[0], result[2]) > 1e-4


def test_a_network_of_whole_windows_trains_and_is_not_exported(tmp_path: Path) -> None:
    network = FusionNetwork(FusionNetworkSettings(whole_window=True))
    network(batch_of(0, 3, 2)).square().mean().backward()
    with pytest.raises(TrainingError, match='whole_window cannot be exported'):
        export_fusion(network, tmp_path)


# ------------------------------------------------------------------------------ in flight


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
    deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    seed=st.integers(0, 2**31),
    gaps_ms=st.lists(st.sampled_from([0, 20, 33, 50, 67, 100, 120, 150, 250]), max_size=14),
    end_ns=st.integers(0, 10**10),
)
def test_flight_chooses_neighbours_as_training_does(
    network: FusionNetwork,
    runtime: FusionNetworkRuntime,
    seed: int,
    gaps_ms: list[int],
    end_ns: int,
) -> None:
    """Steps of round numbers of ms meet every tolerance, and lie halfway between lags."""
    stamps = [end_ns - sum(gaps_ms[i:]) * MS for i in range(len(gaps_ms))]
    units = grids(seed, len(stamps), CHANNELS[RADAR])
    radar = runtime.aggregators[RADAR]
    state = radar.begin(end_ns)
    for values, stamp_ns in zip(units.numpy(), stamps, strict=True):
        state = radar.step(state, radar.unit(values), stamp_ns)
    seconds = torch.tensor([(end_ns - stamp_ns) / NS_PER_S for stamp_ns in stamps])
    with torch.no_grad():
        wanted = network.radar(units[None], seconds[None], torch.ones(1, len(stamps)))
    result = radar.finish(state)
    assert np.abs(result.pooled - wanted.pooled[0].numpy()).max() < LARGEST_DIFFERENCE
    assert np.array_equal(result.newest, wanted.newest[0].numpy())


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


def test_an_export_of_other_weights_is_found_out(network: FusionNetwork, tmp_path: Path) -> None:
    export_fusion(network, tmp_path)
    with pytest.raises(TrainingError, match='exported fusion differs from the trained one'):
        check_fusion_export(fusion(2), tmp_path)


@pytest.mark.parametrize('switch', ['shift', 'differences', 'aggregation'])
def test_ablated_networks_are_exported_too(switch: str, tmp_path: Path) -> None:
    check = export_fusion(fusion(**{switch: False}), tmp_path, half=False)
    assert check.maps < LARGEST_DIFFERENCE
