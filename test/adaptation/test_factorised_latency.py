from __future__ import annotations

import math

import numpy as np
import pytest
from queue_recursion import completion_times
from scipy.special import ndtr

from mmedge_ros.adaptation import ConfigurationError
from mmedge_ros.adaptation.configuration_space import ConfigurationSpace, ModalityOptions
from mmedge_ros.adaptation.factorised_latency import FactorisedLatency, _slowest
from mmedge_ros.adaptation.unit_time_profile import StageTime, UnitTimeProfile
from mmedge_ros.core.data_types import ModalityConfiguration

LEVELS = ('small', 'medium', 'large')
COSTS = {'camera': (0.006, 0.012, 0.030), 'radar': (0.003, 0.005, 0.008)}
TRANSPORT, FUSION = 0.001, 0.002


def space() -> ConfigurationSpace:
    return ConfigurationSpace(
        [
            ModalityOptions('camera', (10.0, 20.0, 30.0), LEVELS),
            ModalityOptions('radar', (5.0, 10.0, 20.0), LEVELS),
        ]
    )


def model(scatter: float = 0.1) -> FactorisedLatency:
    units = {
        (modality, level): StageTime(cost, scatter)
        for modality, costs in COSTS.items()
        for level, cost in zip(LEVELS, costs, strict=True)
    }
    profile = UnitTimeProfile(units, StageTime(TRANSPORT, scatter), StageTime(FUSION, scatter))
    return FactorisedLatency(space(), profile)


def number(camera: tuple[float, str], radar: tuple[float, str]) -> int:
    parts = (ModalityConfiguration('camera', *camera), ModalityConfiguration('radar', *radar))
    index = space().index_of(parts)
    assert index is not None
    return index


def test_unloaded_it_is_the_slowest_modality_plus_transport_and_fusion() -> None:
    medians = model().predict(0.0).quantiles(0.5)
    slow_camera = number((20.0, 'large'), (10.0, 'small'))
    assert medians[slow_camera] == pytest.approx(0.030 + TRANSPORT + FUSION, rel=0.05)
    slow_radar = number((10.0, 'small'), (20.0, 'large'))
    assert medians[slow_radar] == pytest.approx(0.008 + TRANSPORT + FUSION, rel=0.05)


def test_a_rate_the_encoder_cannot_follow_costs_a_full_queue() -> None:
    latency = model()
    for step in range(60):  # everything takes twice as long
        latency.observe_unit('camera', 'large', 0.060, step / 30)
        latency.observe_transport(TRANSPORT, step / 30)
    medians = latency.predict(2.0).quantiles(0.5)
    overloaded = medians[number((30.0, 'large'), (5.0, 'small'))]
    relaxed = medians[number((10.0, 'large'), (5.0, 'small'))]
    assert relaxed == pytest.approx(0.060 + TRANSPORT + FUSION, rel=0.1)
    assert overloaded > 2.5 * relaxed


def with_reuse(**units: StageTime) -> tuple[ConfigurationSpace, FactorisedLatency]:
    camera = ModalityOptions('camera', (0.5, 10.0, 30.0), ('medium', 'large'), reuse=(6, 3, 1))
    made = ConfigurationSpace([camera, ModalityOptions('radar', (20.0,), ('',))])
    times = {
        ('camera', 'medium'): StageTime(0.020, 0.1),
        ('camera', 'large'): StageTime(0.040, 0.1),
        ('radar', ''): StageTime(0.001, 0.1),
    }
    profile = UnitTimeProfile(times, StageTime(TRANSPORT, 0.1), StageTime(FUSION, 0.1), units)
    return made, FactorisedLatency(made, profile)


def large_with(space: ConfigurationSpace, reuse: int) -> int:
    camera = ModalityConfiguration('camera', 30.0, 'large', reuse=reuse)
    index = space.index_of((camera, ModalityConfiguration('radar', 20.0, '')))
    assert index is not None
    return index


def test_with_reuse_the_mean_is_the_load_and_the_full_time_the_latency() -> None:
    made, latency = with_reuse(camera=StageTime(0.004, 0.1))
    every, third = (large_with(made, reuse) for reuse in (1, 3))
    medians = latency.predict(0.0).quantiles(0.5)
    # Of all phases, 19 in 20 let the encoded one of three pictures come so much before the end.
    early = 0.05 * 0.1
    assert medians[third] == pytest.approx(0.040 + TRANSPORT + FUSION - early, rel=0.05)
    assert medians[every] > 2.0 * medians[third]
    assert latency.pace(every) == pytest.approx(30 * 0.040 + 20 * 0.001)
    assert latency.pace(third) == pytest.approx(10 * 0.040 + 20 * 0.004 + 20 * 0.001)


def test_a_window_in_two_that_waits_for_no_encoded_picture_makes_late_ones_rarer() -> None:
    made, latency = with_reuse(camera=StageTime(0.004, 0.1))
    third, sixth = (large_with(made, reuse) for reuse in (3, 6))
    predicted = latency.predict(0.0)
    assert predicted.quantiles(0.5)[sixth] == pytest.approx(predicted.quantiles(0.5)[third])
    assert predicted.quantiles(0.95)[sixth] < 0.99 * predicted.quantiles(0.95)[third]


def test_the_latency_of_rates_that_few_windows_see_is_a_number() -> None:
    _, latency = with_reuse()
    assert np.isfinite(latency.predict(0.0).quantiles(0.95)).all()


def test_how_long_following_takes_is_learnt() -> None:
    made, latency = with_reuse()
    for step in range(200):
        if step % 3:
            latency.observe_followed('camera', 0.012, step / 30)
        else:
            latency.observe_unit('camera', 'large', 0.040, step / 30)
    latency.predict(6.7)
    third = made.index_of(
        (
            ModalityConfiguration('camera', 30.0, 'large', reuse=3),
            ModalityConfiguration('radar', 20.0, ''),
        )
    )
    assert third is not None
    assert latency.pace(third) == pytest.approx(10 * 0.040 + 20 * 0.012 + 20 * 0.001, rel=0.1)


def test_the_quantile_is_that_of_simulated_decisions() -> None:
    random = np.random.default_rng(1)
    latency = model(scatter=0.2)
    index = number((30.0, 'medium'), (20.0, 'large'))

    def last(median: float, rate: float) -> float:
        arrivals = [n / rate for n in range(10)]
        services = median * np.exp(0.2 * random.standard_normal(10))
        return completion_times(arrivals, services)[-1] - arrivals[-1]

    decisions = [
        max(last(0.012, 30.0), last(0.008, 20.0))
        + TRANSPORT * math.exp(0.2 * random.standard_normal())
        + FUSION * math.exp(0.2 * random.standard_normal())
        for _ in range(4000)
    ]
    predicted = latency.predict(0.0)
    for probability in (0.5, 0.95):
        expected = float(np.quantile(decisions, probability))
        assert predicted.quantiles(probability)[index] == pytest.approx(expected, rel=0.06)


@pytest.mark.parametrize('spread', [0.05, 0.3])
@pytest.mark.parametrize('apart', [0.0, 0.2, 1.0, 3.0])
def test_the_slowest_of_two_has_the_quantile_it_truly_has(spread: float, apart: float) -> None:
    logs, spreads = np.array([0.0, -apart]), np.array([spread, 0.7 * spread])
    both = [np.full((1, 1), log, np.float32) for log in logs]
    widths = [np.full((1, 1), width, np.float32) for width in spreads]
    for probability in (0.5, 0.95):
        limit = math.log(float(_slowest(both, widths, probability)[0]))
        kept = float(np.prod(ndtr((limit - logs) / spreads)))
        assert kept == pytest.approx(probability, abs=0.012)


def test_a_measured_unit_moves_all_configurations_that_use_its_level_most() -> None:
    latency = model()
    before = latency.predict(0.0).quantiles(0.95)
    for step in range(30):
        latency.observe_unit('camera', 'medium', 0.024, step / 30)
    ratio = latency.predict(1.0).quantiles(0.95) / before
    same = ratio[number((10.0, 'medium'), (5.0, 'small'))]
    other = ratio[number((10.0, 'large'), (5.0, 'small'))]
    assert same == pytest.approx(2.0, rel=0.25)
    assert other > 1.4


def test_fusion_counts_for_every_configuration() -> None:
    latency = model()
    before = latency.predict(0.0).quantiles(0.5)
    for step in range(30):
        latency.observe_fusion(0.012, step / 10)
    assert np.all(latency.predict(3.0).quantiles(0.5) > before + 0.006)


def test_load_counts_units_times_their_cost() -> None:
    load = model().predict(0.0).load
    assert load is not None
    around = TRANSPORT + FUSION
    least = 10 * (0.006 + around) + 5 * (0.003 + around)
    assert load[number((10.0, 'small'), (5.0, 'small'))] == pytest.approx(least)
    assert load.argmax() == number((30.0, 'large'), (20.0, 'large'))


def test_one_modality_and_many_are_the_same_to_it() -> None:
    for count in (1, 4):
        names = [f'sensor {n}' for n in range(count)]
        sensors = ConfigurationSpace([ModalityOptions(m, (10.0, 20.0), ('a',)) for m in names])
        profile = UnitTimeProfile(
            {(m, 'a'): StageTime(0.01, 0.1) for m in names},
            StageTime(0.001, 0.1),
            StageTime(0.001, 0.1),
        )
        quantiles = FactorisedLatency(sensors, profile).predict(0.0).quantiles(0.95)
        assert quantiles.shape == (2**count,)
        assert np.all((quantiles > 0.012) & (quantiles < 0.018))


def test_a_level_without_a_measured_time_is_named() -> None:
    profile = UnitTimeProfile({}, StageTime(0.001, 0.1), StageTime(0.001, 0.1))
    with pytest.raises(ConfigurationError, match='no unit time of camera small'):
        FactorisedLatency(space(), profile)


def test_a_unit_that_comes_early_may_take_that_much_longer() -> None:
    latency = model()
    before = latency.predict(0.0).quantiles(0.5)
    for n in range(1, 61):
        stamp_ns = 10_000_000 + n * 100_000_000 // 3
        latency.unit_arrived('camera', stamp_ns, stamp_ns + 18_000_000)
        latency.unit_arrived('lidar', stamp_ns, stamp_ns + 18_000_000)
    after = latency.predict(1.0).quantiles(0.5)
    slow, fast = (number((rate, 'large'), (5.0, 'small')) for rate in (10.0, 30.0))
    # At 10 Hz it is there 39 ms before the end; the radar, of which nothing is known, decides.
    assert after[slow] == pytest.approx(0.003 + TRANSPORT + FUSION, rel=0.1)
    assert before[fast] - after[fast] == pytest.approx(0.005, abs=0.001)


def test_a_unit_that_comes_late_once_in_five_seconds_rules_nothing_out() -> None:
    latency = model()
    predicted = latency.predict(0.0)
    for n in range(1, 181):
        stamp_ns = 10_000_000 + n * 100_000_000 // 3
        late_ns = 30_000_000 * (n == 151)
        latency.unit_arrived('camera', stamp_ns, stamp_ns + 18_000_000 + late_ns)
        predicted = latency.predict(n / 30)
    slow = number((10.0, 'large'), (5.0, 'small'))
    assert predicted.quantiles(0.5)[slow] == pytest.approx(0.003 + TRANSPORT + FUSION, rel=0.1)


def test_pace_is_what_the_encoders_work_by_the_last_prediction() -> None:
    latency = model()
    index = number((20.0, 'medium'), (10.0, 'large'))
    assert latency.pace(index) == pytest.approx(20 * 0.012 + 10 * 0.008)
    for step in range(60):
        latency.observe_unit('camera', 'medium', 0.024, step / 30)
    latency.predict(2.0)
    assert latency.pace(index) > 1.6 * (20 * 0.012 + 10 * 0.008)
