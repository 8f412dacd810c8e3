"""Which units a window holds, as it comes and as it may come."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hand_made_features import BEGIN_NS, DELAY_NS, LEVELS, STRIDE_NS, hand_made_flight
from hypothesis import given, settings
from hypothesis import strategies as st

from mmedge_lab.training.fusion_settings import FusionSettings, WindowRandomness
from mmedge_lab.training.window_set import (
    WindowConfiguration,
    WindowSet,
    epoch_steps,
    window_batches,
)
from mmedge_ros.core.data_types import CAMERA, RADAR

FLIGHT = hand_made_flight(seconds=2.0)
WINDOWS = WindowSet([FLIGHT], 0.5, 0.1)
CALM = WindowRandomness(0.0, 0.0, 0.0, 0.0, 0.0)
END_NS = BEGIN_NS + 12 * STRIDE_NS
NATIVE = {CAMERA: 0.0, RADAR: 0.0}


def drawn(randomness: WindowRandomness, seed: int, rates: dict[str, float] = NATIVE):
    return WINDOWS.drawn(0, END_NS, rates, randomness, np.random.default_rng(seed))


@pytest.mark.parametrize(
    ('configuration', 'camera', 'radar'),
    [
        (WindowConfiguration(), 15, 10),
        (WindowConfiguration(camera_rate=20.0, radar_rate=10.0), 10, 5),
        (WindowConfiguration(camera_rate=10.0, radar_rate=5.0), 5, 2),
    ],
)
def test_a_window_holds_as_many_units_as_the_rates_allow(
    configuration: WindowConfiguration, camera: int, radar: int
) -> None:
    window = WINDOWS.at(0, END_NS, configuration)
    assert abs(len(window.units[CAMERA].places) - camera) <= 1
    assert abs(len(window.units[RADAR].places) - radar) <= 1


def test_units_belong_to_a_window_by_when_they_came() -> None:
    window = WINDOWS.at(0, END_NS, WindowConfiguration())
    came = FLIGHT.units[CAMERA].available_ns[window.units[CAMERA].places]
    assert came.min() > END_NS - 500_000_000
    assert came.max() <= END_NS
    assert (WINDOWS.seconds(window, CAMERA) >= DELAY_NS / 1e9 - 1e-6).all()


def test_a_result_refers_to_the_newest_picture_or_to_the_end() -> None:
    window = WINDOWS.at(0, END_NS, WindowConfiguration())
    newest = FLIGHT.units[CAMERA].stamps_ns[window.units[CAMERA].places[-1]]
    assert WINDOWS.reference_ns(window) == newest
    silent = drawn(replace(CALM, no_camera=1.0), 0)
    assert not len(silent.units[CAMERA].places)
    assert WINDOWS.reference_ns(silent) == END_NS


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**31), st.sampled_from([0.0, 5.0, 10.0, 20.0]), st.integers(0, 30))
def test_whatever_is_drawn_holds_units_in_order_and_its_truth_is_known(
    seed: int, rate: float, end: int
) -> None:
    wild = WindowRandomness(1.0, 1.0, 1.0, 0.3, 0.3)
    flight, end_ns = WINDOWS.ends[end % len(WINDOWS.ends)]
    rng = np.random.default_rng(seed)
    window = WINDOWS.drawn(flight, end_ns, {CAMERA: rate, RADAR: rate}, wild, rng)
    assert sum(len(window.units[kind].places) for kind in NATIVE)
    assert WINDOWS.reference_ns(window) in FLIGHT.truth
    for kind in NATIVE:
        stamps = FLIGHT.units[kind].stamps_ns[window.units[kind].places]
        assert (np.diff(stamps) > 0).all()
        assert (window.units[kind].levels < len(LEVELS)).all()


def test_units_that_could_not_be_encoded_are_in_no_window() -> None:
    units = dict(FLIGHT.units)
    usable = np.ones(len(units[CAMERA].stamps_ns), np.bool_)
    usable[::2] = False
    units[CAMERA] = units[CAMERA]._replace(usable=usable)
    windows = WindowSet([replace(FLIGHT, units=units)], 0.5, 0.1)
    places = windows.at(0, END_NS, WindowConfiguration()).units[CAMERA].places
    assert len(places)
    assert (places % 2 == 1).all()


def test_an_epoch_has_windows_of_its_own_that_repeat_with_the_seed() -> None:
    chosen = FusionSettings(batch=2, thinning=2, seed=5)
    assert epoch_steps(WINDOWS, chosen) == len(WINDOWS.ends) // 4

    def objects(settings: FusionSettings, epoch: int) -> list[list[float]]:
        batches = list(window_batches(WINDOWS, settings, epoch))
        assert len(batches) == epoch_steps(WINDOWS, settings)
        return [batch.objects.ravel().tolist() for batch in batches]

    assert objects(chosen, 0) == objects(chosen, 0)
    assert objects(chosen, 0) != objects(chosen, 1)
    assert objects(chosen, 0) != objects(replace(chosen, seed=6), 0)
