"""An executor whose own work is small beside that of the callbacks."""

from __future__ import annotations

from typing import Any

from rclpy.executors import (
    ExternalShutdownException,
    ShutdownException,
    SingleThreadedExecutor,
    TimeoutException,
)
from rclpy.impl.implementation_singleton import rclpy_implementation as _rclpy
from rclpy.node import Node

from mmedge_ros.ros.waited_entities import Ready, WaitedEntities

_NS_PER_S = 1_000_000_000
# A signal wakes the wait before it ends the context. Where the wait was about to begin anew just
# then, nothing would wake it again, and a node without timers would not end.
_LONGEST_WAIT_NS = _NS_PER_S
# Messages of a subscription that are taken before timers and the others have their turn.
_MOST_AT_ONCE = 10
_MOST_DEFERRED = 200
# What is used of rclpy's inside.
_NEEDED = {
    'WaitSet': ('clear_entities', 'wait', 'get_ready_entities', 'add_subscription'),
    'Subscription': ('take_message', 'pointer'),
    'Timer': ('is_timer_ready', 'call_timer', 'pointer'),
}


def node_executor() -> SingleThreadedExecutor:
    """Return a `LeanExecutor`, or rclpy's own where its inside is another."""
    for kind, names in _NEEDED.items():
        inside = getattr(_rclpy, kind, None)
        if not all(hasattr(inside, name) for name in names):
            return SingleThreadedExecutor()
    return LeanExecutor()


class LeanExecutor(SingleThreadedExecutor):
    """Runs callbacks in the thread that spins, like `SingleThreadedExecutor`, for less.

    That one makes a wait set of everything before each callback and wakes itself twice after it:
    for a node that takes a hundred small messages a second it is most of the work. This one makes
    the set when something was created or destroyed, and takes all that came. Messages of deferred
    subscriptions (`waited_entities.defer`) come first.

    Subscriptions and timers with plain functions are called directly; services, clients, events,
    tasks and coroutines are left to rclpy.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._entities: WaitedEntities | None = None
        self._is_waiting = False
        self._has_changed = True

    def spin(self) -> None:
        """Execute callbacks until shutdown."""
        try:
            super().spin()
        finally:
            self._release()

    def spin_once(self, timeout_sec: float | None = None) -> None:
        """Wait, and execute all that is ready then.

        :param timeout_sec: most seconds to wait; None or a negative number for as long as nothing
            has to be looked at again, a second
        """
        if self._tasks:
            self._leave_to_rclpy()
            timeout_sec = 0.0
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
        if ready.others or self._tasks:
            self._leave_to_rclpy()

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
        self._has_changed = True
        done = super().shutdown(timeout_sec)
        if not self._is_waiting:
            self._release()
        return done

    def _wait(self, timeout_sec: float | None) -> Ready:
        if self._has_changed or self._entities is None:
            self._release()
            self._has_changed = False
            guards = [guard for guard in (self._guard, self._sigint_gc) if guard is not None]
            self._entities = WaitedEntities(self.get_nodes(), guards, self._context)
        timeout_ns = _LONGEST_WAIT_NS
        if timeout_sec is not None and timeout_sec >= 0.0:
            timeout_ns = round(timeout_sec * _NS_PER_S)
        self._is_waiting = True
        try:
            ready = self._entities.wait(timeout_ns)
        finally:
            self._is_waiting = False
        if not self._context.ok() and not self._is_shutdown:
            raise ExternalShutdownException
        return ready

    def _release(self) -> None:
        """Let go of what is waited for, so that it can be destroyed."""
        entities, self._entities = self._entities, None
        if entities is not None:
            entities.release()

    def _leave_to_rclpy(self) -> None:
        # A coroutine that waits for something is offered again and again: not without an end, or
        # what it waits for could never come.
        for _ in range(_MOST_AT_ONCE):
            try:
                handler, _, _ = self.wait_for_ready_callbacks(0.0, None, lambda: False)
            except (TimeoutException, ShutdownException):
                return
            handler()
            handler.result()
