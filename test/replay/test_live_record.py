"""What a live graph published, brought back into the time of the recording."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hand_made_units import MS, at, features, receipt, unit

from mmedge_ros.core.data_types import (
    CAMERA,
    Decision,
    ResultKind,
    StageTiming,
    UnitFeatures,
    UnitOutcome,
)
from mmedge_ros.core.run_record import RunRecord, UnitCounts
from mmedge_ros.replay.live_record import LiveRecord
from mmedge_ros.replay.playback import PlaybackStatus

STRIDE = 100 * MS
OFFSET = 700_000 * STRIDE


def live(ms: float) -> int:
    """An instant of the recording as the live graph stamped it."""
    return at(ms) + OFFSET


def decision(end: float, latency: float = 8.0, stamp: float | None = None) -> Decision:
    stamp = end - 40 if stamp is None else stamp
    trail = (
        StageTiming('acquisition', live(stamp), live(stamp + 5)),
        StageTiming('fusion', live(stamp + 5), live(end + latency)),
    )
    newest = {CAMERA: live(stamp)}
    published = live(end + latency)
    return Decision(
        live(end), live(stamp), 'base_link', (), newest, trail=trail, published_ns=published
    )


def encoded(available: float, sequence: int = 0, took: float = 20.0) -> UnitFeatures:
    found = features(unit(available, sequence=sequence), grid=np.ones((2, 3, 4), np.float16))
    shifted = {
        'stamp_ns': found.stamp_ns + OFFSET,
        'available_ns': found.available_ns + OFFSET,
        'trail': (StageTiming('encode', live(available), live(available + took)),),
    }
    for name, value in shifted.items():
        object.__setattr__(found, name, value)
    return found


def status(finished: bool = True, **counts: UnitCounts) -> PlaybackStatus:
    return PlaybackStatus('bag', OFFSET, 1.0, at(0), at(2000), finished, counts)


def filled(record: LiveRecord, windows: int = 20) -> RunRecord:
    found = RunRecord('bag', 'live', 0.05, 0.5, 0.1, windows=windows)
    record.fill(found, at(30), at(1980))
    return found


def test_everything_is_carried_back_into_bag_time() -> None:
    record = LiveRecord()
    record.status = status()
    record.add_decision(decision(100))
    record.add_features(encoded(60))
    found = filled(record)
    (one,) = found.decisions
    assert one.window_end_ns == at(100)
    assert one.state_ns == one.newest_ns[CAMERA] == at(60)
    assert one.published_ns == at(108)
    assert [(s.begin_ns, s.end_ns) for s in one.trail] == [(at(60), at(65)), (at(65), at(108))]
    (each,) = found.features
    assert (each.stamp_ns, each.available_ns) == (at(55), at(60))
    assert each.trail == (StageTiming('encode', at(60), at(80)),)
    assert one.latency == pytest.approx(0.008)


def test_updates_are_kept_apart_and_are_no_decisions() -> None:
    record = LiveRecord()
    record.status = status()
    record.add_decision(decision(100))
    record.add_decision(replace(decision(200), kind=ResultKind.UPDATE))
    record.add_decision(replace(decision(2600), kind=ResultKind.UPDATE))
    assert record.decided == 1
    assert record.newest is not None
    assert record.newest.window_end_ns == live(100)
    found = filled(record)
    assert [d.window_end_ns for d in found.decisions] == [at(100)]
    assert [u.window_end_ns for u in found.updates] == [at(200)]
    assert (found.windows, found.dropped) == (20, 19)


def test_units_of_the_last_decision_may_come_after_it() -> None:
    record = LiveRecord()
    assert not record.lacks_units()
    record.add_decision(decision(100, stamp=55))
    assert record.lacks_units()
    record.add_features(encoded(60))
    assert not record.lacks_units()


def test_grids_are_not_kept() -> None:
    record = LiveRecord()
    record.add_features(encoded(60))
    assert filled(record).features[0].grid.size == 0


def test_decisions_before_and_after_the_recording_are_left_out() -> None:
    record = LiveRecord()
    record.status = status()
    for end in range(-300, 2600, 100):
        record.add_decision(decision(end))
    found = filled(record)
    ends = [(d.window_end_ns - at(0)) // MS for d in found.decisions]
    assert ends == list(range(100, 2001, 100))
    assert found.dropped == 0


def test_a_first_window_that_never_held_a_unit_was_not_dropped() -> None:
    record = LiveRecord()
    record.status = status()
    record.add_features(encoded(102))  # recorded just before the first end, received after it
    for end in range(200, 2001, 100):
        record.add_decision(decision(end))
    found = filled(record)
    assert (found.windows, found.dropped) == (19, 0)


def test_the_first_second_is_warm_up() -> None:
    record = LiveRecord()
    record.status = status()
    for end in range(100, 2001, 100):
        record.add_decision(decision(end))
    assert filled(record).warmup == 10
    assert filled(LiveRecord()).warmup == 0


def test_what_became_of_a_unit_replaces_that_it_arrived_in_either_order() -> None:
    record = LiveRecord()
    outcomes = [UnitOutcome.RECEIVED, UnitOutcome.DROPPED]
    for sequence, order in ((1, outcomes), (2, outcomes[::-1])):
        for outcome in order:
            record.add_receipt(receipt(unit(50, sequence=sequence), outcome))
    counts = filled(record).units[CAMERA]
    assert (counts.received, counts.dropped) == (2, 2)


def test_units_are_counted_by_what_became_of_them() -> None:
    record = LiveRecord()
    played = UnitCounts(captured=20, transferred=10, skipped=4, thinned=6)
    record.status = status(camera=played)
    for sequence in range(4):
        each = encoded(60 + 50 * sequence, sequence)
        record.add_receipt(receipt(each))
        record.add_features(each)
    for sequence, outcome in enumerate(
        [UnitOutcome.SKIPPED, UnitOutcome.DROPPED, UnitOutcome.FAILED, UnitOutcome.RECEIVED], 4
    ):
        record.add_receipt(receipt(encoded(60 + 50 * sequence, sequence), outcome))
    counts = filled(record).units[CAMERA]
    assert (counts.captured, counts.transferred, counts.thinned) == (20, 10, 6)
    assert (counts.received, counts.encoded) == (8, 4)
    assert counts.skipped == 4 + 1, 'by the player, and by the encoder'
    assert (counts.dropped, counts.failed) == (1, 1)
    assert counts.lost == 2 + 1, 'never received, and received but never heard of again'
    assert played.skipped == 4, 'the status itself is left alone'


def test_a_unit_whose_receipt_was_missed_is_not_lost() -> None:
    record = LiveRecord()
    record.status = status(camera=UnitCounts(captured=1, transferred=1))
    record.add_features(encoded(60))
    counts = filled(record).units[CAMERA]
    assert (counts.received, counts.encoded, counts.lost) == (1, 1, 0)


def test_a_unit_that_was_ready_after_its_first_decision_is_late() -> None:
    record = LiveRecord()
    record.status = status()
    record.add_decision(decision(100, latency=50))
    record.add_features(encoded(95, 1, took=54))
    record.add_features(encoded(96, 2, took=56))
    record.add_features(encoded(195, 3, took=99))
    assert filled(record).units[CAMERA].late == 1


def test_no_unit_is_late_for_a_window_that_was_decided_before_its_end() -> None:
    record = LiveRecord()
    record.status = status()
    record.add_decision(decision(100, latency=-30))
    record.add_features(encoded(60, 0, took=30))
    record.add_features(encoded(80, 1, took=10))
    assert filled(record).units[CAMERA].late == 0


def test_progress_is_the_share_of_the_recording_that_was_decided() -> None:
    record = LiveRecord()
    assert record.share() == 0.0
    record.status = status(finished=False)
    assert record.share() == 0.0
    for end, share in ((-500, 0.0), (500, 0.25), (2000, 1.0), (9000, 1.0)):
        record.add_decision(decision(end))
        assert record.share() == pytest.approx(share)
    assert record.decided == 4
    assert record.newest is not None
    assert record.newest.window_end_ns == live(9000)


def test_it_is_complete_when_the_window_of_the_last_unit_was_decided() -> None:
    record = LiveRecord()
    last = at(1950)
    record.status = status(finished=True)
    assert not record.is_complete(last, STRIDE)
    record.add_decision(decision(1900))
    assert not record.is_complete(last, STRIDE)
    record.add_decision(decision(2000))
    assert record.is_complete(last, STRIDE)
    record.status = status(finished=False)
    assert not record.is_complete(last, STRIDE)
