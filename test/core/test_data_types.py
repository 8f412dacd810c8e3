"""Records: trails, decisions, configurations."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mmedge_ros.core.data_types import (
    CAMERA,
    RADAR,
    STANDBY,
    Box,
    Configuration,
    Decision,
    ModalityConfiguration,
    StageTiming,
    UnitFeatures,
    UnitReceipt,
    extend_trail,
)

MS = 1_000_000


def test_a_stage_begins_where_the_trail_ends() -> None:
    trail = extend_trail((StageTiming('acquisition', 0, 5),), 'queue', 9)
    assert trail == (StageTiming('acquisition', 0, 5), StageTiming('queue', 5, 9))


def test_a_clock_that_stepped_back_makes_an_empty_stage() -> None:
    trail = extend_trail((StageTiming('acquisition', 0, 5),), 'queue', 3)
    assert trail[-1] == StageTiming('queue', 5, 5)


def decision(trail: tuple[StageTiming, ...] = ()) -> Decision:
    newest = {CAMERA: 60 * MS, RADAR: 95 * MS}
    return Decision(100 * MS, 95 * MS, 'base_link', (), newest, trail=trail)


def test_publication_closes_the_trail() -> None:
    found = decision((StageTiming('acquisition', 60 * MS, 101 * MS),)).published(104 * MS)
    assert found.published_ns == 104 * MS
    assert found.trail[-1] == StageTiming('fusion', 101 * MS, 104 * MS)


def test_latency_is_counted_from_the_window_end_and_age_from_the_measurement() -> None:
    found = decision().published(108 * MS)
    assert found.latency == pytest.approx(0.008)
    assert found.ages == {CAMERA: pytest.approx(0.048), RADAR: pytest.approx(0.013)}
    assert found.trail == ()


def test_a_decision_made_early_has_a_negative_latency() -> None:
    assert decision().published(90 * MS).latency == pytest.approx(-0.01)


@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=6), st.integers(0, 10**6))
def test_a_published_trail_is_gapless_and_sums_to_the_age(ends: list[int], published: int) -> None:
    trail = (StageTiming('acquisition', 0, ends[0]),)
    for end in ends[1:]:
        trail = extend_trail(trail, 'stage', end)
    found = decision(trail).published(published)
    assert sum(s.end_ns - s.begin_ns for s in found.trail) == published
    assert all(a.end_ns == b.begin_ns for a, b in pairwise(found.trail))
    assert all(s.begin_ns <= s.end_ns for s in found.trail)


def test_a_configuration_answers_for_every_modality() -> None:
    camera = ModalityConfiguration(CAMERA, 10.0, 'small')
    configuration = Configuration(3, modalities=(camera,))
    assert configuration.of(CAMERA) is camera
    assert configuration.of(RADAR) == ModalityConfiguration(RADAR)


def test_receipt_and_features_of_a_unit_have_one_key() -> None:
    receipt = UnitReceipt(CAMERA, 7, 100, 105)
    features = UnitFeatures(CAMERA, 7, 100, 105, 'camera', ())
    assert receipt.key == features.key
    assert receipt.key != UnitReceipt(CAMERA, 7, 101, 105).key


def test_features_that_carry_nothing_are_empty_arrays_of_the_right_shape() -> None:
    features = UnitFeatures(CAMERA, 7, 100, 105, 'camera', ())
    assert features.returns.shape == (0, 5)
    assert features.embedding.shape == (0,)
    assert features.grid.shape == (0, 0, 0)


def test_a_box_has_a_width_and_a_height() -> None:
    box = Box(10.0, 20.0, 25.0, 60.0)
    assert (box.width, box.height) == (15.0, 40.0)


SET_UP = ModalityConfiguration(CAMERA, 15.0, 'large', 'cuda', 2)


def test_what_was_set_up_stays_a_bound_on_a_configuration() -> None:
    asked = Configuration(modalities=(ModalityConfiguration(CAMERA, 30.0, '', 'cuda', 1),))
    assert asked.over(SET_UP).of(CAMERA) == SET_UP
    less = ModalityConfiguration(CAMERA, 10.0, 'small', 'cuda', 3)
    assert Configuration(modalities=(less,)).over(SET_UP).of(CAMERA) == less


def test_a_modality_that_is_not_listed_stays_as_set_up() -> None:
    radar = ModalityConfiguration(RADAR, 5.0)
    made = Configuration(modalities=(radar,)).over(SET_UP)
    assert (made.of(CAMERA), made.of(RADAR)) == (SET_UP, radar)


def test_standby_is_no_rate_that_a_set_up_raises() -> None:
    rests = Configuration(modalities=(ModalityConfiguration(CAMERA, STANDBY),))
    assert rests.over(SET_UP).of(CAMERA).rate == STANDBY
    assert rests.of(CAMERA).words() == 'camera standing by'
