"""The action `ask`: callbacks only hand over; a goal is executed when its result is there."""

from __future__ import annotations

from functools import partial
from typing import Any

from rclpy.action.server import ActionServer, CancelResponse, GoalResponse
from rclpy.node import Node

from mmedge_ros import action
from mmedge_ros.memory.query import LONGEST_QUERY
from mmedge_ros.questions.language_model import Phase
from mmedge_ros.questions.question_worker import AskedQuestion, LiveAnswer, QuestionWorker
from mmedge_ros.ros.messages import names
from mmedge_ros.ros.messages.question_messages import to_result


class AskAction:
    """Lets a worker answer the goals of a node."""

    def __init__(self, node: Node, worker: QuestionWorker) -> None:
        self._node, self._worker = node, worker
        self._asked: dict[bytes, AskedQuestion] = {}
        self._server = ActionServer(
            node,
            action.Ask,
            names.ASK,
            self._never,
            goal_callback=self._on_request,
            handle_accepted_callback=self._on_goal,
            cancel_callback=self._on_cancel,
        )

    def destroy(self) -> None:
        """Take no more goals."""
        self._server.destroy()

    def _on_request(self, goal: Any) -> GoalResponse:
        # It is kept for as long as its result; one character more says that it was too long.
        goal.question = goal.question[: LONGEST_QUERY + 1]
        return GoalResponse.ACCEPT

    def _on_goal(self, handle: Any) -> None:
        key = bytes(handle.goal_id.uuid)
        goal = handle.request
        self._asked[key] = self._worker.ask(
            goal.question,
            goal.deadline,
            partial(self._feedback, handle),
            partial(self._done, handle),
        )

    def _feedback(self, handle: Any, phase: Phase) -> None:
        if self._node.context.ok():
            handle.publish_feedback(action.Ask.Feedback(phase=phase.value))

    def _done(self, handle: Any, live: LiveAnswer) -> None:
        # In the thread that spins, where it is also cancelled.
        if self._node.executor is not None and self._node.context.ok():
            self._node.executor.create_task(partial(handle.execute, partial(self._result, live)))

    def _result(self, live: LiveAnswer, handle: Any) -> action.Ask.Result:
        self._asked.pop(bytes(handle.goal_id.uuid), None)
        if handle.is_cancel_requested:
            handle.canceled()
        elif live.is_refused:
            handle.abort()
        else:
            handle.succeed()
        return to_result(live)

    def _on_cancel(self, handle: Any) -> CancelResponse:
        question = self._asked.get(bytes(handle.goal_id.uuid))
        if question is not None:
            question.cancel()
        return CancelResponse.ACCEPT

    def _never(self, handle: Any) -> action.Ask.Result:
        raise AssertionError(handle)
