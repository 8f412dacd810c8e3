"""Stamps lie on the radar's even grid however unevenly the bytes arrive."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mmedge_ros.core.data_types import NS_PER_S
from mmedge_ros.sensing.radar.stamps import FrameStamps

BEGIN = 1_700_000_000 * NS_PER_S
PERIOD = NS_PER_S // 20
MS = 1_000_000


def errors_ms(
    delays_ms: list[float], nominal: float = 0.05, true_ns: float = PERIOD
) -> list[float]:
    """How far the stamps of delayed frames are from when they were measured."""
    stamps = FrameStamps(nominal)
    found = []
    for number, delay in enumerate(delays_ms):
        truth = BEGIN + round(number * true_ns)
        stamp = stamps.stamp(100 + number, truth + round(delay * MS))
        assert stamp is not None
        found.append((stamp - truth) / MS)
    assert stamps.lost == stamps.restarts == 0
    return found


def test_even_arrivals_are_left_as_they_are() -> None:
    assert errors_ms([0.0] * 50) == [0.0] * 50


def test_jitter_is_taken_out() -> None:
    delays = np.random.default_rng(1).exponential(6.0, 300).tolist()
    found = errors_ms(delays)
    assert np.std(delays) > 5.0
    assert np.std(found[20:]) < 0.5
    assert min(found) >= 0.0
    assert max(found[20:]) < 2.0


@pytest.mark.parametrize('drift', [-3e-4, 3e-4])
def test_clocks_that_run_apart_are_followed(drift: float) -> None:
    delays = np.random.default_rng(2).exponential(3.0, 600).tolist()
    found = errors_ms(delays, true_ns=PERIOD * (1 + drift))
    assert np.abs(found[20:]).max() < 2.5


@pytest.mark.parametrize('nominal', [0.0, 0.1, 0.04, 0.0485])
def test_a_period_that_is_not_the_nominal_one_is_measured(nominal: float) -> None:
    delays = np.random.default_rng(3).exponential(3.0, 300).tolist()
    found = errors_ms(delays, nominal)
    assert np.abs(found[100:]).max() < 3.0


def test_a_burst_after_a_stall_is_put_where_it_belongs() -> None:
    # For a second nothing is read; then all that waited comes at once.
    delays = [0.0] * 40 + [1000.0 - 50.0 * n for n in range(20)] + [0.0] * 40
    assert max(errors_ms(delays)) < 0.01


def test_a_burst_at_the_beginning_is_forgotten_soon() -> None:
    delays = [300.0 - 50.0 * n for n in range(6)] + [0.0] * 20
    assert errors_ms(delays)[6:] == pytest.approx([0.0] * 20, abs=1e-4)


def test_a_pause_of_the_sensor_moves_the_grid() -> None:
    stamps = FrameStamps(0.05)
    for number in range(30):
        stamps.stamp(number, BEGIN + number * PERIOD)
    # Numbers go on where they stopped, three seconds and a half period later.
    late = [
        (stamps.stamp(number, truth) or 0) - truth
        for number in range(30, 50)
        for truth in [BEGIN + number * PERIOD + 3 * NS_PER_S + PERIOD // 2]
    ]
    assert late[-1] == 0
    assert late.count(0) >= 12


def test_missing_numbers_are_lost_frames_and_stay_on_the_grid() -> None:
    stamps = FrameStamps(0.05)
    for number in (1, 2, 3, 7, 8, 20):
        assert stamps.stamp(number, BEGIN + number * PERIOD) == BEGIN + number * PERIOD
    assert (stamps.lost, stamps.restarts) == (14, 0)


def test_a_repeated_number_is_no_frame() -> None:
    stamps = FrameStamps(0.05)
    assert stamps.stamp(5, BEGIN) == BEGIN
    assert stamps.stamp(5, BEGIN + PERIOD) is None


@pytest.mark.parametrize('number', [1, 4_000_000_000])
def test_numbers_that_cannot_follow_begin_anew_and_lose_nothing(number: int) -> None:
    stamps = FrameStamps(0.05)
    for n in range(100, 120):
        stamps.stamp(n, BEGIN + n * PERIOD)
    now = BEGIN + 5 * NS_PER_S + 120 * PERIOD
    assert stamps.stamp(number, now) == now
    assert (stamps.lost, stamps.restarts) == (0, 1)


def test_a_reset_forgets_the_grid_but_not_the_counts() -> None:
    stamps = FrameStamps(0.05)
    stamps.stamp(1, BEGIN)
    stamps.stamp(3, BEGIN + 2 * PERIOD)
    stamps.reset(0.1)
    assert stamps.stamp(1, BEGIN + NS_PER_S + 7) == BEGIN + NS_PER_S + 7
    assert (stamps.lost, stamps.restarts) == (1, 0)


@settings(max_examples=40)
@given(
    st.lists(
        st.tuples(st.integers(0, 2**32 - 1), st.integers(-(2**40), 2**40)), min_size=1, max_size=90
    ),
    st.sampled_from([0.0, 0.05, 0.2]),
)
def test_stamps_rise_and_are_never_later_than_the_arrival(
    frames: list[tuple[int, int]], period: float
) -> None:
    stamps = FrameStamps(period)
    run, latest, before = 0, 0, 0
    for number, offset in frames:
        stamp = stamps.stamp(number, BEGIN + offset)
        if stamp is None:
            continue
        if stamps.restarts != run:
            run, latest, before = stamps.restarts, 0, 0
        latest = max(latest, BEGIN + offset)
        assert before < stamp <= latest + len(frames)
        before = stamp
