"""What an executor waits for: made once, and filled anew before each wait."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any, NamedTuple, cast

from rclpy.exceptions import InvalidHandle
from rclpy.impl.implementation_singleton import rclpy_implementation as _rclpy
from rclpy.node import Node
from rclpy.waitable import NumberOfEntities

_DEFERRED = '_mmedge_deferred'
# Newer rclpy has an error of its own for a timer that was cancelled.
_GONE = (InvalidHandle, getattr(_rclpy, 'TimerCancelledError', InvalidHandle))


def defer(subscription: Any) -> Any:
    """Defer the messages of a subscription: they are taken when something else wakes the node.

    For what comes often and is only looked at when something else comes, or at the tick of a
    timer; its queue has to be as deep as that takes. Other executors know nothing of this, and
    wake for each of them. rclpy's warning of a mismatch of QoS is lost, because it comes the same
    way: it is for topics of this package, and for requests that suit any offer.

    :return: the subscription
    """
    setattr(subscription, _DEFERRED, True)
    return subscription


class OwnTimer(NamedTuple):
    """A timer whose callback is a function without arguments."""

    handle: Any
    callback: Callable[[], object]

    def call(self) -> None:
        """Call it if it is due; it may have been cancelled meanwhile."""
        try:
            if not self.handle.is_timer_ready():
                return
            self.handle.call_timer()
        except _GONE:
            return
        self.callback()


class OwnSubscription(NamedTuple):
    """A subscription whose callback is a function of the message, and of its info if wanted."""

    handle: Any
    kind: Any
    is_raw: bool
    callback: Callable[..., object]
    wants_info: bool

    def take(self) -> bool:
        """Take a message and call the callback; False if there is none."""
        try:
            taken = self.handle.take_message(self.kind, self.is_raw)
        except InvalidHandle:
            return False
        if taken is None:
            return False
        if self.wants_info:
            self.callback(*taken)
        else:
            self.callback(taken[0])
        return True


class Ready(NamedTuple):
    """What is ready: timers, subscriptions, and whether something else is."""

    timers: list[OwnTimer]
    subscriptions: list[OwnSubscription]
    others: bool


class WaitedEntities:
    """All that nodes wait for, held so that nothing is destroyed in the wait.

    :param guards: those of the executor; rclpy triggers them when it has more to do
    """

    def __init__(self, nodes: Sequence[Node], guards: Sequence[Any], context: Any) -> None:
        self._held = ExitStack()
        self._own_timers: dict[int, OwnTimer] = {}
        self._own_subscriptions: dict[int, OwnSubscription] = {}
        self._timers: list[Any] = []
        self._subscriptions: list[Any] = []
        self._clients: list[Any] = []
        self._services: list[Any] = []
        self._waitables: list[Any] = []
        self.deferred: list[OwnSubscription] = []
        self._node_guards: dict[int, Any] = {}
        self._guards = [guard.handle for guard in guards if self._hold(guard.handle)]
        self._held.enter_context(context.handle)
        for node in nodes:
            self._add(node)
        counts = NumberOfEntities(
            len(self._subscriptions),
            len(self._guards),
            len(self._timers),
            len(self._clients),
            len(self._services),
        )
        for waitable in self._waitables:
            counts += waitable.get_num_entities()
        self._wait_set = _rclpy.WaitSet(
            counts.num_subscriptions,
            counts.num_guard_conditions,
            counts.num_timers,
            counts.num_clients,
            counts.num_services,
            counts.num_events,
            context.handle,
        )

    def wait(self, timeout_ns: int) -> Ready:
        """Wait until something is ready; a negative time is for ever."""
        self._fill()
        self._wait_set.wait(timeout_ns)
        ready = self._wait_set.get_ready_entities
        timers = [self._own_timers.get(pointer) for pointer in ready('timer')]
        subscriptions = [self._own_subscriptions.get(pointer) for pointer in ready('subscription')]
        others = [waitable.is_ready(self._wait_set) for waitable in self._waitables]
        return Ready(
            [timer for timer in timers if timer is not None],
            [subscription for subscription in subscriptions if subscription is not None],
            any(others)
            or bool(ready('client') or ready('service'))
            or None in timers
            or None in subscriptions
            or self._is_guard_ready(),
        )

    def _fill(self) -> None:
        # Waiting leaves in the set only what is ready.
        wait_set = self._wait_set
        wait_set.clear_entities()
        for add, handles in (
            (wait_set.add_subscription, self._subscriptions),
            (wait_set.add_guard_condition, self._guards),
            (wait_set.add_timer, self._timers),
            (wait_set.add_client, self._clients),
            (wait_set.add_service, self._services),
        ):
            for handle in handles:
                add(handle)
        for waitable in self._waitables:
            waitable.add_to_wait_set(wait_set)

    def _is_guard_ready(self) -> bool:
        """Whether a guard condition was triggered; those of nodes are again, for rclpy to see."""
        ready = self._wait_set.get_ready_entities('guard_condition')
        for pointer in ready:
            if pointer in self._node_guards:
                # Waiting has reset it.
                self._node_guards[pointer].trigger()
        return bool(ready)

    def release(self) -> None:
        """Let everything be destroyed; the wait set first."""
        self._wait_set.destroy_when_not_in_use()
        self._held.close()

    def _add(self, node: Node) -> None:
        for timer in node.timers:
            if self._hold(timer.handle):
                self._timers.append(timer.handle)
                if _is_plain(timer.callback, 0):
                    own = OwnTimer(timer.handle, cast('Any', timer.callback))
                    self._own_timers[timer.handle.pointer] = own
        for guard in node.guards:
            if self._hold(guard.handle):
                self._guards.append(guard.handle)
                self._node_guards[guard.handle.pointer] = guard
        self._clients += [c.handle for c in node.clients if self._hold(c.handle)]
        self._services += [s.handle for s in node.services if self._hold(s.handle)]
        self._waitables += [waitable for waitable in node.waitables if self._hold(waitable)]
        for subscription in node.subscriptions:
            if self._hold(subscription.handle):
                self._add_subscription(subscription)

    def _add_subscription(self, subscription: Any) -> None:
        handle, callback = subscription.handle, subscription.callback
        wants_info = _is_plain(callback, 2)
        own = None
        if wants_info or _is_plain(callback, 1):
            own = OwnSubscription(
                handle, subscription.msg_type, subscription.raw, callback, wants_info
            )
        if own is not None and getattr(subscription, _DEFERRED, False):
            self.deferred.append(own)
            # The middleware reports data by the same condition as events.
            silent = getattr(subscription, 'event_handlers', ())
            self._waitables = [w for w in self._waitables if w not in silent]
            return
        self._subscriptions.append(handle)
        if own is not None:
            self._own_subscriptions[handle.pointer] = own

    def _hold(self, handle: Any) -> bool:
        """Hold something; False if it is destroyed already."""
        try:
            self._held.enter_context(handle)
        except InvalidHandle:
            return False
        return True


def _is_plain(callback: Callable[..., object] | None, arguments: int) -> bool:
    """Whether a callback is a function with so many arguments and no coroutine."""
    if callback is None or inspect.iscoroutinefunction(callback):
        return False
    try:
        parameters = inspect.signature(callback).parameters.values()
    except (TypeError, ValueError):
        return False
    plain = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return len(parameters) == arguments and all(p.kind in plain for p in parameters)
