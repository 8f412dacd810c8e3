"""Networks that remember: the same results, each step taken once."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mmedge_ros.aggregation.fusion_runtime import FusionState
from mmedge_ros.aggregation.streaming_aggregator import WindowState
from mmedge_ros.evaluation.remembered_networks import RememberedNetworks

MODALITIES = ('camera', 'radar')


class Blend:
    """An aggregator whose result depends on every unit, its order and the window's end."""

    def __init__(self) -> None:
        self.steps = 0

    def begin(self, end_ns: int) -> WindowState:
        return WindowState(end_ns, {'sum': np.zeros(4, np.float32)})

    def step(self, state: WindowState, grid: np.ndarray, stamp_ns: int) -> WindowState:
        self.steps += 1
        mixed = 0.7 * state.tensors['sum'] + grid * np.float32((state.end_ns - stamp_ns) / 100)
        return WindowState(state.end_ns, {'sum': mixed}, stamp_ns, state.count + 1)


class Blends:
    def __init__(self) -> None:
        self.aggregators = {modality: Blend() for modality in MODALITIES}

    def begin(self, end_ns: int) -> FusionState:
        return FusionState(end_ns, {m: a.begin(end_ns) for m, a in self.aggregators.items()})

    def step(self, state: FusionState, modality: str, grid, stamp_ns: int) -> FusionState:
        stepped = self.aggregators[modality].step(state.modalities[modality], grid, stamp_ns)
        return FusionState(state.end_ns, {**state.modalities, modality: stepped})

    def fuse(self, state: FusionState) -> np.ndarray:
        parts = [state.modalities[modality].tensors['sum'] for modality in MODALITIES]
        return np.concatenate(parts)


def grid(number: int) -> np.ndarray:
    return np.random.default_rng(number).random(4).astype(np.float32)


def fused(networks, units, end_ns: int = 500) -> np.ndarray:
    state = networks.begin(end_ns)
    for modality, number in units:
        state = networks.step(state, modality, grid(number), 10 * number)
    return networks.fuse(state)


UNITS = st.lists(st.tuples(st.sampled_from(MODALITIES), st.integers(0, 5)), max_size=8)


@given(st.lists(st.tuples(UNITS, st.sampled_from([400, 500])), max_size=6))
def test_what_is_remembered_is_what_would_be_computed(windows) -> None:
    remembered = RememberedNetworks(Blends())
    for units, end_ns in [*windows, *windows]:
        plain = fused(Blends(), units, end_ns)
        np.testing.assert_array_equal(fused(remembered, units, end_ns), plain)


def test_the_units_of_one_modality_are_stepped_once_whatever_the_other_does() -> None:
    networks = RememberedNetworks(Blends())
    camera = [('camera', number) for number in range(5)]
    for radar in ([], [('radar', 1)], [('radar', 1), ('radar', 2)]):
        fused(networks, [*camera, *radar])
    assert networks.steps == 5 + 1 + 2


def test_windows_are_told_apart_by_their_end_and_units_by_stamp_and_content() -> None:
    networks = RememberedNetworks(Blends())
    fused(networks, [('camera', 1)], 400)
    fused(networks, [('camera', 1)], 500)
    fused(networks, [('camera', 2)], 500)
    other = networks.step(networks.begin(500), 'camera', grid(9), 10)
    networks.fuse(other)
    assert networks.steps == 4


def test_a_state_can_be_stepped_on_in_two_ways() -> None:
    networks = RememberedNetworks(Blends())
    begun = networks.step(networks.begin(500), 'camera', grid(1), 10)
    first = networks.fuse(networks.step(begun, 'radar', grid(2), 20))
    second = networks.fuse(networks.step(begun, 'radar', grid(3), 30))
    np.testing.assert_array_equal(first, fused(Blends(), [('camera', 1), ('radar', 2)]))
    np.testing.assert_array_equal(second, fused(Blends(), [('camera', 1), ('radar', 3)]))


def test_what_has_no_room_is_forgotten_and_computed_again() -> None:
    size = 4 * 4
    networks = RememberedNetworks(Blends(), most_bytes=4 * size)
    calls: Counter[int] = Counter()
    for end_ns in (100, 200, 300, 100):
        before = networks.steps
        fused(networks, [('camera', 1)], end_ns)
        calls[end_ns] += networks.steps - before
    assert calls == {100: 2, 200: 1, 300: 1}


@pytest.mark.parametrize('most_bytes', [0, 1])
def test_without_any_room_results_are_the_same(most_bytes: int) -> None:
    networks = RememberedNetworks(Blends(), most_bytes)
    units = [('camera', 1), ('radar', 2), ('camera', 3)]
    for _ in range(2):
        np.testing.assert_array_equal(fused(networks, units), fused(Blends(), units))
