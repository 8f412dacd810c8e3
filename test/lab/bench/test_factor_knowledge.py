from __future__ import annotations

import numpy as np
import pytest

from mmedge_ros.configuration.configuration_grid import Axis, ConfigurationGrid
from mmedge_ros.lab.bench.factor_knowledge import (
    fitted_factors,
    measured_factors,
    modality_shape,
)


def grid(*sizes: int) -> ConfigurationGrid:
    return ConfigurationGrid(
        [Axis(f'{n}', tuple(map(str, range(size)))) for n, size in enumerate(sizes)]
    )


def test_neighbouring_axes_are_a_modality() -> None:
    assert modality_shape(grid(3, 3, 3, 3)) == (9, 9)
    assert modality_shape(grid(2, 3, 4, 5, 2, 2)) == (6, 20, 4)
    assert modality_shape(grid(3, 4, 5)) == (3, 4, 5)
    assert modality_shape(grid(3, 4)) == (3, 4)


def test_18_numbers_rebuild_81_that_factorise() -> None:
    random = np.random.default_rng(0)
    table = np.multiply.outer(random.uniform(1, 2, 9), random.uniform(1, 2, 9)).ravel()
    rebuilt = measured_factors(table, grid(3, 3, 3, 3))
    assert rebuilt.numbers == 18
    assert rebuilt.table == pytest.approx(table)
    assert (rebuilt.r2, rebuilt.error) == (pytest.approx(1.0), pytest.approx(0.0, abs=1e-9))


def test_the_best_factors_rebuild_what_adds_up() -> None:
    random = np.random.default_rng(0)
    table = np.add.outer(random.uniform(1, 2, 9), random.uniform(1, 2, 9)).ravel()
    assert fitted_factors(table, grid(3, 3, 3, 3)).table == pytest.approx(table)


def test_only_what_was_measured_is_used() -> None:
    random = np.random.default_rng(1)
    table = random.uniform(1, 2, 81)
    other = table.copy().reshape(9, 9)
    other[1:, 1:] *= 3.0
    first = measured_factors(table, grid(3, 3, 3, 3))
    second = measured_factors(other.ravel(), grid(3, 3, 3, 3))
    assert np.array_equal(first.table, second.table)
    assert second.error > first.error


def test_a_table_of_one_value_is_explained() -> None:
    assert measured_factors(np.ones(4), grid(2, 2)).r2 == 1.0
    assert fitted_factors(np.ones(4), grid(2, 2)).r2 == 1.0
