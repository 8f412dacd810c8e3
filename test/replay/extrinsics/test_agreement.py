"""Boxes that hold moving returns, and moving returns inside of boxes."""

from __future__ import annotations

import numpy as np
import pytest
from hand_made_walk import across, walked

from mmedge_ros.replay.extrinsics.agreement import agreement
from mmedge_ros.replay.extrinsics.pairs import moving_returns


def _stands_aside(_: float) -> np.ndarray:
    return np.array([6.0, 3.0])


def test_a_person_who_walks_and_one_who_stands_fill_half_of_the_boxes() -> None:
    seen = walked(walks=(across, _stands_aside), seconds=4.0)
    moving = moving_returns(seen, seen.geometry, 0.0)
    shares = agreement(seen, moving, seen.geometry, 0.0)
    assert shares.filled == pytest.approx(0.5, abs=0.1)
    assert shares.inside > 0.7
    assert shares.boxes > 140


def test_a_clock_that_is_off_by_a_second_leaves_nothing_to_compare() -> None:
    seen = walked(seconds=0.9)
    moving = moving_returns(seen, seen.geometry, 0.0)
    shares = agreement(seen, moving, seen.geometry, -1.0)
    assert shares.boxes == 0
    assert np.isnan(shares.filled)
