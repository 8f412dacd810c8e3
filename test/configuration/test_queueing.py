from __future__ import annotations

import numpy as np
import pytest
from queue_recursion import completion_times

from mmedge_ros.configuration.queueing import last_unit_quantiles


def quantile(  # type: ignore[no-untyped-def]
    service, interval, score=0.0, scatter=0.0, ignorance=0.0, units=15, capacity=10**6
) -> float:
    arrays = (np.array([value]) for value in (service, scatter, ignorance, interval))
    growing = np.array([float(units)])
    return float(last_unit_quantiles(*arrays, (score,), growing, capacity)[0, 0])


@pytest.mark.parametrize('service', [0.01, 0.033, 0.034, 0.05, 0.2])
def test_without_scatter_it_is_the_recursion_itself(service: float) -> None:
    interval, units = 1 / 30, 12
    arrivals = [interval * n for n in range(units)]
    last = completion_times(arrivals, [service] * units)[-1] - arrivals[-1]
    assert quantile(service, interval, units=units) == pytest.approx(last)


def test_below_saturation_only_the_last_unit_is_waited_for() -> None:
    assert quantile(0.02, 0.033) == pytest.approx(0.02)


def test_a_bounded_queue_bounds_the_wait() -> None:
    assert quantile(0.1, 0.033, units=60, capacity=2) == pytest.approx(0.3)


def test_ignorance_does_not_average_out_over_a_queue_but_scatter_does() -> None:
    known = quantile(0.05, 0.033, 1.645, scatter=0.01)
    unknown = quantile(0.05, 0.033, 1.645, ignorance=0.01)
    assert unknown > known > quantile(0.05, 0.033)


@pytest.mark.parametrize(('load', 'tolerance'), [(0.5, 0.05), (0.8, 0.15), (1.3, 0.1)])
def test_it_is_close_to_the_quantile_of_many_random_queues(load: float, tolerance: float) -> None:
    interval, units = 0.05, 20
    random = np.random.default_rng(3)
    arrivals = interval * np.arange(units)
    lasts = [
        completion_times(arrivals, random.normal(load * interval, 0.15 * load * interval, units))[
            -1
        ]
        - arrivals[-1]
        for _ in range(2000)
    ]
    expected = float(np.quantile(lasts, 0.95))
    service = load * interval
    found = quantile(service, interval, 1.645, scatter=0.15 * service, units=units)
    assert found == pytest.approx(expected, rel=tolerance)
