from __future__ import annotations

import numpy as np
import pytest

from mmedge_lab.rivals.mmedge.table_factors import table_factors, table_space
from mmedge_ros.adaptation.configuration_space import Axis, ConfigurationGrid

LEVELS = Axis('level', ('small', 'large'))


def test_rates_are_read_before_or_after_the_levels_and_as_samples_of_sound() -> None:
    rates = Axis('rate', ('10', '30'))
    sound = Axis('samples per unit', ('800', '1600'))
    for axes in ((rates, LEVELS), (LEVELS, rates)):
        space, index = table_space(ConfigurationGrid(axes))
        assert space.modalities[0].rates == (10.0, 30.0)
        assert space.modalities[0].levels == ('small', 'large')
        assert sorted(index) == [0, 1, 2, 3]
    grid = ConfigurationGrid([LEVELS, sound])
    space, index = table_space(grid)
    assert space.modalities[0].rates == (10.0, 20.0)
    # The table lists fewer samples, that is more units, first.
    assert space.parts(int(index[grid.index((1, 0))]))[0].rate == 20.0


def test_an_axis_without_rates_is_the_levels_of_a_modality() -> None:
    space, _ = table_space(ConfigurationGrid([LEVELS, Axis('sound', ('mono', 'stereo'))]))
    assert [options.rates for options in space.modalities] == [(1.0,), (1.0,)]


def test_the_fit_finds_the_unit_times_a_table_was_made_of() -> None:
    table = table_space(ConfigurationGrid([Axis('rate', ('10', '20')), LEVELS]))
    # At 20 Hz a queue of 60 ms units grows by 10 ms with each of 20 units.
    latency = np.array([0.02 + 0.01, 0.06 + 0.01, 0.02 + 0.01, 0.06 + 19 * 0.01 + 0.01])
    factors = table_factors(latency, table)
    assert factors.r2 > 0.99
    assert factors.units['modality 1', 'large'] == pytest.approx(0.06, rel=0.1)
    assert factors.units['modality 1', 'small'] < 0.03
    assert len(factors.rest) == 4
