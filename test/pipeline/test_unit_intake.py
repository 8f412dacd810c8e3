"""The door of an encoder: queue, receipts, and stamps that cannot be true."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hand_made_units import MS, at, unit
from hypothesis import given
from hypothesis import strategies as st

from mmedge_ros.core.data_types import (
    CAMERA,
    Configuration,
    ModalityConfiguration,
    SkipDecision,
    UnitOutcome,
)
from mmedge_ros.pipeline.unit_intake import UnitIntake, acquisition_trail, plausible_stamp

RECEIVED, SKIPPED, DROPPED = UnitOutcome.RECEIVED, UnitOutcome.SKIPPED, UnitOutcome.DROPPED


def offered(intake: UnitIntake, number: int) -> list[tuple[int, UnitOutcome]]:
    each = unit(50.0 * number, sequence=number)
    return [(r.sequence, r.outcome) for r in intake.offer(each)]


def taken(intake: UnitIntake) -> list[int]:
    found = []
    while (admitted := intake.take()) is not None:
        found.append(admitted.unit.sequence)
    return found


def test_a_full_queue_gives_way_to_the_newest_unit_and_says_so_after_the_receipt() -> None:
    intake = UnitIntake(CAMERA, capacity=2)
    offered(intake, 0)
    offered(intake, 1)
    assert offered(intake, 2) == [(2, RECEIVED), (0, DROPPED), (1, DROPPED)]
    assert intake.dropped == 2
    assert offered(intake, 3) == [(3, RECEIVED), (2, DROPPED)]
    assert taken(intake) == [3]


def test_an_encoder_that_keeps_up_again_gets_every_unit_again() -> None:
    intake = UnitIntake(CAMERA, capacity=2)
    for number in range(3):
        offered(intake, number)
    assert intake.take().unit.sequence == 2
    # Not yet: units came while the encoder was at work.
    offered(intake, 3)
    assert offered(intake, 4) == [(4, RECEIVED), (3, DROPPED)]
    assert taken(intake) == [4]
    offered(intake, 5)
    assert offered(intake, 6) == [(6, RECEIVED)]
    assert taken(intake) == [5, 6]


def test_a_unit_is_taken_under_the_configuration_of_its_stamp() -> None:
    intake = UnitIntake(CAMERA)
    part = ModalityConfiguration(CAMERA, level='small')
    intake.control.schedule.add(Configuration(5, at(100), (part,)))
    intake.offer(unit(101, sequence=0, delay=5))
    intake.offer(unit(105, sequence=1, delay=5))
    before, after = intake.take(), intake.take()
    assert before is not None
    assert after is not None
    assert (before.configuration_id, before.configuration.level) == (0, '')
    assert (after.configuration_id, after.configuration) == (5, part)


def test_thinned_units_are_counted_and_announced_as_such() -> None:
    intake = UnitIntake(CAMERA, capacity=100, native_period_ns=50 * MS)
    part = ModalityConfiguration(CAMERA, rate=5.0)
    intake.control.schedule.add(Configuration(1, at(0), (part,)))
    receipts = [r for number in range(1, 41) for r in offered(intake, number)]
    assert intake.thinned == 30
    outcomes = [outcome for _, outcome in receipts]
    assert outcomes.count(UnitOutcome.THINNED) == 30
    assert outcomes.count(RECEIVED) == len(taken(intake)) == 10


def test_a_skipped_unit_gets_a_receipt_that_says_so() -> None:
    intake = UnitIntake(CAMERA)
    intake.control.lease(SkipDecision(CAMERA, at(0), at(100), at(0)))
    assert offered(intake, 1) == [(1, SKIPPED)]
    assert offered(intake, 3) == [(3, RECEIVED)]
    assert intake.skipped == 1
    assert taken(intake) == [3]


# ------------------------------------------------------------------------------ stamps


@pytest.mark.parametrize(
    'stamp_ns',
    [0, -1, at(11 + 50), at(60_000), at(50 - 2001), at(-1e12), 2**62],
)
def test_a_stamp_that_cannot_be_true_is_replaced_by_the_arrival_and_counted(
    stamp_ns: int,
) -> None:
    intake = UnitIntake(CAMERA)
    each = replace(unit(50), stamp_ns=stamp_ns)
    (receipt,) = intake.offer(each)
    admitted = intake.take()
    assert admitted is not None
    assert intake.implausible_stamps == 1
    assert admitted.unit.stamp_ns == receipt.stamp_ns == at(50)
    assert {(s.begin_ns, s.end_ns) for s in admitted.unit.trail} == {(at(50), at(50))}


@pytest.mark.parametrize('delay', [-9.9, 0.0, 30.0, 1999.0])
def test_a_stamp_of_a_slow_sensor_or_a_clock_slightly_ahead_is_believed(delay: float) -> None:
    intake = UnitIntake(CAMERA)
    each = unit(3000, delay=delay)
    (receipt,) = intake.offer(each)
    assert receipt.stamp_ns == each.stamp_ns
    assert intake.implausible_stamps == 0


@given(st.integers(-(2**62), 2**62), st.integers(-(2**62), 2**62), st.integers(-(2**62), 2**62))
def test_a_trail_has_neither_gaps_nor_negative_stages(
    stamp_ns: int, sent_ns: int, received_ns: int
) -> None:
    first, second = acquisition_trail(stamp_ns, sent_ns, received_ns)
    assert first.begin_ns == stamp_ns
    assert first.begin_ns <= first.end_ns == second.begin_ns <= second.end_ns
    assert second.end_ns == max(stamp_ns, received_ns)


@given(st.integers(-(2**62), 2**62), st.integers(-(2**62), 2**62))
def test_a_unit_never_leaves_with_a_stamp_far_from_its_arrival(
    stamp_ns: int, available_ns: int
) -> None:
    intake = UnitIntake(CAMERA)
    intake.offer(replace(unit(50), stamp_ns=stamp_ns, available_ns=available_ns))
    admitted = intake.take()
    assert admitted is not None
    assert plausible_stamp(admitted.unit.stamp_ns, available_ns)
    assert intake.implausible_stamps == (admitted.unit.stamp_ns != stamp_ns)
