"""What trained networks are called, and what their figures are made of."""

from __future__ import annotations

from mmedge_lab.rivals.mmedge.fusion_bench import FULL, network_name


def test_a_network_is_called_by_what_it_lacks() -> None:
    assert network_name({'without': [], 'seed': 0}) == FULL
    name = network_name({'without': ['shift', 'differences'], 'seed': 2})
    assert name == 'without shift and without differences, seed 2'
