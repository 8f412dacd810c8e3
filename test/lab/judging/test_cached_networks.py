"""Networks that remember: the same results, each step taken once."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from mmedge_lab.judging.cached_networks import CachedNetworks
from mmedge_ros.windows.streaming_aggregator import Aggregate

MODALITIES = ('camera', 'radar')


class Blended(NamedTuple):
    end_ns: int
    sum: np.ndarray
    count: int = 0


class Blend:
    """An aggregator whose result depends on every unit, its order and the window's end."""

    def begin(self, end_ns: int) -> Blended:
        return Blended(end_ns, np.zeros(4, np.float32))

    def unit(self, grid: np.ndarray) -> tuple[np.ndarray]:
        return (grid,)

    def step(self, state: Blended, unit: tuple[np.ndarray], stamp_ns: int) -> Blended:
        mixed = 0.7 * state.sum + unit[0] * np.float32((state.end_ns - stamp_ns) / 100)
        return Blended(state.end_ns, mixed, state.count + 1)

    def finish(self, state: Blended) -> Aggregate:
        return Aggregate(state.sum, state.sum, True, 0.0, state.count)


class Blends:
    def __init__(self) -> None:
        self.aggregators = {modality: Blend() for modality in MODALITIES}

    def fuse_aggregates(self, aggregates: dict[str, Aggregate]) -> np.ndarray:
        return np.concatenate([aggregates[modality].pooled for modality in MODALITIES])

    def fuse(self, states: dict[str, Blended]) -> np.ndarray:
        return self.fuse_aggregates(
            {
                modality: self.aggregators[modality].finish(state)
                for modality, state in states.items()
            }
        )


def grid(number: int) -> np.ndarray:
    return np.random.default_rng(number).random(4).astype(np.float32)


def begun(networks, end_ns: int = 500):
    return {modality: steps.begin(end_ns) for modality, steps in networks.aggregators.items()}


def stepped(networks, states, modality: str, number: int, stamp_ns: int | None = None):
    steps = networks.aggregators[modality]
    stamp_ns = 10 * number if stamp_ns is None else stamp_ns
    return {**states, modality: steps.step(states[modality], steps.unit(grid(number)), stamp_ns)}


def fused(networks, units, end_ns: int = 500) -> np.ndarray:
    states = begun(networks, end_ns)
    for modality, number in units:
        states = stepped(networks, states, modality, number)
    return networks.fuse(states)


UNITS = st.lists(st.tuples(st.sampled_from(MODALITIES), st.integers(0, 5)), max_size=8)


@given(st.lists(st.tuples(UNITS, st.sampled_from([400, 500])), max_size=6))
def test_what_is_remembered_is_what_would_be_computed(windows) -> None:
    remembered = CachedNetworks(Blends())
    for units, end_ns in [*windows, *windows]:
        plain = fused(Blends(), units, end_ns)
        np.testing.assert_array_equal(fused(remembered, units, end_ns), plain)


def test_the_units_of_one_modality_are_stepped_once_whatever_the_other_does() -> None:
    networks = CachedNetworks(Blends())
    camera = [('camera', number) for number in range(5)]
    for radar in ([], [('radar', 1)], [('radar', 1), ('radar', 2)]):
        fused(networks, [*camera, *radar])
    assert networks.steps == 5 + 1 + 1


def test_what_has_no_room_is_forgotten_and_computed_again() -> None:
    size = 2 * 4 * 4
    networks = CachedNetworks(Blends(), most_bytes=4 * size)
    calls: Counter[int] = Counter()
    for end_ns in (100, 200, 300, 100):
        before = networks.steps
        fused(networks, [('camera', 1)], end_ns)
        calls[end_ns] += networks.steps - before
    assert calls == {100: 2, 200: 1, 300: 1}
