from __future__ import annotations

import numpy as np
import pytest
from queue_recursion import completion_times

from mmedge_ros.configuration.queueing import last_unit_quantiles, queue_lengths


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


def test_units_that_come_before_the_end_leave_that_time_to_encode_them() -> None:
    arrays = [np.array([value]) for value in (0.06, 0.0, 0.0, 0.1)]
    early = np.full((len(queue_lengths(15)), 1), 0.05)
    quantiles = last_unit_quantiles(*arrays, (0.0,), np.array([15.0]), 2, early)
    assert quantiles[0, 0] == pytest.approx(0.01)


def test_with_uneven_arrivals_it_is_the_recursion_itself() -> None:
    """Two units of every 100 ms, 33 and 67 ms after its begin, each takes 45 ms."""
    service, units = 0.045, 12
    arrivals = [0.1 * (n // 2) + (0.033, 0.067)[n % 2] for n in range(units)]
    end = 0.1 * units / 2
    last = completion_times(arrivals, [service] * units)[-1] - end
    counts = queue_lengths(units)
    even = (counts - 1.0) * 0.05
    ahead = np.array([[end - arrivals[-int(n)]] for n in counts.ravel()]) - even
    arrays = [np.array([value]) for value in (service, 0.0, 0.0, 0.05)]
    found = last_unit_quantiles(*arrays, (0.0,), np.array([float(units)]), 10**6, ahead)
    assert last == pytest.approx(0.023)
    assert found[0, 0] == pytest.approx(last)
