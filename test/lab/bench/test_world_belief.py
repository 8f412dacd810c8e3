from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mmedge_ros.configuration import ConfigurationError
from mmedge_ros.lab.bench.contention_worlds import draw_worlds
from mmedge_ros.lab.bench.world_belief import Belief, Sighting, WorldBelief

ERROR = 0.05
# Nothing changes; everything is slower; only what is expensive, listed last, is slower.
WORLDS = np.array([[0, 0, 0], [1, 1, 1], [0, 0.2, 2]], np.float32)


def belief(worlds: np.ndarray = WORLDS, growth: float = 0.0) -> WorldBelief:
    return WorldBelief(worlds, ERROR, growth, 0.1)


def seen(configuration: int, ratio: float, worth: float = 1.0) -> Sighting:
    return Sighting(configuration, ratio, 0.001, worth)


def moments(mixture: Belief, index: int) -> tuple[float, float]:
    shares, means = mixture.shares[:, index], mixture.ratios[:, index]
    mean = float(shares @ means)
    second = float(shares @ (means**2 + mixture.ignorance[:, index] ** 2))
    return mean, second - mean**2


def test_before_any_measurement_all_worlds_count_alike() -> None:
    for index in range(3):
        mean, variance = belief().of(index, [])
        assert mean == pytest.approx(WORLDS[:, index].mean())
        assert variance == pytest.approx(WORLDS[:, index].var() + ERROR**2)


@pytest.mark.parametrize('world', range(3))
def test_what_was_measured_tells_of_what_was_not(world: int) -> None:
    sightings = [seen(0, float(WORLDS[world, 0])), seen(1, float(WORLDS[world, 1]))]
    mean, variance = belief().of(2, sightings)
    assert mean == pytest.approx(WORLDS[world, 2], abs=0.3)
    assert variance < belief().of(2, [])[1]


def test_what_holds_no_more_tells_nothing() -> None:
    assert belief().of(1, [seen(0, 1.0, worth=0.0)]) == belief().of(1, [])
    means = [belief().of(1, [seen(0, 1.0, worth)])[0] for worth in (0.0, 0.1, 0.4, 1.0)]
    assert means == sorted(set(means))


def test_one_absurd_measurement_does_not_outvote_two_that_agree() -> None:
    agreed = [seen(1, 0.0), seen(2, 0.0)]
    absurd = seen(0, 50.0)
    assert belief().of(0, [absurd])[0] > 0.9
    assert belief().of(0, [*agreed, absurd])[0] < 0.1


def test_a_world_is_rougher_about_what_it_says_is_slow() -> None:
    slow = np.array([[0.0, 1.0]], np.float32)
    assert belief(slow, 0.3).of(0, [])[1] == pytest.approx(ERROR**2)
    assert belief(slow, 0.3).of(1, [])[1] == pytest.approx((ERROR + 0.3) ** 2)


def test_the_mixture_says_the_same_of_what_was_not_measured() -> None:
    worlds = draw_worlds([[0, 1, 2], [0, 1, 2]], 400)
    sightings = [seen(8, 1.0), seen(4, 0.3)]
    mixture = belief(worlds).mixture(sightings)
    for index in (0, 5, 7):
        mean, variance = belief(worlds).of(index, sightings)
        found = moments(mixture, index)
        assert found[0] == pytest.approx(mean, abs=0.02)
        assert math.sqrt(found[1]) == pytest.approx(math.sqrt(variance), abs=0.03)


def test_of_what_was_measured_the_last_component_is_the_measurement() -> None:
    exact = Sighting(1, 0.7, 1e-9, 0.8)
    mixture = belief().mixture([exact])
    assert mixture.shares[-1].tolist() == [0.0, 0.8, 0.0]
    assert mixture.ratios[-1, 1] == pytest.approx(0.7, abs=1e-4)
    assert mixture.ignorance[-1, 1] < 1e-3
    rough = belief().mixture([Sighting(1, 0.7, 0.5, 1.0)])
    assert rough.ignorance[-1, 1] > 0.03


def test_a_measurement_that_holds_no_more_says_nothing_of_its_own_configuration() -> None:
    before, after = belief().mixture([]), belief().mixture([seen(2, 2.0, worth=0.5)])
    assert after.ratios[:-1, 2].tolist() == before.ratios[:-1, 2].tolist()
    assert after.ratios[:-1, 1].tolist() != before.ratios[:-1, 1].tolist()


@given(
    st.dictionaries(
        st.integers(0, 2),
        st.tuples(st.floats(-30.0, 30.0), st.floats(0.0, 1e300), st.floats(0.0, 1.0)),
    )
)
def test_whatever_is_measured_a_belief_is_one(found: dict[int, tuple[float, ...]]) -> None:
    sightings = [Sighting(index, *values) for index, values in found.items()]
    mixture = belief(growth=0.3).mixture(sightings)
    assert mixture.shares.shape == mixture.ratios.shape == mixture.ignorance.shape
    assert mixture.shares.sum(axis=0) == pytest.approx(np.ones(3))
    assert np.all(mixture.shares >= 0.0)
    assert np.isfinite(mixture.ratios).all()
    assert np.isfinite(mixture.ignorance).all()
    assert np.all(mixture.ignorance >= 0.0)
    for index in range(3):
        others = [sighting for sighting in sightings if sighting.configuration != index]
        mean, variance = belief().of(index, others)
        assert WORLDS[:, index].min() - 1e-6 <= mean <= WORLDS[:, index].max() + 1e-6
        assert variance > 0.9 * ERROR**2


@pytest.mark.parametrize('bad', [np.empty((0, 3)), np.empty((3, 0)), np.zeros(3), WORLDS + np.nan])
def test_worlds_without_numbers_are_refused(bad: np.ndarray) -> None:
    with pytest.raises(ConfigurationError, match='draw at least one'):
        belief(bad)
