"""What tells pictures behind a veil from plain ones, fitted to numbers alone."""

from __future__ import annotations

import numpy as np
import pytest

from mmedge_lab.judging.picture_seconds import Change, changed, fog, haze
from mmedge_lab.training.veil_fit import (
    can_be_fitted,
    fitted_veil,
    left_out_veils,
    veiled,
)
from mmedge_ros.encoding.unit_encoder import appearance_of


def flight(seed: int, contrast: float = 1.0) -> np.ndarray:
    """Ten seconds of a scene of its own; a rich one has many times the contrast of a plain one."""
    random = np.random.default_rng(seed)
    rich = contrast * random.uniform(0.5, 1.5)
    look = np.array([0.5, 0.16, 0.15, 0.6, 0.5, 0.4, 0.1, 0.12, 0.14, 0.4, 0.25, 0.12])
    look[[1, 6, 7, 8]] *= rich
    look[9:] = look[3:6] - 2.2 * look[6:9]
    # What is near has its full contrast in any scene.
    look[8], look[11] = 0.14, 0.12
    return look * np.exp(0.05 * random.standard_normal((10, 12)))


FLIGHTS = [flight(seed) for seed in range(8)]
BY_DAY = [True] * 6 + [False] * 2


@pytest.mark.parametrize(('change', 'veil'), [(fog(0.45), 0.7), (haze(0.45), None)])
def test_numbers_are_veiled_as_pictures_are(change: Change, veil: float | None) -> None:
    random = np.random.default_rng(0)
    rows = np.linspace(60, 180, 96)[:, None] + 30.0 * random.standard_normal((96, 128))
    picture = np.repeat(rows[..., None].clip(0, 255), 3, axis=2).astype(np.uint8)
    found = appearance_of(changed(picture, change, 0.0))
    numbers = veiled(np.array([appearance_of(picture)]), 0.45, veil)
    assert numbers[0] == pytest.approx(np.array(found), abs=0.03)


def test_a_veil_before_a_flight_left_out_is_told_from_plain_flights() -> None:
    veil = fitted_veil(FLIGHTS, BY_DAY)
    for seed in range(20, 30):
        plain = flight(seed)
        assert np.mean([veil.probability(look) for look in plain]) < 0.3
        for kind in (0.7, None):
            behind = veiled(plain, 0.4, kind)
            assert np.mean([veil.probability(look) for look in behind]) > 0.7


def test_flights_are_left_out_of_what_they_are_judged_by() -> None:
    odd = veiled(flight(40), 0.3, None)
    flights = [np.concatenate(FLIGHTS[:4]), np.concatenate(FLIGHTS[4:]), odd]
    found = left_out_veils(flights, [True, True, False])
    assert [len(values) for values in found] == [40, 40, 10]
    # Known as usual it is not noticed in another flight; left out it is.
    assert found[2].mean() > 0.9
    assert fitted_veil(flights, [True, True, False]).probability(odd[0]) < 0.9


def test_without_flights_by_day_or_thirds_nothing_is_fitted() -> None:
    assert can_be_fitted(FLIGHTS, BY_DAY)
    assert not can_be_fitted(FLIGHTS, [True] + [False] * 7)
    unknown = FLIGHTS[0].copy()
    unknown[:, 3:] = np.nan
    assert not can_be_fitted([unknown, *FLIGHTS[1:]], BY_DAY)
