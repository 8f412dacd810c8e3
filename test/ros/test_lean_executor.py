"""The executor of the nodes does what rclpy's does: messages, timers, services, tasks."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any, cast

import pytest
import rclpy
from action_msgs.msg import GoalStatus
from live_graph import wait_until
from rcl_interfaces.srv import GetParameters
from rclpy.action.client import ActionClient
from rclpy.action.server import ActionServer, CancelResponse
from rclpy.callback_groups import MutuallyExclusiveCallbackGroup, ReentrantCallbackGroup
from rclpy.executors import ExternalShutdownException
from rclpy.node import Node
from rclpy.task import Future
from std_msgs.msg import Int32

from mmedge_ros.ros import lean_executor
from mmedge_ros.ros.lean_executor import LeanExecutor
from mmedge_ros.ros.waited_entities import defer


@pytest.fixture
def executor(ros: None) -> Iterator[LeanExecutor]:
    made = LeanExecutor()
    yield made
    for node in made.get_nodes():
        node.destroy_node()
    made.shutdown()


@pytest.fixture
def node(executor: LeanExecutor) -> Node:
    made = rclpy.create_node('lean')
    executor.add_node(made)
    return made


def hears(node: Node, take: Callable[[Int32], object], topic: str = 'number') -> Any:
    """Return a publisher that the node's new subscription is connected with."""
    node.create_subscription(Int32, topic, take, 20)
    publisher = node.create_publisher(Int32, topic, 20)
    wait_until(cast('LeanExecutor', node.executor), publisher.get_subscription_count)
    return publisher


def test_all_messages_that_came_are_taken_at_once_and_in_order(
    executor: LeanExecutor, node: Node
) -> None:
    heard: list[int] = []
    publisher = hears(node, lambda message: heard.append(message.data))
    for number in range(5):
        publisher.publish(Int32(data=number))
    calls = 0
    while len(heard) < 5:
        executor.spin_once(timeout_sec=5.0)
        calls += 1
        assert calls < 20
    assert heard == [0, 1, 2, 3, 4]


def test_nobody_waits_longer_than_asked_for(executor: LeanExecutor, node: Node) -> None:
    hears(node, lambda _: None)
    for _ in range(3):
        executor.spin_once(timeout_sec=0.0)


def test_a_wait_that_nothing_wakes_comes_back_to_see_whether_the_graph_has_ended(
    executor: LeanExecutor, node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    hears(node, lambda _: None)
    monkeypatch.setattr(lean_executor, '_LONGEST_WAIT_NS', 10_000_000)
    for _ in range(3):  # without it this test would not end
        executor.spin_once()


def test_a_flooded_subscription_leaves_the_timer_its_turn(
    executor: LeanExecutor, node: Node
) -> None:
    ticks: list[int] = []
    publisher: Any = None

    def answer(message: Int32) -> None:
        publisher.publish(message)

    publisher = hears(node, answer)
    node.create_timer(0.001, lambda: ticks.append(0))
    publisher.publish(Int32(data=1))
    wait_until(executor, lambda: len(ticks) >= 3)


def test_a_cancelled_timer_is_silent(executor: LeanExecutor, node: Node) -> None:
    ticks: list[str] = []
    cancelled = node.create_timer(0.001, lambda: ticks.append('cancelled'))
    node.create_timer(0.002, lambda: ticks.append('other'))
    cancelled.cancel()
    wait_until(executor, lambda: len(ticks) >= 3)
    assert set(ticks) == {'other'}


def test_what_is_created_in_a_callback_is_heard(executor: LeanExecutor, node: Node) -> None:
    heard: list[int] = []
    made: list[Any] = []

    def make() -> None:
        if not made:
            made.append(node.create_subscription(Int32, 'late', heard.append, 5))
        publisher.publish(Int32(data=7))

    publisher = node.create_publisher(Int32, 'late', 5)
    node.create_timer(0.005, make)
    wait_until(executor, lambda: heard)


def test_what_is_destroyed_in_a_callback_is_not_heard_again(
    executor: LeanExecutor, node: Node
) -> None:
    heard: list[int] = []
    ticks: list[int] = []

    def end_it(message: Int32) -> None:
        heard.append(message.data)
        node.destroy_subscription(subscription)

    publisher = hears(node, end_it)
    (subscription,) = (s for s in node.subscriptions if s.topic_name == '/number')
    for number in range(3):
        publisher.publish(Int32(data=number))
    node.create_timer(0.001, lambda: ticks.append(0))
    wait_until(executor, lambda: heard)
    # Messages of the same burst were there before it was destroyed.
    wait_until(executor, lambda: publisher.get_subscription_count() == 0)
    before, ticks[:] = len(heard), []
    publisher.publish(Int32(data=9))
    wait_until(executor, lambda: len(ticks) >= 3)
    assert len(heard) == before


def test_services_are_answered(executor: LeanExecutor, node: Node) -> None:
    node.declare_parameter('depth', 3)
    client = node.create_client(GetParameters, 'lean/get_parameters')
    wait_until(executor, client.service_is_ready)
    answer = client.call_async(GetParameters.Request(names=['depth']))
    wait_until(executor, answer.done)
    result = answer.result()
    assert result is not None
    assert result.values[0].integer_value == 3


def test_coroutines_with_information_of_the_message_and_tasks_are_run(
    executor: LeanExecutor, node: Node
) -> None:
    heard: list[object] = []

    async def wait_for(message: Int32) -> None:
        heard.append(message.data)

    hears(node, wait_for, 'awaited').publish(Int32(data=1))
    hears(
        node, lambda message, info: heard.append((message.data, type(info))), 'informed'
    ).publish(Int32(data=2))
    wait_until(executor, lambda: len(heard) == 2)
    assert 1 in heard
    task = executor.create_task(lambda: 5)
    wait_until(executor, task.done)
    assert task.result() == 5


def test_what_rides_along_wakes_nobody_and_comes_first(executor: LeanExecutor, node: Node) -> None:
    heard: list[str] = []
    publisher = hears(node, lambda message: heard.append(f'subscription {message.data}'))
    (subscription,) = (s for s in node.subscriptions if s.topic_name == '/number')
    assert defer(subscription) is subscription
    other = hears(node, lambda _: heard.append('other'), 'other')
    executor.wake()
    executor.spin_once(timeout_sec=0.0)
    for number in range(3):
        publisher.publish(Int32(data=number))
    guard = node.create_guard_condition(lambda: None)
    wait_until(executor, lambda: node.count_publishers('number'))
    guard.trigger()
    other.publish(Int32())
    wait_until(executor, lambda: 'other' in heard)
    assert heard == ['subscription 0', 'subscription 1', 'subscription 2', 'other']
    # Alone it does not end a wait.
    publisher.publish(Int32(data=3))
    executor._wait(0.2)
    assert heard[-1] == 'other'
    executor.spin_once(timeout_sec=0.0)
    assert heard[-1] == 'subscription 3'


def test_a_coroutine_that_waits_for_a_timer_leaves_it_its_turn(
    executor: LeanExecutor, node: Node
) -> None:
    rung = Future(executor=executor)
    heard: list[str] = []

    async def wait_for_the_bell(_: Int32) -> None:
        heard.append(await rung)

    publisher = hears(node, wait_for_the_bell)
    publisher.publish(Int32())
    # What shares a group with a coroutine waits for its end, with every executor.
    node.create_timer(
        0.01,
        lambda: rung.done() or rung.set_result('bell'),
        callback_group=MutuallyExclusiveCallbackGroup(),
    )
    wait_until(executor, lambda: heard)
    assert heard == ['bell']


def test_a_coroutine_of_a_timer_that_awaits_a_service_completes(
    executor: LeanExecutor, node: Node
) -> None:
    node.declare_parameter('depth', 3)
    client = node.create_client(GetParameters, 'lean/get_parameters')
    wait_until(executor, client.service_is_ready)
    heard: list[int] = []

    async def read() -> None:
        answer = await client.call_async(GetParameters.Request(names=['depth']))
        heard.append(answer.values[0].integer_value)

    timer = node.create_timer(0.01, read, callback_group=MutuallyExclusiveCallbackGroup())
    wait_until(executor, lambda: len(heard) >= 3)
    timer.cancel()
    assert set(heard) == {3}


@pytest.mark.parametrize('is_cancelled', [False, True], ids=['to its end', 'cancelled'])
def test_an_action_whose_goal_is_a_coroutine_is_served(
    executor: LeanExecutor, node: Node, is_cancelled: bool
) -> None:
    kind = pytest.importorskip('mmedge_ros.action').Ask
    rung = Future(executor=executor)
    phases: list[str] = []

    async def answer(goal: Any) -> Any:
        goal.publish_feedback(kind.Feedback(phase='waiting'))
        await rung
        if goal.is_cancel_requested:
            goal.canceled()
        else:
            goal.succeed()
        return kind.Result(answer=goal.request.question.upper())

    server = ActionServer(
        node,
        kind,
        'ask',
        answer,
        callback_group=ReentrantCallbackGroup(),
        cancel_callback=lambda _: CancelResponse.ACCEPT,
    )
    client = ActionClient(node, kind, 'ask')
    wait_until(executor, client.server_is_ready)
    sent = client.send_goal_async(
        kind.Goal(question='how many?'), lambda heard: phases.append(heard.feedback.phase)
    )
    wait_until(executor, lambda: sent.done() and phases)
    goal: Any = sent.result()
    assert goal.accepted
    if is_cancelled:
        wait_until(executor, goal.cancel_goal_async().done)
    result = goal.get_result_async()
    rung.set_result(None)
    wait_until(executor, result.done)
    assert result.result().status == (
        GoalStatus.STATUS_CANCELED if is_cancelled else GoalStatus.STATUS_SUCCEEDED
    )
    assert result.result().result.answer == 'HOW MANY?'
    assert phases == ['waiting']
    client.destroy()
    server.destroy()


def test_what_shares_a_group_with_a_coroutine_waits_for_its_end(
    executor: LeanExecutor, node: Node
) -> None:
    group = MutuallyExclusiveCallbackGroup()
    rung = Future(executor=executor)
    heard: list[str] = []
    ticks: list[int] = []

    async def wait_for_the_bell() -> None:
        first.cancel()
        heard.append('begin')
        await rung
        heard.append('end')

    first = node.create_timer(0.001, wait_for_the_bell, callback_group=group)
    wait_until(executor, lambda: heard)
    second = node.create_timer(0.001, lambda: heard.append('second'), callback_group=group)
    node.create_timer(0.002, lambda: ticks.append(0))
    wait_until(executor, lambda: len(ticks) > 3)
    assert heard == ['begin']
    rung.set_result(None)
    wait_until(executor, lambda: 'second' in heard)
    second.cancel()
    assert heard[:2] == ['begin', 'end']


def test_a_coroutine_that_waits_costs_no_processor_time(
    executor: LeanExecutor, node: Node
) -> None:
    rung = Future(executor=executor)
    ticks: list[int] = []

    async def wait_for_the_bell() -> None:
        await rung

    task = executor.create_task(wait_for_the_bell)
    node.create_timer(0.02, lambda: ticks.append(0))
    spins = 0
    while len(ticks) < 5:
        executor.spin_once(timeout_sec=5.0)
        spins += 1
    assert spins < 40
    rung.set_result(None)
    wait_until(executor, task.done)


def test_a_guard_condition_of_a_node_is_seen(executor: LeanExecutor, node: Node) -> None:
    seen: list[int] = []
    guard = node.create_guard_condition(lambda: seen.append(0))
    executor.spin_once(timeout_sec=0.0)
    guard.trigger()
    wait_until(executor, lambda: seen)


def test_what_a_callback_raises_comes_out(executor: LeanExecutor, node: Node) -> None:
    def fail() -> None:
        raise RuntimeError('no ink')

    node.create_timer(0.001, fail)
    with pytest.raises(RuntimeError, match='no ink'):
        wait_until(executor, lambda: False)


def test_a_node_that_was_removed_is_let_go(executor: LeanExecutor, node: Node) -> None:
    ticks: list[int] = []
    node.create_timer(0.001, lambda: ticks.append(0))
    wait_until(executor, lambda: ticks)
    executor.remove_node(node)
    ticks.clear()
    executor.spin_once(timeout_sec=0.02)
    node.destroy_node()
    executor.spin_once(timeout_sec=0.02)
    assert not ticks


def test_spinning_is_its_own(executor: LeanExecutor, monkeypatch: pytest.MonkeyPatch) -> None:
    spins: list[object] = []

    def spin_once(*_: object) -> None:
        spins.append(0)
        executor.shutdown()

    monkeypatch.setattr(executor, 'spin_once', spin_once)
    executor.spin()
    assert len(spins) == 1


def test_a_shutdown_from_another_thread_ends_the_wait() -> None:
    context = rclpy.Context()
    rclpy.init(context=context)
    executor = LeanExecutor(context=context)
    node = rclpy.create_node('lean', context=context)
    executor.add_node(node)

    def end_the_wait() -> None:
        while not executor._is_waiting:
            pass
        rclpy.try_shutdown(context=context)

    thread = threading.Thread(target=end_the_wait)
    thread.start()
    with pytest.raises(ExternalShutdownException):
        executor.spin()
    thread.join()
    node.destroy_node()
