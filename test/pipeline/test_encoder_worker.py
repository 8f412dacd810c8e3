"""An encoder in a thread of its own, synchronised by events."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
from hand_made_units import MS, Collected, FakeEncoder, Gate, ManualClock, at, unit

from mmedge_ros.core.data_types import (
    CAMERA,
    Configuration,
    Decision,
    ModalityConfiguration,
    SkipDecision,
    Unit,
    UnitFeatures,
    UnitOutcome,
    UnitReceipt,
)
from mmedge_ros.encoding import EncodingError
from mmedge_ros.encoding.track_recogniser import Recognised
from mmedge_ros.pipeline.encoder_worker import EncoderWorker
from mmedge_ros.sensing import SensingError

RECEIVED, DROPPED, FAILED = UnitOutcome.RECEIVED, UnitOutcome.DROPPED, UnitOutcome.FAILED


class FollowingEncoder(FakeEncoder):
    """Follows what it saw in every second unit."""

    def encode(
        self, unit: Unit, configuration: ModalityConfiguration, configuration_id: int
    ) -> UnitFeatures:
        features = super().encode(unit, configuration, configuration_id)
        return replace(features, followed=unit.sequence % 2 == 1)


@contextmanager
def running(
    encoder: FakeEncoder, out: Collected, clock: ManualClock | None = None, capacity: int = 2
) -> Iterator[EncoderWorker]:
    """A worker whose receipts and features arrive, in order, in ``out``."""
    worker = EncoderWorker(encoder, clock or ManualClock(at(0)), out, out, capacity)
    worker.start()
    try:
        yield worker
    finally:
        worker.stop(10.0)
        assert not worker._thread.is_alive()


def story(items: list[Any]) -> list[tuple[int, UnitOutcome | str]]:
    """Sequence and what was said of it."""
    return [(i.sequence, i.outcome if isinstance(i, UnitReceipt) else 'features') for i in items]


def test_receiving_never_waits_for_inference_and_what_waits_gives_way_to_the_newest() -> None:
    gate, out = Gate(), Collected()
    with running(FakeEncoder(work=gate), out) as worker:
        worker.offer(unit(0, sequence=0))
        gate.wait_until_entered()
        for number in range(1, 5):
            worker.offer(unit(50.0 * number, sequence=number))
        assert story(out.items) == [
            (0, RECEIVED),
            (1, RECEIVED),
            (2, RECEIVED),
            (3, RECEIVED),
            (1, DROPPED),
            (2, DROPPED),
            (4, RECEIVED),
            (3, DROPPED),
        ]
        gate.opened.release(2)
        assert story(out.wait_for(10)[8:]) == [(n, 'features') for n in (0, 4)]


def test_the_trail_tells_how_long_a_unit_waited_and_was_worked_on() -> None:
    clock, gate, out = ManualClock(at(12)), Gate(), Collected()
    with running(FakeEncoder(work=gate), out, clock) as worker:
        worker.offer(unit(10, delay=5))
        gate.wait_until_entered()
        clock.ns = at(31)
        gate.opened.release()
        found = out.wait_for(2)[1]
    stages = [(s.stage, (s.begin_ns - at(0)) / MS, (s.end_ns - at(0)) / MS) for s in found.trail]
    assert stages == [
        ('acquisition', 5, 9),
        ('transport', 9, 10),
        ('queue', 10, 12),
        ('encode', 12, 31),
    ]


@pytest.mark.parametrize('error', [SensingError('no picture'), EncodingError('no picture')])
def test_a_unit_that_cannot_be_encoded_fails_and_the_next_one_is_encoded(
    error: Exception,
) -> None:
    def work(each: Unit) -> None:
        if each.sequence == 0:
            raise error

    out = Collected()
    with running(FakeEncoder(work=work), out) as worker:
        worker.offer(unit(0, sequence=0))
        out.wait_for(2)
        worker.offer(unit(50, sequence=1))
        items = out.wait_for(4)
    assert story(items) == [(0, RECEIVED), (0, FAILED), (1, RECEIVED), (1, 'features')]
    assert items[1].reason == 'no picture'
    assert worker.failures == {'no picture': 1}
    assert worker.encoded == 1


@pytest.mark.parametrize('error', [ZeroDivisionError('by zero'), MemoryError(), KeyError('x')])
def test_an_error_nobody_foresaw_costs_one_unit_and_is_told(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    def work(each: Unit) -> None:
        if each.sequence < 2:
            raise error

    out = Collected()
    with running(FakeEncoder(work=work), out) as worker, caplog.at_level(logging.ERROR):
        for number in range(3):
            worker.offer(unit(50.0 * number, sequence=number))
            out.wait_for(2 * number + 2)
    assert story(out.items)[1::2] == [(0, FAILED), (1, FAILED), (2, 'features')]
    assert type(error).__name__ in out.items[1].reason
    assert worker.failures.total() == 2
    assert len(caplog.records) == 1, 'said once, not for each unit'
    assert caplog.records[0].exc_info is not None


def test_features_that_cannot_be_handed_on_do_not_end_the_worker() -> None:
    handed_on = Collected()

    def on_features(found: UnitFeatures) -> None:
        if found.sequence == 0:
            handed_on('lost')
            raise RuntimeError('the middleware is gone')
        handed_on(found.sequence)

    worker = EncoderWorker(FakeEncoder(), ManualClock(), lambda _: None, on_features)
    worker.start()
    worker.offer(unit(0, sequence=0))
    handed_on.wait_for(1)
    worker.offer(unit(50, sequence=1))
    assert handed_on.wait_for(2) == ['lost', 1]
    worker.stop(10.0)
    assert worker.failures.total() == 1


def test_stopping_finishes_the_unit_in_work_and_drops_the_others() -> None:
    gate, out = Gate(), Collected()
    encoder = FakeEncoder(work=gate)
    with running(encoder, out) as worker:
        worker.offer(unit(0, sequence=0))
        gate.wait_until_entered()
        worker.offer(unit(50, sequence=1))
        stopping = threading.Thread(target=worker.stop, args=(10.0,))
        stopping.start()
        while not worker._stopping:  # set before the thread waits for the unit in work
            stopping.join(0.001)
        gate.opened.release()
        stopping.join(10)
        assert not stopping.is_alive()
    assert [call[0].sequence for call in encoder.calls] == [0]
    assert story(out.items)[-1] == (0, 'features')


def test_configurations_and_leases_apply_by_stamp() -> None:
    encoder, out = FakeEncoder(), Collected()
    with running(encoder, out, capacity=10) as worker:
        part = ModalityConfiguration(CAMERA, level='large')
        worker.configure(Configuration(3, at(100), (part,)))
        worker.lease(SkipDecision(CAMERA, at(200), at(300), at(200)))
        for number, available in enumerate((50, 150, 250, 350)):
            worker.offer(unit(available, sequence=number, delay=5))
        out.wait_for(7)
    assert [(c[0].sequence, c[1].level, c[2]) for c in encoder.calls] == [
        (0, '', 0),
        (1, 'large', 3),
        (3, 'large', 3),
    ]
    assert (2, UnitOutcome.SKIPPED) in story(out.items)


def test_a_followed_unit_is_counted_apart_and_has_a_stage_of_its_own() -> None:
    out = Collected()
    with running(FollowingEncoder(), out) as worker:
        for number in range(2):
            worker.offer(unit(50.0 * number, sequence=number))
            out.wait_for(2 * number + 2)
    features = [item for item in out.items if isinstance(item, UnitFeatures)]
    assert [f.trail[-1].stage for f in features] == ['encode', 'follow']
    assert (worker.encoded, worker.followed) == (1, 1)


class FakeRecogniser:
    """Notes the decisions whose tracks it is shown, and waits at a gate if there is one."""

    def __init__(self, fails: bool = False) -> None:
        self.seen: list[int] = []
        self._fails = fails

    def recognise(self, decision: Decision) -> Recognised:
        self.seen.append(decision.window_end_ns)
        if self._fails:
            raise RuntimeError('unforeseen')
        return Recognised(problems=('one crop was none',))


class RecognisingEncoder(FakeEncoder):
    recogniser: Any = None


def a_decision_at(end_ns: int) -> Decision:
    return Decision(end_ns, end_ns, 'odom', (), {})


def test_tracks_are_recognised_when_no_unit_waits_and_only_those_of_the_newest_decision() -> None:
    gate, told = Gate(), threading.Semaphore(0)
    encoder = RecognisingEncoder(work=gate)
    encoder.recogniser = FakeRecogniser()
    out = Collected()
    worker = EncoderWorker(
        encoder, ManualClock(at(0)), out, out, on_recognised=lambda *_: told.release()
    )
    worker.start()
    try:
        worker.offer(unit(50.0, sequence=0))
        gate.wait_until_entered()
        worker.offer(unit(100.0, sequence=1))
        for end_ns in (1, 2, 3):
            worker.offer_tracks(a_decision_at(end_ns))
        gate.opened.release()
        gate.wait_until_entered()
        assert encoder.recogniser.seen == [], 'a unit goes first'
        gate.opened.release()
        assert told.acquire(timeout=10)
        assert encoder.recogniser.seen == [3]
        assert worker.failures == {'one crop was none': 1}
    finally:
        worker.stop(10.0)


def test_a_recogniser_that_fails_costs_no_unit(caplog: pytest.LogCaptureFixture) -> None:
    encoder = RecognisingEncoder()
    encoder.recogniser = FakeRecogniser(fails=True)
    out = Collected()
    with caplog.at_level(logging.CRITICAL), running(encoder, out) as worker:
        worker.offer_tracks(a_decision_at(1))
        worker.offer(unit(50.0))
        out.wait_for(2)
        worker.offer(unit(100.0, sequence=1))
        out.wait_for(4)
    assert worker.encoded == 2
