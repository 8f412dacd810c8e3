"""Fusion networks that are given the newest unit of each sensor alone."""

from __future__ import annotations

import numpy as np
from fake_fusion_networks import FakeFusionNetworks

from mmedge_lab.policies.newest_unit import newest_alone
from mmedge_ros.aggregation.window_bank import WindowBank
from mmedge_ros.data_types import CAMERA, RADAR, UnitKey

END_NS = 1_000_000_000


def test_of_a_window_they_see_the_newest_unit_of_each_sensor_in_whatever_order_units_come() -> (
    None
):
    fake = FakeFusionNetworks()
    networks = newest_alone(fake)
    assert networks is not None
    bank = WindowBank(networks.aggregators)
    for modality, stamps in ((CAMERA, (700, 900, 800)), (RADAR, (850, 750))):
        for number, stamp in enumerate(stamps):
            grid = np.full((48, 30, 40), float(stamp), np.float32)
            bank.add(UnitKey(modality, number, stamp * 1_000_000), grid, [END_NS])
    networks.fuse(bank.state(END_NS))
    assert fake.fused == {END_NS: {CAMERA: [900_000_000], RADAR: [850_000_000]}}


def test_where_there_are_no_networks_there_is_nothing_to_give_less_to() -> None:
    assert newest_alone(None) is None
