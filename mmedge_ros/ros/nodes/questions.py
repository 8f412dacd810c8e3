"""Answers questions about what was perceived, by an action and as plain text."""

from __future__ import annotations

import sys
import time
from functools import partial
from typing import Any

from rclpy.action.server import ActionServer, CancelResponse, GoalResponse
from rclpy.node import Node
from std_msgs.msg import String

from mmedge_ros import action, msg
from mmedge_ros.flight_memory.query import LONGEST_QUERY
from mmedge_ros.geometry.sensor_rig import SensorRig
from mmedge_ros.questions.explain import Phase
from mmedge_ros.questions.question_worker import AskedQuestion, LiveAnswer, QuestionWorker
from mmedge_ros.ros.diagnostics import Diagnostics
from mmedge_ros.ros.geometry_inputs import GeometryInputs
from mmedge_ros.ros.input_watch import InputWatch
from mmedge_ros.ros.messages import conversions, names, qos
from mmedge_ros.ros.messages.question_messages import answer_lines, to_result
from mmedge_ros.ros.node_main import run_nodes
from mmedge_ros.ros.parameters import declare
from mmedge_ros.ros.question_setup import QuestionParameters, live_flight, model_of
from mmedge_ros.ros.ros_clock import RosClock

# Questions that come as text have no deadline of their own, s.
TEXT_DEADLINE = 30.0


class QuestionsNode(Node):
    """Collects decisions; threads of a worker answer."""

    def __init__(self, **node_options: Any) -> None:
        super().__init__('questions', **node_options)
        p = declare(self, QuestionParameters)
        self._ros_clock = RosClock(self)
        # Where the drone is; `GeometryInputs` enters it.
        self.rig = SensorRig()
        self._asked: dict[bytes, AskedQuestion] = {}
        self._wakes = self.create_publisher(String, names.WAKE, qos.RESULT)
        self._flight = live_flight(p, self._ros_clock.now_ns, self._wake)
        self._worker = QuestionWorker(self._flight, model_of(p))
        self._answers = self.create_publisher(String, names.ANSWERS, qos.RESULT)
        self._watch = InputWatch(self, time.monotonic)
        self._watch.expect('tracks', names.TRACKS, qos.RESULT)
        self._diagnostics = Diagnostics(self, self._watch, self._figures)
        self._geometry = GeometryInputs(self, self._do, wants_camera=False)
        self.create_subscription(msg.TrackArray, names.TRACKS, self._on_tracks, qos.RESULT)
        self.create_subscription(
            msg.Configuration, names.CONFIGURATION, self._on_configuration, qos.LATCHED
        )
        self.create_subscription(String, names.QUESTIONS, self._on_text, qos.RESULT)
        self._worker.start()
        self._server = ActionServer(
            self,
            action.Ask,
            names.ASK,
            self._never,
            goal_callback=self._on_request,
            handle_accepted_callback=self._on_goal,
            cancel_callback=self._on_cancel,
        )

    def stop(self) -> None:
        """Release the model."""
        self._worker.stop()
        self._server.destroy()

    def _do(self, task: Any, urgent: bool = True) -> None:
        """Do at once what a pipeline would do in its turn: it enters something in the rig."""
        del urgent
        task(self, 0)

    def _on_tracks(self, message: msg.TrackArray) -> None:
        self._watch.heard('tracks')
        try:
            decision = conversions.from_track_array(message)
            self._flight.add(decision, self.rig.ego_at(decision.state_ns))
        except ValueError as err:
            self.get_logger().warning(f'tracks not used: {err}', throttle_duration_sec=5.0)

    def _on_configuration(self, message: msg.Configuration) -> None:
        self._flight.configured(conversions.from_configuration(message))

    def _wake(self) -> None:
        self._wakes.publish(String(data='a question about now'))

    # As text.

    def _on_text(self, message: String) -> None:
        done = partial(self._publish, message.data)
        self._worker.ask(message.data, TEXT_DEADLINE, lambda _: None, done)

    def _publish(self, question: str, live: LiveAnswer) -> None:
        if self.context.ok():
            self._answers.publish(String(data=answer_lines(question, live)))

    # As goals. Callbacks only hand over; a goal is executed when its result is there.

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
        if self.context.ok():
            handle.publish_feedback(action.Ask.Feedback(phase=phase.value))

    def _done(self, handle: Any, live: LiveAnswer) -> None:
        # In the thread that spins, where it is also cancelled.
        if self.executor is not None and self.context.ok():
            self.executor.create_task(partial(handle.execute, partial(self._result, live)))

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

    def _figures(self) -> dict[str, object]:
        return {
            'answered': self._worker.answered,
            'refused': self._worker.refused,
            'rows': self._flight.rows,
            'woken': self._flight.woken,
            'looks': self._flight.problem,
        }


def main(args: list[str] | None = None) -> None:
    """Run the node."""
    sys.exit(run_nodes([QuestionsNode], args))


if __name__ == '__main__':
    main()
