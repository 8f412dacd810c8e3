"""Which modality is the slow one."""

from __future__ import annotations

from hand_made_units import MS, features, unit

from mmedge_ros.data_types import CAMERA, RADAR
from mmedge_ros.skipping.slow_modality import SlowModality


def observe(subject: SlowModality, modality: str, taken_ms: float, count: int = 40) -> None:
    for number in range(count):
        of = unit(100.0 * number, modality, number)
        subject.observe(features(of), of.available_ns + round(taken_ms * MS))


def test_it_is_the_one_whose_units_take_longer() -> None:
    for slow, fast in ((CAMERA, RADAR), (RADAR, CAMERA)):
        subject = SlowModality()
        observe(subject, slow, 12.0)
        assert subject.choose() == ''  # nothing to compare it with
        observe(subject, fast, 1.0)
        assert subject.choose() == slow


def test_roles_change_only_for_a_clear_difference() -> None:
    subject = SlowModality()
    observe(subject, CAMERA, 10.0)
    observe(subject, RADAR, 1.0)
    assert subject.choose() == CAMERA
    observe(subject, RADAR, 12.0)
    assert subject.choose() == CAMERA
    observe(subject, RADAR, 20.0)
    assert subject.choose() == RADAR


def test_a_latency_model_is_believed_before_measurements() -> None:
    subject = SlowModality(lambda: {CAMERA: 0.001, RADAR: 0.05, 'sonar': 9.0})
    observe(subject, CAMERA, 12.0)
    observe(subject, RADAR, 1.0)
    assert subject.choose() == RADAR


def test_times_that_cannot_be_are_not_learned_from() -> None:
    subject = SlowModality()
    observe(subject, RADAR, 1.0)
    observe(subject, CAMERA, -5.0)
    observe(subject, CAMERA, 1e6)
    assert subject.choose() == ''
    observe(subject, CAMERA, 5.0)
    assert subject.choose() == CAMERA
    subject.reset()
    assert subject.choose() == ''
