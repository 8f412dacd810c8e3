from __future__ import annotations

import math

import numpy as np
import pytest

from mmedge_ros.adaptation.caps_policy import Caps
from mmedge_ros.adaptation.change_rules import ChangeRules
from mmedge_ros.adaptation.configuration_space import ConfigurationSpace, ModalityOptions
from mmedge_ros.adaptation.predicted_latency import PredictedLatency
from mmedge_ros.core.data_types import NS_PER_S

SPACE = ConfigurationSpace([ModalityOptions('camera', (10.0, 30.0), ('small', 'large'))])
ACCURACY = np.array([0.5, 0.7, 0.6, 0.9])
SECOND = NS_PER_S
WINDOW = 0.5


class Latencies:
    """A latency model with given medians."""

    def __init__(self) -> None:
        self.medians = [0.010, 0.020, 0.015, 0.030]

    def predict(self, now: float) -> PredictedLatency:
        return PredictedLatency(np.log(self.medians), 0.01)


def test_the_first_configuration_has_number_one_and_a_reason() -> None:
    first = ChangeRules(SPACE, Latencies(), WINDOW).step(5 * SECOND, 0.0, ACCURACY, 0.05)
    assert first is not None
    assert (first.id, first.of('camera').rate, first.of('camera').level) == (1, 30.0, 'large')
    assert first.effective_from_ns == 5 * SECOND + 20_000_000
    assert (first.predicted_accuracy, first.latency_limit) == (0.9, 0.05)
    assert first.predicted_latency == pytest.approx(0.0305, rel=0.01)
    assert first.reason == 'the most accurate that keeps 50 ms'


def test_nothing_is_published_while_nothing_changes() -> None:
    control = ChangeRules(SPACE, Latencies(), WINDOW)
    assert control.step(0, 0.0, ACCURACY, 0.05) is not None
    assert control.step(5 * SECOND, 5.0, ACCURACY, 0.05) is None


def test_a_machine_that_gets_slow_changes_the_configuration_after_a_window() -> None:
    latencies = Latencies()
    control = ChangeRules(SPACE, latencies, WINDOW)
    control.step(0, 0.0, ACCURACY, 0.05)
    latencies.medians = [0.03, 0.06, 0.036, 0.09]
    assert control.step(SECOND // 4, 0.25, ACCURACY, 0.05) is None
    second = control.step(SECOND, 1.0, ACCURACY, 0.05)
    assert second is not None
    assert second.id == 2
    assert (second.of('camera').rate, second.of('camera').level) == (30.0, 'small')
    assert second.reason == ('the most accurate that keeps 50 ms; instead of camera 30 Hz large')


def test_a_configuration_holds_for_one_window_whatever_its_length() -> None:
    for window, changes in ((0.25, True), (2.0, False)):
        latencies = Latencies()
        control = ChangeRules(SPACE, latencies, window)
        control.step(0, 0.0, ACCURACY, 0.05)
        latencies.medians = [0.03, 0.06, 0.036, 0.09]
        assert (control.step(SECOND, 1.0, ACCURACY, 0.05) is not None) is changes


def test_caps_and_their_reasons_are_in_the_configuration() -> None:
    control = ChangeRules(SPACE, Latencies(), WINDOW)
    control.step(0, 0.0, ACCURACY, 0.05)
    sagging = Caps({'camera': 10.0}, {'camera': 'small'}, ('voltage sag: 13.9 V',))
    capped = control.step(SECOND, 1.0, ACCURACY, 0.05, sagging)
    assert capped is not None
    assert (capped.of('camera').rate, capped.of('camera').level) == (10.0, 'small')
    assert capped.reason.startswith('voltage sag: 13.9 V; the most accurate that keeps 50 ms')
    released = control.step(2 * SECOND, 2.0, ACCURACY, 0.05)
    assert released is not None
    assert 'voltage' not in released.reason


def test_new_reasons_are_published_even_if_nothing_else_changes() -> None:
    control = ChangeRules(SPACE, Latencies(), WINDOW)
    first = control.step(0, 0.0, ACCURACY, 0.05)
    hot = control.step(SECOND, 1.0, ACCURACY, 0.05, Caps(reasons=('81 degrees',)))
    assert first is not None
    assert hot is not None
    assert hot.modalities == first.modalities
    assert (hot.id, hot.reason) == (2, '81 degrees; the most accurate that keeps 50 ms')


def test_what_cannot_be_kept_is_said() -> None:
    control = ChangeRules(SPACE, Latencies(), WINDOW)
    over = control.step(0, 0.0, ACCURACY, 0.008)
    assert over is not None
    assert over.reason == 'nothing keeps 8 ms; this breaks it least, by 2 ms'
    assert over.of('camera').rate == 10.0


def test_no_limit_is_nan_in_the_configuration() -> None:
    free = ChangeRules(SPACE, Latencies(), WINDOW).step(0, 0.0, ACCURACY, math.nan)
    assert free is not None
    assert math.isnan(free.latency_limit)
    assert free.reason == 'the most accurate, no latency limit'


def test_unknown_latencies_and_accuracies_still_give_a_configuration() -> None:
    latencies = Latencies()
    latencies.medians = [math.nan] * 4
    blind = ChangeRules(SPACE, latencies, WINDOW).step(0, 0.0, [], 0.05)
    assert blind is not None
    assert blind.of('camera') == SPACE.parts(0)[0]
    assert math.isnan(blind.predicted_latency)
    assert math.isnan(blind.predicted_accuracy)
    assert blind.reason == 'no latency is known, the cheapest'


def test_time_that_went_back_does_not_hold_a_configuration_for_ever() -> None:
    latencies = Latencies()
    control = ChangeRules(SPACE, latencies, WINDOW)
    control.step(1000 * SECOND, 0.0, ACCURACY, 0.05)
    latencies.medians = [0.03, 0.06, 0.045, 0.09]
    again = control.step(SECOND, 1.0, ACCURACY, 0.05)
    assert again is not None
    assert again.effective_from_ns == SECOND + 20_000_000


def test_what_replaces_a_configuration_that_is_too_slow_leaves_room_and_may_be_raised_later() -> (
    None
):
    latencies = Latencies()
    control = ChangeRules(SPACE, latencies, WINDOW)
    control.step(0, 0.0, ACCURACY, 0.05)
    latencies.medians = [0.02, 0.06, 0.044, 0.09]
    second = control.step(SECOND, 1.0, ACCURACY, 0.05)
    assert second is not None
    assert second.of('camera').rate == 10.0
    made = [control.step(round(now * SECOND), now, ACCURACY, 0.05) for now in (1.9, 2.1, 2.4)]
    assert made[:2] == [None, None]
    assert made[2] is not None
    assert made[2].of('camera').rate == 30.0
