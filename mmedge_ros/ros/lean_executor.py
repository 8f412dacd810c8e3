"""An executor whose own work is small beside that of the callbacks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.impl.implementation_singleton import rclpy_implementation as _rclpy
from rclpy.logging import get_logger
from rclpy.node import Node

from mmedge_ros.ros.waited_entities import Ready, WaitedEntities

_NS_PER_S = 1_000_000_000
# A signal wakes the wait before it ends the context. Where the wait was about to begin anew just
# then, nothing would wake it again, and a node without timers would not end.
_LONGEST_WAIT_NS = _NS_PER_S
# Messages of a subscription that are taken before timers and the others have their turn.
_MOST_AT_ONCE = 10
_MOST_DEFERRED = 200
# Every name that is used here or in `waited_entities` and that rclpy does not promise to keep.
_NEEDED = {
    'WaitSet': (
        *('clear_entities', 'wait', 'get_ready_entities', 'destroy_when_not_in_use'),
        *('add_subscription', 'add_timer', 'add_client', 'add_service', 'add_guard_condition'),
    ),
    'Subscription': ('take_message', 'pointer'),
    'Timer': ('is_timer_ready', 'call_timer', 'pointer'),
}
_GUARDS = ('_guard', '_sigint_gc')
# Tasks under way, from Jazzy 7.1.9 and Kilted 9.1.5 on, and before.
_TASKS = ('_pending_tasks', '_tasks')


def node_executor() -> SingleThreadedExecutor:
    """Return a `LeanExecutor`, or rclpy's own where its inside is another, and say so."""
    missing = _missing_names()
    if not missing:
        return LeanExecutor()
    get_logger('mmedge_ros').warning(
        f'nodes spin with the executor of rclpy, which takes more processor time: this rclpy has '
        f'no {missing[0]}'
    )
    return SingleThreadedExecutor()


def _missing_names() -> list[str]:
    """Return which names of rclpy's inside are not there."""
    insides = [(kind, getattr(_rclpy, kind, None), names) for kind, names in _NEEDED.items()]
    missing = [
        f'{kind}.{name}'
        for kind, inside, names in insides
        for name in names
        if not hasattr(inside, name)
    ]
    own = SingleThreadedExecutor()
    missing += [f'Executor.{name}' for name in _GUARDS if not hasattr(own, name)]
    if not any(hasattr(own, name) for name in _TASKS):
        missing.append(f'Executor.{_TASKS[0]}')
    own.shutdown()
    return missing


class LeanExecutor(SingleThreadedExecutor):
    """Runs callbacks in the thread that spins, like `SingleThreadedExecutor`, for less.

    That one makes a wait set of everything before each callback and wakes itself twice after it:
    for a node that takes a hundred small messages a second it is most of the work. This one makes
    the set when something was created or destroyed, and takes all that came. Messages of deferred
    subscriptions (`waited_entities.defer`) come first.

    Subscriptions and timers with plain functions are called directly; services, clients, actions,
    events and tasks are left to rclpy's `spin_once`, and everything is while a coroutine is under
    way: it knows which callbacks must wait for its end.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._entities: WaitedEntities | None = None
        self._is_waiting = False
        self._has_changed = True
        self._has_ended = False

    def spin(self) -> None:
        """Execute callbacks until shutdown."""
        try:
            while self.context.ok() and not self._has_ended:
                self.spin_once()
        finally:
            self._release()

    def spin_once(self, timeout_sec: float | None = None) -> None:
        """Wait, and execute all that is ready then.

        :param timeout_sec: most seconds to wait; None or a negative number for as long as nothing
            has to be looked at again, a second
        """
        if timeout_sec is None or timeout_sec < 0.0:
            timeout_sec = _LONGEST_WAIT_NS / _NS_PER_S
        if self._has_tasks():
            super().spin_once(timeout_sec)
            return
        ready = self._wait(timeout_sec)
        for subscription in self._entities.deferred if self._entities is not None else ():
            for _ in range(_MOST_DEFERRED):
                if not subscription.take():
                    break
        for timer in ready.timers:
            timer.call()
        pending = ready.subscriptions
        for _ in range(_MOST_AT_ONCE):
            pending = [subscription for subscription in pending if subscription.take()]
            if not pending:
                break
        if ready.others or self._has_tasks():
            # It executes one of them, and wakes us for the next.
            super().spin_once(0.0)

    def wake(self) -> None:
        """Look at all entities again, because something was created or destroyed."""
        self._has_changed = True
        super().wake()

    def add_node(self, node: Node) -> bool:
        """Add a node whose callbacks are executed; False if it is there already."""
        self._has_changed = True
        return super().add_node(node)

    def remove_node(self, node: Node) -> None:
        """Stop executing a node's callbacks."""
        self._has_changed = True
        super().remove_node(node)
        if not self._is_waiting:
            self._release()

    def shutdown(self, timeout_sec: float | None = None) -> bool:
        """Stop executing; see `rclpy.executors.Executor`."""
        self._has_changed = self._has_ended = True
        done = super().shutdown(timeout_sec)
        if not self._is_waiting:
            self._release()
        return done

    def _has_tasks(self) -> bool:
        """Whether a task or coroutine is not done yet."""
        tasks: Iterable[Any] = getattr(self, _TASKS[0], None) or (
            task for task, *_ in tuple(getattr(self, _TASKS[1], ()))
        )
        return any(not (task.done() or task.cancelled()) for task in tuple(tasks))

    def _wait(self, timeout_sec: float) -> Ready:
        if self._has_changed or self._entities is None:
            self._release()
            self._has_changed = False
            guards = [guard for guard in (self._guard, self._sigint_gc) if guard is not None]
            self._entities = WaitedEntities(self.get_nodes(), guards, self.context)
        self._is_waiting = True
        try:
            ready = self._entities.wait(round(timeout_sec * _NS_PER_S))
        finally:
            self._is_waiting = False
        if not self.context.ok() and not self._has_ended:
            raise ExternalShutdownException
        return ready

    def _release(self) -> None:
        """Let go of what is waited for, so that it can be destroyed."""
        entities, self._entities = self._entities, None
        if entities is not None:
            entities.release()
