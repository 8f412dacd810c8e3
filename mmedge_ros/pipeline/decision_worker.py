"""The perception pipeline at work in a thread of its own, woken by units and by time."""

from __future__ import annotations

import logging
import threading
from collections import Counter, deque
from collections.abc import Callable, Sequence

from mmedge_ros.core.clock import Clock
from mmedge_ros.core.data_types import (
    NS_PER_S,
    Decision,
    SkipDecision,
    UnitFeatures,
    UnitOutcome,
    UnitReceipt,
)
from mmedge_ros.core.run_record import count_failure, unexpected
from mmedge_ros.geometry import GeometryError
from mmedge_ros.pipeline.perception_pipeline import PerceptionPipeline
from mmedge_ros.tracking import FusionError

_LOG = logging.getLogger(__name__)
_CAPACITY = 1000
# Encoded units of a modality that may wait, 0.13 s at 30 Hz: a stutter, and no more.
_MOST_UNITS = 4
_LONGEST_WAIT = 1.0

# What a task returns is of no interest.
Task = Callable[[PerceptionPipeline, int], object]


class _Unit:
    """The task of entering an encoded unit."""

    def __init__(self, features: UnitFeatures) -> None:
        self.features = features

    def __call__(self, pipeline: PerceptionPipeline, now_ns: int) -> None:
        pipeline.add_features(self.features, now_ns)


def _dropped(unit: _Unit) -> Task:
    """Return the task of not waiting for a unit any more."""
    of = unit.features
    receipt = UnitReceipt(
        of.modality, of.sequence, of.stamp_ns, of.available_ns, UnitOutcome.DROPPED
    )
    return lambda pipeline, now_ns: pipeline.add_receipt(receipt, now_ns)


def _ignore(_: SkipDecision) -> None:
    """No sensor can be leased."""


class DecisionWorker:
    """Owns the pipeline: everything that touches it is handed over as a task.

    Deciding goes on whatever happens, and ``failures`` counts it: a message that is refused is
    left out; after an unforeseen error the pipeline starts over without tracks.

    A decision that is due goes before every task and is made of what is ready. What there is no
    time for is dropped and counted in ``shed``, and never delays the next decision: encoded units
    that wait when newer ones come, pictures of a window but the newest, windows whose successor
    is due as well.

    An update is made where nothing else is to be done, and goes before work ahead: who follows
    tracks is waiting for it.

    :param on_result: called with each decision and update, which it closes with its publication
        time
    :param on_skip: called with each lease, after the decisions that it came with
    :param longest_wait: seconds; short where the ROS clock does not run like the system's
    """

    def __init__(
        self,
        pipeline: PerceptionPipeline,
        clock: Clock,
        on_result: Callable[[Decision], None],
        longest_wait: float = _LONGEST_WAIT,
        on_skip: Callable[[SkipDecision], None] = _ignore,
    ) -> None:
        self.overflows = 0
        self.failures: Counter[str] = Counter()
        self._pipeline = pipeline
        self._budget = pipeline.limit_time(clock.now_ns)
        self._clock = clock
        self._on_result = on_result
        self._on_skip = on_skip
        self._longest_wait = longest_wait
        self._tasks: deque[Task | _Unit] = deque(maxlen=_CAPACITY)
        self._changed = threading.Condition()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name='decisions', daemon=True)

    def start(self) -> None:
        """Begin to decide."""
        self._thread.start()

    def stop(self, timeout: float = 1.0) -> None:
        """Finish the task in work and return."""
        with self._changed:
            self._stopping = True
            self._changed.notify()
        if self._thread.is_alive():
            self._thread.join(timeout)

    def submit(self, task: Task, urgent: bool = True) -> None:
        """Hand over ``task(pipeline, now_ns)``; of too many the oldest is dropped and counted.

        :param urgent: whether the worker wakes for it; else it is done with the next that is
        """
        with self._changed:
            self.overflows += len(self._tasks) == _CAPACITY
            self._tasks.append(task)
            if urgent:
                self._changed.notify()

    def submit_unit(self, features: UnitFeatures) -> None:
        """Hand over an encoded unit; where too many wait, those of its modality give way."""
        with self._changed:
            old = [
                (place, task)
                for place, task in enumerate(self._tasks)
                if isinstance(task, _Unit) and task.features.modality == features.modality
            ]
            if len(old) >= _MOST_UNITS:
                self._budget.shed['units'] += len(old)
                for place, task in old:
                    self._tasks[place] = _dropped(task)
        self.submit(_Unit(features))

    @property
    def shed(self) -> Counter[str]:
        """What there was no time for, by kind."""
        return self._budget.shed

    def _run(self) -> None:
        more = False
        while True:
            with self._changed:
                if not self._tasks and not self._stopping and not more:
                    self._changed.wait(self._patience())
                if self._stopping:
                    return
            self._work_on_tasks()
            self._decide()
            self._update()
            more = self._worked_ahead()

    def _worked_ahead(self) -> bool:
        """Do a bit of work ahead, between what is due; return whether there is more to do."""
        if self._tasks:
            return True
        try:
            return self._pipeline.work_ahead(self._clock.now_ns())
        except Exception as err:  # noqa: BLE001
            self._start_over(err)
            return False

    def _work_on_tasks(self) -> None:
        """Do what was handed over, until a decision is due."""
        now_ns = self._clock.now_ns()
        # Tasks that come meanwhile are for the next time: they must not put off a decision.
        for _ in range(len(self._tasks)):
            with self._changed:
                if not self._tasks:
                    return
                task = self._tasks.popleft()
            try:
                task(self._pipeline, now_ns)
            except (FusionError, GeometryError) as err:
                self._note(err, 'a message is not used')
            except Exception as err:  # noqa: BLE001
                self._start_over(err)
            now_ns = self._clock.now_ns()
            last_call_ns = self._pipeline.last_call_ns
            if last_call_ns is not None and now_ns >= last_call_ns:
                return

    def _decide(self) -> None:
        now_ns = self._clock.now_ns()
        try:
            self._pipeline.drop_overdue(now_ns)
            decisions = self._pipeline.poll(now_ns)
        except Exception as err:  # noqa: BLE001
            self._start_over(err)
            return
        self._publish(decisions)
        for skip in self._pipeline.take_skips():
            try:
                self._on_skip(skip)
            except Exception as err:  # noqa: BLE001
                self._note(err, 'a lease is lost')

    def _update(self) -> None:
        """Say what is new between decisions, if nothing else is to be done."""
        if self._tasks:
            return
        try:
            update = self._pipeline.update(self._clock.now_ns())
        except Exception as err:  # noqa: BLE001
            self._start_over(err)
            return
        if update is not None:
            self._publish([update])

    def _publish(self, results: Sequence[Decision]) -> None:
        begun_ns = self._budget.started()
        for result in results:
            try:
                self._on_result(result)
            except Exception as err:  # noqa: BLE001
                self._note(err, 'a result is lost')
        self._budget.ended('publishing', begun_ns, len(results))

    def _start_over(self, error: Exception) -> None:
        """Empty the pipeline: what it failed on must not fail every window to come."""
        self._pipeline.reset()
        self._note(error, 'tracking starts over')

    def _note(self, error: Exception, consequence: str) -> None:
        if count_failure(self.failures, unexpected(error)):
            _LOG.exception(consequence)

    def _patience(self) -> float:
        """Seconds until time alone can close a window."""
        now_ns = self._clock.now_ns()
        wake_ns = self._pipeline.next_poll_ns(now_ns)
        if wake_ns is None:
            return self._longest_wait
        return min(max((wake_ns - now_ns) / NS_PER_S, 0.0002), self._longest_wait)
