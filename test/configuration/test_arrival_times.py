"""When units come before the end of a window, told from those that were seen."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pytest

from mmedge_ros.configuration.arrival_times import ArrivalTimes
from mmedge_ros.data_types import NS_PER_S
from mmedge_ros.sensing.rate_control import RateControl

MS = 1_000_000
BEGIN_NS = 1_700_000_000 * NS_PER_S
COUNTS = np.array([[1.0], [2.0], [3.0], [6.0]])
RATES = (10.0, 20.0, 30.0)
STRIDE_MS = 100.0


def units(
    seconds: float, rate: float = 30.0, first_ms: float = 0.0, delay_ms: float = 18.0
) -> list[tuple[int, int]]:
    """Stamps and arrivals of a sensor, in ns."""
    found = []
    for number in range(round(seconds * rate)):
        stamp_ns = BEGIN_NS + round(first_ms * MS + number * NS_PER_S / rate)
        found.append((stamp_ns, stamp_ns + round(delay_ms * MS)))
    return found


def heard(given: Iterable[tuple[int, int]], rates: tuple[float, ...] = RATES) -> ArrivalTimes:
    arrivals = ArrivalTimes(rates, COUNTS, STRIDE_MS / 1e3)
    for stamp_ns, available_ns in given:
        arrivals.arrived(stamp_ns, available_ns)
    return arrivals


def simulated(given: list[tuple[int, int]], rate: float, count: int) -> float:
    """Least time from the count-th last unit to a window's end, beyond the intervals."""
    control = RateControl(round(NS_PER_S / 30.0))
    passed = [available for stamp, available in given if control.admits(stamp, rate)]
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
    ahead = heard(given).ahead()
    for column, rate in enumerate(RATES):
        for row, count in enumerate((1, 2, 3)):
            assert ahead[row, column] == pytest.approx(simulated(given, rate, count), abs=1e-6)


def test_at_a_low_rate_the_last_picture_comes_well_before_the_end() -> None:
    slow, _, fast = heard(units(2.0, first_ms=10.0)).ahead()[0]
    # Stamps at 10, 43, 77 ms; 43 is nearest the slot's middle, and is there at 61 ms.
    assert slow == pytest.approx(0.0387, abs=1e-3)
    assert fast == pytest.approx(0.0053, abs=1e-3)


def test_a_unit_that_sometimes_just_makes_it_counts_as_one_that_does() -> None:
    given = [
        (stamp_ns, available_ns + (number // 3 % 4 == 0) * 14 * MS)
        for number, (stamp_ns, available_ns) in enumerate(units(2.0))
    ]
    assert heard(given).ahead()[0, 2] < 0.0015


def test_too_little_says_nothing() -> None:
    assert not heard(units(0.2)).ahead().any()
    assert not heard([]).ahead().any()


def test_what_is_not_seen_any_more_says_nothing() -> None:
    arrivals = heard(units(2.0))
    assert arrivals.ahead().any()
    assert not arrivals.ahead().any()


def test_a_rate_above_what_is_seen_stays_at_the_worst() -> None:
    paused = units(2.0, rate=10.0, first_ms=30.0)
    slow, middle, fast = heard(paused).ahead()[0]
    assert slow == pytest.approx(0.052, abs=1e-3)
    assert middle == fast == 0.0


def test_another_clock_begins_anew() -> None:
    arrivals = heard(units(2.0))
    jump_ns = -3600 * NS_PER_S
    for stamp_ns, available_ns in units(0.2):
        arrivals.arrived(stamp_ns + jump_ns, available_ns + jump_ns)
    assert not arrivals.ahead().any()


@pytest.mark.parametrize(
    'hostile', [(0, 0), (-5, 10), (BEGIN_NS, BEGIN_NS - 1), (BEGIN_NS, 2**62), (2**62, 2**62)]
)
def test_times_that_cannot_be_do_no_harm(hostile: tuple[int, int]) -> None:
    arrivals = heard(units(2.0))
    arrivals.arrived(*hostile)
    ahead = arrivals.ahead()
    assert np.isfinite(ahead).all()
    assert ((ahead[0] >= 0.0) & (ahead[0] < 0.2)).all()
