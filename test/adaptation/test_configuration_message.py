"""When a choice is announced, and in which words."""

from __future__ import annotations

import math

import pytest

from mmedge_ros.adaptation.configuration_message import ConfigurationMessages, reason_of
from mmedge_ros.adaptation.optimizer import Choice
from mmedge_ros.adaptation.sensing_bounds import SensingLimits
from mmedge_ros.core.data_types import NS_PER_S, STANDBY, Configuration, ModalityConfiguration

LARGE = (ModalityConfiguration('camera', 30.0, 'large'),)
SMALL = (ModalityConfiguration('camera', 10.0, 'small'),)
FREE, RESTS = SensingLimits(), SensingLimits(stands_by=True)
SECOND = NS_PER_S


def wanted(parts: tuple[ModalityConfiguration, ...], reason: str = 'why') -> Configuration:
    return Configuration(modalities=parts, reason=reason)


def test_the_first_configuration_has_number_one_and_holds_a_little_later() -> None:
    first = ConfigurationMessages(0.02, 0.5).issued(wanted(LARGE), FREE, 5 * SECOND)
    assert first is not None
    assert (first.id, first.effective_from_ns) == (1, 5 * SECOND + 20_000_000)


def test_nothing_is_published_while_nothing_changes_but_new_reasons_are() -> None:
    messages = ConfigurationMessages(0.02, 0.5)
    assert messages.issued(wanted(LARGE), FREE, 0) is not None
    assert messages.issued(wanted(LARGE), FREE, 5 * SECOND) is None
    hot = messages.issued(wanted(LARGE, '81 degrees'), FREE, 6 * SECOND)
    assert hot is not None
    assert (hot.id, hot.reason) == (2, '81 degrees')


@pytest.mark.parametrize(('window', 'changes'), [(0.25, True), (2.0, False)])
def test_a_configuration_holds_for_one_window_whatever_its_length(
    window: float, changes: bool
) -> None:
    messages = ConfigurationMessages(0.02, window)
    messages.issued(wanted(LARGE), FREE, 0)
    assert messages.may_change(SECOND) is changes
    assert (messages.issued(wanted(SMALL), FREE, SECOND) is not None) is changes


def test_time_that_went_back_does_not_hold_a_configuration_for_ever() -> None:
    messages = ConfigurationMessages(0.02, 0.5)
    messages.issued(wanted(LARGE), FREE, 1000 * SECOND)
    again = messages.issued(wanted(SMALL), FREE, SECOND)
    assert again is not None
    assert again.effective_from_ns == SECOND + 20_000_000


def test_a_camera_begins_and_ends_its_rest_without_waiting() -> None:
    messages = ConfigurationMessages(0.02, 0.5)
    messages.issued(wanted(LARGE), FREE, 0)
    rests = messages.issued(wanted(LARGE), RESTS, SECOND // 10)
    assert rests is not None
    assert rests.of('camera').rate == STANDBY
    assert rests.reason == 'the camera stands by; why'
    awake = messages.issued(wanted(LARGE), FREE, SECOND // 5)
    assert awake is not None
    assert awake.of('camera').rate == 30.0


KEPT = Choice(0, True, latency=0.03)


@pytest.mark.parametrize(
    ('choice', 'limit', 'words'),
    [
        (KEPT, 0.05, 'the most accurate that keeps 50 ms'),
        (KEPT, math.inf, 'the most accurate, no latency limit'),
        (Choice(0, False, math.inf), 0.05, 'no latency is known, the cheapest'),
        (
            Choice(0, False, 0.002, latency=0.01),
            0.008,
            'nothing keeps 8 ms; this breaks it least, by 2 ms',
        ),
        (
            Choice(0, False, latency=0.05, certainty=0.6),
            0.05,
            'keeps 50 ms only with 60 %, the most',
        ),
        (
            Choice(0, True, caps_ignored=True, latency=0.03),
            0.05,
            'the caps leave nothing and are ignored; the most accurate that keeps 50 ms',
        ),
    ],
)
def test_the_reason_says_how_far_the_limit_is_kept(
    choice: Choice, limit: float, words: str
) -> None:
    assert reason_of(choice, LARGE, LARGE, limit, ()) == words


def test_the_reason_names_caps_and_what_was_before() -> None:
    said = reason_of(KEPT, SMALL, LARGE, 0.05, ('voltage sag',))
    assert said == (
        'voltage sag; the most accurate that keeps 50 ms; instead of camera 30 Hz large'
    )
