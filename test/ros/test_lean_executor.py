"""The executor of the nodes does what rclpy's does: messages, timers, services, tasks."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any, cast

import pytest
import rclpy
from action_msgs.msg import GoalStatus
from live_graph import wait_until
from rclpy.action.client import ActionClient
from rclpy.action.server import ActionServer, CancelResponse
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.executors import Executor, ExternalShutdownException, SingleThreadedExecutor
from rclpy.node import Node
from rclpy.task import Future, Task
from std_msgs.msg import Int32

from mmedge_ros.ros import lean_executor
from mmedge_ros.ros.lean_executor import LeanExecutor, node_executor
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
    rung: list[int] = []
    guard = node.create_guard_condition(lambda: rung.append(0))
    wait_until(executor, lambda: node.count_publishers('number'))
    guard.trigger()
    other.publish(Int32())
    wait_until(executor, lambda: 'other' in heard)
    assert heard == ['subscription 0', 'subscription 1', 'subscription 2', 'other']
    assert rung == [0]
    # Alone it does not end a wait.
    publisher.publish(Int32(data=3))
    executor._wait(0.2)
    assert heard[-1] == 'other'
    executor.spin_once(timeout_sec=0.0)
    assert heard[-1] == 'subscription 3'


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


@pytest.mark.parametrize('place', [Executor, lean_executor._rclpy])
def test_an_rclpy_with_another_inside_keeps_its_own_executor_and_the_log_says_so(
    ros: None, place: object, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    assert isinstance(node_executor(), LeanExecutor)
    if place is Executor:
        monkeypatch.setattr(lean_executor, '_TASKS', ('_errands',))
        name = 'Executor._errands'
    else:
        monkeypatch.delattr(place, 'Timer')
        name = 'Timer.is_timer_ready'
    assert type(node_executor()) is SingleThreadedExecutor
    assert f'this rclpy has no {name}' in capfd.readouterr().err


def test_tasks_of_newer_releases_are_seen(executor: LeanExecutor) -> None:
    task = Task(lambda: 5)
    executor.__dict__['_pending_tasks'] = {task: (None, None)}
    assert executor._has_tasks()
    task()
    assert not executor._has_tasks()
    del executor.__dict__['_pending_tasks']
