"""The pipeline in a thread of its own, synchronised by events."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
from hand_made_units import MS, Collected, Gate, ManualClock, at, features, unit

from mmedge_ros.core.clock import TimeBudget
from mmedge_ros.core.data_types import (
    CAMERA,
    RADAR,
    Decision,
    ResultKind,
    SkipDecision,
    UnitFeatures,
    UnitOutcome,
    UnitReceipt,
)
from mmedge_ros.geometry import GeometryError
from mmedge_ros.pipeline.decision_worker import DecisionWorker


def decision(end: float) -> Decision:
    return Decision(at(end), at(end), 'base_link', (), {})


class FakePipeline:
    """Decides what tasks put into ``ready``; ``failure`` is raised by the next poll."""

    def __init__(self, next_poll: float | None = None) -> None:
        self.ready: list[Decision] = []
        self.skips: list[SkipDecision] = []
        self.ahead = 0
        self.news: list[Decision] = []
        self.worked = Collected()
        self.failure: Exception | None = None
        self.polls = Collected()
        self.resets = 0
        self.next_poll = next_poll
        self.last_call_ns: int | None = None
        self.units: list[tuple[str, int]] = []
        self.receipts: list[tuple[str, int, UnitOutcome]] = []

    def limit_time(self, now_ns: Callable[[], int]) -> TimeBudget:
        return TimeBudget(now_ns)

    def drop_overdue(self, now_ns: int) -> None:
        pass

    def add_features(self, features: UnitFeatures, _: int) -> None:
        self.units.append((features.modality, features.sequence))

    def add_receipt(self, receipt: UnitReceipt, _: int) -> None:
        self.receipts.append((receipt.modality, receipt.sequence, receipt.outcome))

    def next_poll_ns(self, _: int) -> int | None:
        return None if self.next_poll is None else at(self.next_poll)

    def poll(self, now_ns: int) -> list[Decision]:
        self.polls(now_ns)
        failure, self.failure = self.failure, None
        if failure:
            raise failure
        ready, self.ready = self.ready, []
        return ready

    def take_skips(self) -> list[SkipDecision]:
        skips, self.skips = self.skips, []
        return skips

    def update(self, _: int) -> Decision | None:
        return self.news.pop(0) if self.news else None

    def work_ahead(self, now_ns: int) -> bool:
        if not self.ahead:
            return False
        self.ahead -= 1
        self.worked(self.ahead)
        if self.ahead == 13:
            raise ArithmeticError('singular')
        return True

    def reset(self) -> None:
        self.resets += 1
        self.ahead = 0


def deciding(*window_ends: float) -> Callable[[Any, int], None]:
    """A task after which those windows can be decided."""
    return lambda pipeline, _: pipeline.ready.extend(decision(end) for end in window_ends)


@contextmanager
def running(
    pipeline: Any,
    on_decision: Callable[[Decision], None],
    clock: ManualClock | None = None,
    longest_wait: float = 30.0,
    **options: Any,
) -> Iterator[DecisionWorker]:
    worker = DecisionWorker(pipeline, clock or ManualClock(), on_decision, longest_wait, **options)
    worker.start()
    try:
        yield worker
    finally:
        worker.stop(10.0)
        assert not worker._thread.is_alive()


def test_what_is_not_urgent_is_done_with_the_next_that_is_and_before_it() -> None:
    done: list[str] = []
    decisions = Collected()
    pipeline = FakePipeline()
    with running(pipeline, decisions) as worker:
        worker.submit(deciding(1.0))
        decisions.wait_for(1)
        woken: list[int] = []
        worker._changed.notify = lambda: woken.append(1)
        worker.submit(lambda *_: done.append('pose'), urgent=False)
        assert not woken
        del worker._changed.notify
        worker.submit(deciding(2.0))
        decisions.wait_for(2)
        assert done == ['pose']


def test_updates_leave_after_the_decisions_that_are_due_and_before_work_ahead() -> None:
    order: list[str] = []
    out, pipeline = Collected(), FakePipeline()

    def publish(result: Decision) -> None:
        order.append(f'{result.kind.name} {pipeline.ahead}')
        out(result)

    def completed(pipeline: Any, _: int) -> None:
        pipeline.ready.append(decision(100.0))
        pipeline.news.append(replace(decision(200.0), kind=ResultKind.UPDATE))
        pipeline.ahead = 2

    with running(pipeline, publish) as worker:
        worker.submit(completed)
        out.wait_for(2)
        pipeline.worked.wait_for(2)
    assert order == ['DECISION 2', 'UPDATE 2']


def test_there_is_no_update_while_something_waits_to_be_done() -> None:
    out, pipeline = Collected(), FakePipeline()
    pipeline.news.append(replace(decision(200.0), kind=ResultKind.UPDATE))
    worker = DecisionWorker(pipeline, ManualClock(), out)
    worker.submit(deciding(1.0))
    worker._update()
    assert not out.items
    worker._work_on_tasks()
    worker._update()
    assert [result.kind for result in out.items] == [ResultKind.UPDATE]


def letting_rest(*ends: float) -> Callable[[Any, int], None]:
    """A task after which the camera may rest until then, and again until then."""
    leases = [SkipDecision(CAMERA, at(0), at(end), at(end)) for end in ends]
    return lambda pipeline, _: pipeline.skips.extend(leases)


def test_a_lease_that_cannot_be_published_does_not_end_deciding() -> None:
    def refuse(_: SkipDecision) -> None:
        raise ValueError('no such modality')

    out = Collected()
    with running(FakePipeline(), out, on_skip=refuse) as worker:
        worker.submit(letting_rest(100.0))
        worker.submit(deciding(100.0))
        out.wait_for(1)
        worker.submit(deciding(200.0))
        out.wait_for(2)
    assert worker.failures.total() == 1


def test_a_window_that_time_alone_closes_is_decided_without_a_task() -> None:
    pipeline = FakePipeline(next_poll=5.0)
    with running(pipeline, Collected(), ManualClock(at(0))):
        pipeline.polls.wait_for(3)


def test_of_too_many_tasks_the_oldest_are_dropped_and_counted() -> None:
    hold, seen = Gate(), Collected()
    with running(FakePipeline(), Collected()) as worker:
        worker.submit(hold)
        hold.wait_until_entered()
        for n in range(1300):
            worker.submit(lambda *_, n=n: seen(n))
        assert worker.overflows == 300
        hold.opened.release()
        assert seen.wait_for(1000) == list(range(300, 1300))


def test_encoded_units_that_wait_give_way_to_the_newest_and_are_not_waited_for() -> None:
    hold, done = Gate(), Collected()
    pipeline = FakePipeline()
    with running(pipeline, Collected()) as worker:
        worker.submit(hold)
        hold.wait_until_entered()
        worker.submit_unit(features(unit(50, RADAR, 7)))
        for number in range(5):
            worker.submit_unit(features(unit(30 * number, CAMERA, number)))
        worker.submit(lambda *_: done(None))
        hold.opened.release()
        done.wait_for(1)
        assert pipeline.units == [(RADAR, 7), (CAMERA, 4)]
        assert pipeline.receipts == [(CAMERA, n, UnitOutcome.DROPPED) for n in range(4)]
        assert worker.shed == {'units': 4}


def test_a_decision_that_is_due_waits_for_one_task_at_most() -> None:
    hold, out = Gate(), Collected()
    clock, pipeline = ManualClock(at(0)), FakePipeline()
    pipeline.last_call_ns = at(140)
    tasks_done: list[int] = []

    def slow(of: FakePipeline, _: int) -> None:
        tasks_done.append(1)
        clock.ns += 100 * MS
        if len(tasks_done) == 2:
            of.ready.append(decision(100))

    def check(_: Decision) -> None:
        pipeline.last_call_ns = None
        out(len(tasks_done))

    with running(pipeline, check, clock) as worker:
        worker.submit(hold)
        hold.wait_until_entered()
        for _ in range(20):
            worker.submit(slow)
        hold.opened.release()
        assert out.wait_for(1) == [2]


def test_a_message_that_cannot_be_used_leaves_the_tracks_alone(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def refuse(*_: Any) -> None:
        raise GeometryError('a transform closes a cycle')

    out, pipeline = Collected(), FakePipeline()
    with running(pipeline, out) as worker, caplog.at_level(logging.ERROR):
        worker.submit(refuse)
        worker.submit(refuse)
        worker.submit(deciding(100))
        out.wait_for(1)
    assert pipeline.resets == 0
    assert worker.failures.total() == 2
    assert len(caplog.records) == 1
    assert 'closes a cycle' in caplog.text


def failing_in(where: str) -> Callable[[Any, int], None]:
    """A task after which something breaks that nobody foresaw."""

    def task(pipeline: FakePipeline, _: int) -> None:
        if where == 'message':
            raise ArithmeticError('singular')
        if where == 'decision':
            pipeline.failure = ArithmeticError('singular')
        pipeline.ahead = 14

    return task


@pytest.mark.parametrize('where', ['message', 'decision', 'work ahead'])
def test_after_an_error_nobody_foresaw_tracking_starts_over(
    where: str, caplog: pytest.LogCaptureFixture
) -> None:
    out, pipeline = Collected(), FakePipeline()
    with running(pipeline, out) as worker, caplog.at_level(logging.ERROR):
        worker.submit(failing_in(where))
        pipeline.polls.wait_for(1)
        worker.submit(deciding(100))
        assert len(out.wait_for(1)) == 1
    assert pipeline.resets == 1
    assert worker.failures == {'unexpected ArithmeticError: singular': 1}
    assert caplog.records[0].exc_info is not None


def test_a_decision_that_cannot_be_published_is_lost_alone(
    caplog: pytest.LogCaptureFixture,
) -> None:
    out, pipeline = Collected(), FakePipeline()

    def publish(each: Decision) -> None:
        if each.window_end_ns == at(100):
            raise RuntimeError('the middleware is gone')
        out(each)

    with running(pipeline, publish) as worker, caplog.at_level(logging.ERROR):
        worker.submit(deciding(100, 200))
        assert out.wait_for(1)[0].window_end_ns == at(200)
    assert worker.failures.total() == 1
    assert pipeline.resets == 0
