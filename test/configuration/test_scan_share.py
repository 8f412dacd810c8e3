from __future__ import annotations

import math

import pytest

from mmedge_ros.configuration.scan_share import ScanShare


def scans(counter: ScanShare, begin: float, seconds: float, rate: float) -> float:
    """Let scans arrive, and return the instant after."""
    for number in range(round(seconds * rate)):
        now = begin + number / rate
        counter.arrived(now)
        counter.share(now)
    return begin + seconds


def test_a_radar_that_sends_half_its_scans_is_seen() -> None:
    counter = ScanShare()
    now = scans(counter, 0.0, 4.0, 20.0)
    assert counter.share(now) == pytest.approx(1.0, abs=0.05)
    now = scans(counter, now, 2.0, 10.0)
    assert counter.share(now) == pytest.approx(0.5, abs=0.05)


def test_a_radar_that_was_never_there_is_unknown() -> None:
    assert math.isnan(ScanShare().share(10.0))


def test_a_lower_rate_that_was_asked_for_is_no_stutter() -> None:
    counter = ScanShare()
    now = scans(counter, 0.0, 4.0, 20.0)
    counter.configure(10.0, now)
    assert math.isnan(counter.share(now + 0.1))
    now = scans(counter, now, 3.0, 10.0)
    assert counter.share(now) == pytest.approx(1.0, abs=0.1)


def test_what_a_rate_brought_is_remembered() -> None:
    counter = ScanShare()
    now = scans(counter, 0.0, 4.0, 20.0)
    counter.configure(10.0, now)
    now = scans(counter, now, 3.0, 10.0)
    counter.configure(0.0, now)
    now = scans(counter, now, 3.0, 8.0)
    assert counter.share(now) == pytest.approx(0.4, abs=0.05)


def test_a_radar_that_rests_under_a_lease_does_not_stutter() -> None:
    counter = ScanShare()
    now = scans(counter, 0.0, 4.0, 20.0)
    counter.excuse(now + 0.5)
    assert math.isnan(counter.share(now + 0.5))
