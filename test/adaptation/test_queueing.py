from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pytest
from queue_recursion import completion_times

from mmedge_ros.adaptation.queueing import ArrivalTimes, last_unit_quantiles, queue_lengths
from mmedge_ros.core.data_types import NS_PER_S
from mmedge_ros.encoding.object_memory import ReuseGrid
from mmedge_ros.sensing.rate_control import RateControl, lead_ns


def quantile(  # type: ignore[no-untyped-def]
    service, interval, score=0.0, scatter=0.0, ignorance=0.0, units=15, capacity=10**6, **reuse
) -> float:
    arrays = (np.array([value]) for value in (service, scatter, ignorance, interval))
    growing = np.array([float(units)])
    return float(last_unit_quantiles(*arrays, (score,), growing, capacity, **reuse)[0, 0])


@pytest.mark.parametrize('service', [0.01, 0.033, 0.034, 0.05, 0.2])
def test_without_scatter_it_is_the_recursion_itself(service: float) -> None:
    interval, units = 1 / 30, 12
    arrivals = [interval * n for n in range(units)]
    last = completion_times(arrivals, [service] * units)[-1] - arrivals[-1]
    assert quantile(service, interval, units=units) == pytest.approx(last)


@pytest.mark.parametrize('service', [0.01, 0.04, 0.06, 0.09, 0.2])
@pytest.mark.parametrize('reuse', [2, 3, 6])
def test_with_reuse_it_is_the_recursion_that_ends_with_an_encoded_unit(
    service: float, reuse: int
) -> None:
    interval, units = 1 / 30, 12
    arrivals = [interval * n for n in range(units)]
    services = [service * (0.15 if n % reuse else 1.0) for n in reversed(range(units))]
    last = completion_times(arrivals, services)[-1] - arrivals[-1]
    found = quantile(service, interval, units=units, reuse=float(reuse), followed=0.15)
    assert found == pytest.approx(last, rel=0.1)  # not every length of a queue is looked at


def test_where_following_takes_longer_it_counts() -> None:
    assert quantile(0.01, 0.1, reuse=2.0, followed=1.5) == pytest.approx(0.015)


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
    predicted = quantile(service, interval, 1.645, scatter=0.15 * service, units=units)
    assert predicted == pytest.approx(expected, rel=tolerance)


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
    quantiles = last_unit_quantiles(*arrays, (0.0,), np.array([float(units)]), 10**6, ahead)
    assert last == pytest.approx(0.023)
    assert quantiles[0, 0] == pytest.approx(last)


MS = 1_000_000
BEGIN_NS = 1_700_000_000 * NS_PER_S
COUNTS = np.array([[1.0], [2.0], [3.0], [6.0]])
RATES = (10.0, 20.0, 30.0)
STRIDE_MS = 100.0


def units(
    seconds: float, rate: float = 30.0, first_ms: float = 0.0, delay_ms: float = 18.0
) -> list[tuple[int, int]]:
    """Stamps and arrivals of a sensor, in ns."""
    arrivals = []
    for number in range(round(seconds * rate)):
        stamp_ns = BEGIN_NS + round(first_ms * MS + number * NS_PER_S / rate)
        arrivals.append((stamp_ns, stamp_ns + round(delay_ms * MS)))
    return arrivals


def arrived(given: Iterable[tuple[int, int]], rates: tuple[float, ...] = RATES) -> ArrivalTimes:
    arrivals = ArrivalTimes(rates, COUNTS, STRIDE_MS / 1e3)
    for stamp_ns, available_ns in given:
        arrivals.arrived(stamp_ns, available_ns)
    return arrivals


def simulated(given: list[tuple[int, int]], rate: float, count: int) -> float:
    """Least time from the count-th last unit to a window's end, beyond the intervals."""
    control = RateControl(round(NS_PER_S / 30.0))
    lead = lead_ns([available - stamp for stamp, available in given])
    passed = [available for stamp, available in given if control.admits(stamp, rate, lead)]
    newest_ns, stride_ns = given[-1][1], round(STRIDE_MS * MS)
    ends = range(-(-(newest_ns - NS_PER_S) // stride_ns) * stride_ns, newest_ns + 1, stride_ns)
    least = min(
        end - [available for available in passed if available <= end][-count] for end in ends
    )
    return least / NS_PER_S - (count - 1) / rate


@pytest.mark.parametrize('first_ms', [0.0, 7.0, 21.0])
@pytest.mark.parametrize('delay_ms', [5.0, 18.0, 40.0])
def test_it_is_the_least_time_that_rate_control_would_leave(
    first_ms: float, delay_ms: float
) -> None:
    given = units(2.0, first_ms=first_ms, delay_ms=delay_ms)
    ahead = arrived(given).look().ahead[..., 0]
    for column, rate in enumerate(RATES):
        for row, count in enumerate((1, 2, 3)):
            assert ahead[row, column] == pytest.approx(simulated(given, rate, count), abs=1e-6)


@pytest.mark.parametrize('rate', [29.9, 30.06])
@pytest.mark.parametrize('reuse', [2, 3, 6])
def test_with_reuse_it_is_the_time_that_the_object_memory_would_leave(
    rate: float, reuse: int
) -> None:
    """The grid of encoded pictures is that of the camera's nominal rate, not of the measured."""
    given = units(4.0, rate=rate, first_ms=5.0)
    grid = ReuseGrid()
    encoded = [available for stamp, available in given if grid.takes(stamp, 30.0, reuse)]
    newest_ns, stride_ns = given[-1][1], round(STRIDE_MS * MS)
    ends = range(-(-(newest_ns - NS_PER_S) // stride_ns) * stride_ns, newest_ns + 1, stride_ns)
    least = min(end - max(ns for ns in encoded if ns <= end) for end in ends) / NS_PER_S
    assert arrived(given).look((reuse, 1)).ahead[0, 2, 0] == pytest.approx(least, abs=1e-6)


def test_where_slots_end_elsewhere_the_last_picture_comes_well_before_the_end() -> None:
    rates = (10.0, 7.5, 30.0)
    aligned, uneven, every = arrived(units(4.0, first_ms=5.0), rates).look().ahead[..., 0][0]
    # Stamps at 5, 38, 72 ms: 72 is there at 90 ms.
    assert aligned == every == pytest.approx(0.0103, abs=1e-3)
    assert uneven >= every


def test_a_unit_that_sometimes_just_makes_it_counts_as_one_that_does() -> None:
    given = [
        (stamp_ns, available_ns + (number // 3 % 4 == 0) * 14 * MS)
        for number, (stamp_ns, available_ns) in enumerate(units(2.0))
    ]
    assert arrived(given).look().ahead[..., 0][0, 2] < 0.0015


def test_too_little_says_nothing() -> None:
    assert not arrived(units(0.2)).look().ahead[..., 0].any()
    assert not arrived([]).look().ahead[..., 0].any()


def test_what_is_not_seen_any_more_says_nothing() -> None:
    arrivals = arrived(units(2.0))
    assert arrivals.look().ahead[..., 0].any()
    assert not arrivals.look().ahead[..., 0].any()


def test_a_rate_above_what_is_seen_stays_at_the_worst() -> None:
    paused = units(2.0, rate=10.0, first_ms=30.0)
    slow, middle, fast = arrived(paused).look().ahead[..., 0][0]
    assert slow == pytest.approx(0.052, abs=1e-3)
    assert middle == fast == 0.0


def test_another_clock_begins_anew() -> None:
    arrivals = arrived(units(2.0))
    jump_ns = -3600 * NS_PER_S
    for stamp_ns, available_ns in units(0.2):
        arrivals.arrived(stamp_ns + jump_ns, available_ns + jump_ns)
    assert not arrivals.look().ahead[..., 0].any()


@pytest.mark.parametrize(
    'hostile', [(0, 0), (-5, 10), (BEGIN_NS, BEGIN_NS - 1), (BEGIN_NS, 2**62), (2**62, 2**62)]
)
def test_times_that_cannot_be_do_no_harm(hostile: tuple[int, int]) -> None:
    arrivals = arrived(units(2.0))
    arrivals.arrived(*hostile)
    ahead = arrivals.look().ahead[..., 0]
    assert np.isfinite(ahead).all()
    assert ((ahead[0] >= 0.0) & (ahead[0] < 0.2)).all()


def test_the_picture_that_is_encoded_comes_well_before_the_end_where_slots_end_with_windows() -> (
    None
):
    seen = arrived(units(4.0, first_ms=5.0)).look((3, 2, 1))
    # Stamps at 5, 38 and 72 ms of 100, each 18 ms under way: of three the first one is encoded.
    assert seen.ahead[0, 2] == pytest.approx([0.077, 0.0103, 0.0103], abs=1e-3)
    assert seen.after[2].tolist() == [2.0, 0.0, 0.0]
    assert seen.last[2, :2] == pytest.approx(0.0103, abs=1e-3)


def test_a_window_waits_for_the_picture_that_is_encoded_and_what_is_followed_after_it() -> None:
    def finished(ahead: float, after: float, last: float) -> float:
        arrays = [np.array([value]) for value in (0.030, 0.0, 0.0, 1.0 / 30.0)]
        growing, reuse = np.array([30.0]), np.array([3.0])
        quantiles = last_unit_quantiles(
            *(*arrays, (0.0,), growing, 2, ahead, reuse, 0.1), np.array([after]), np.array([last])
        )
        return float(quantiles[0, 0])

    assert finished(0.020, 1.0, 0.0) == pytest.approx(0.030 - 0.020 + 0.003)
    # What is encoded was ready before: the last one, which is followed, is left.
    assert finished(0.060, 1.0, 0.001) == pytest.approx(0.003 - 0.001)
