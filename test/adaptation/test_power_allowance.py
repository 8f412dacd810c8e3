"""What is only looked at comes the more seldom the less power there is."""

from __future__ import annotations

import math

import pytest

from mmedge_ros.adaptation.power_allowance import least_gap


@pytest.mark.parametrize(
    ('alpha', 'gap'),
    [(1.0, 0.0), (0.5, 0.5), (0.0, 1.0), (math.nan, 0.0), (-3.0, 0.0), (9.0, 0.0)],
)
def test_pictures_to_look_at_are_thinned_by_alpha_and_by_nothing_impossible(
    alpha: float, gap: float
) -> None:
    assert least_gap(alpha) == gap
