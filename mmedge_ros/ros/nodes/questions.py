"""Answers questions about what was perceived, by an action and as plain text.

Callbacks only hand over: threads of a worker answer, and a goal is executed when its result is
there.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from rclpy.action.server import ActionServer, CancelResponse, GoalResponse
from rclpy.node import Node
from std_msgs.msg import String

from mmedge_ros import action, msg
from mmedge_ros.core.parameter import ParameterError, group, parameter
from mmedge_ros.encoding.bundle.default_model import default_detector
from mmedge_ros.geometry.sensor_rig import SensorRig
from mmedge_ros.memory.query import LONGEST_QUERY
from mmedge_ros.questions.describing import DescribeParameters
from mmedge_ros.questions.language_model import LanguageModel, Phase, language_model
from mmedge_ros.questions.live_flight import LiveFlight
from mmedge_ros.questions.model_client import is_endpoint
from mmedge_ros.questions.question_worker import AskedQuestion, LiveAnswer, QuestionWorker
from mmedge_ros.ros.configuration_input import ConfigurationInput
from mmedge_ros.ros.describing_output import DescribingOutput
from mmedge_ros.ros.diagnostics import Diagnostics
from mmedge_ros.ros.geometry_inputs import GeometryInputs, at_once, frame_prefix
from mmedge_ros.ros.input_watch import InputWatch
from mmedge_ros.ros.messages import conversions, names, qos
from mmedge_ros.ros.messages.question_messages import answer_lines, to_result
from mmedge_ros.ros.node_main import program
from mmedge_ros.ros.nodes.memory import memory_place
from mmedge_ros.ros.parameters import declare
from mmedge_ros.ros.ros_clock import RosClock

# Questions that come as text have no deadline of their own, s.
TEXT_DEADLINE = 30.0


@dataclass(frozen=True)
class DetectedLabels:
    """What the camera encoder detects."""

    labels: tuple[str, ...] = parameter(
        ('person',), 'labels that the camera encoder keeps: of others nothing can be said'
    )


@dataclass(frozen=True)
class QuestionParameters:
    """The node that answers questions."""

    folder: str = parameter('', 'flight memory of this flight, as the memory node has it, if any')
    detector: str = parameter(
        '', 'model of the camera encoder, see there: its bundle may have made the memory'
    )
    simulated: bool = parameter(
        False, 'the pictures come from the simulator; decides which bundle an empty name takes'
    )
    model: str = parameter(
        '',
        'language model that says more: a server on this machine such as http://127.0.0.1:8080, '
        'or a GGUF file, loaded for each question; empty: none',
    )
    projector: str = parameter('', 'projector (mmproj) that lets a GGUF see pictures')
    frame_prefix: str = frame_prefix()
    detection: DetectedLabels = group(DetectedLabels)
    describe: DescribeParameters = group(DescribeParameters)

    def language_model(self) -> LanguageModel | None:
        """Return the user's model; None where none is named.

        :raises ParameterError: for a projector without a GGUF
        :raises ModelError: for an address that is none of this machine
        """
        if self.projector and (not self.model or is_endpoint(self.model)):
            raise ParameterError('projector: goes with a GGUF file as model')
        projector = Path(self.projector) if self.projector else None
        stays = bool(self.describe.kinds)
        return language_model(self.model, projector, stays) if self.model else None


class QuestionsNode(Node):
    """Collects decisions; threads of a worker answer."""

    def __init__(self, **node_options: Any) -> None:
        super().__init__('questions', **node_options)
        p = declare(self, QuestionParameters)
        clock = RosClock(self)
        # Where the drone is; `GeometryInputs` enters it.
        self._rig = SensorRig()
        self._rig.prefix = p.frame_prefix
        self._wakes = self.create_publisher(String, names.WAKE, qos.RESULT)
        memory = memory_place(p.folder) if p.folder else None
        detector = str(default_detector(p.detector, p.simulated)) if p.folder else ''
        self._flight = LiveFlight(clock.now_ns, self._wake, p.detection.labels, memory, detector)
        self._describing = DescribingOutput(self, clock, p.language_model(), p.describe)
        self._worker = QuestionWorker(self._flight, self._describing.model)
        self._answers = self.create_publisher(String, names.ANSWERS, qos.RESULT)
        self._watch = InputWatch(self, time.monotonic)
        self._watch.expect('tracks', names.TRACKS, qos.RESULT)
        self._diagnostics = Diagnostics(self, self, self._figures)
        self._geometry = GeometryInputs(self, at_once(self._rig), False, p.frame_prefix)
        self.create_subscription(msg.TrackArray, names.TRACKS, self._on_tracks, qos.RESULT)
        ConfigurationInput(self, self._flight.configured)
        self.create_subscription(String, names.QUESTIONS, self._on_text, qos.RESULT)
        self._worker.start()
        self._asked: dict[bytes, AskedQuestion] = {}
        self._action = ActionServer(
            *(self, action.Ask, names.ASK, self._never),
            goal_callback=self._on_request,
            handle_accepted_callback=self._on_goal,
            cancel_callback=self._on_cancel,
        )

    def stop(self) -> None:
        """Release the model."""
        self._worker.stop()
        self._describing.stop()
        self._action.destroy()

    def missing(self) -> list[str]:
        """Say in words what is missing."""
        return [*self._watch.missing(), *self._describing.missing()]

    def _on_tracks(self, message: msg.TrackArray) -> None:
        self._watch.heard('tracks')
        if conversions.is_update(message):
            return
        try:
            decision = conversions.from_track_array(message)
            self._flight.add(decision, self._rig.ego_at(decision.state_ns))
            self._describing.decided(decision)
        except ValueError as err:
            self.get_logger().warning(f'tracks not used: {err}', throttle_duration_sec=5.0)

    def _wake(self) -> None:
        self._wakes.publish(String(data='a question about now'))

    def _figures(self) -> dict[str, object]:
        return {
            'answered': self._worker.answered,
            'refused': self._worker.refused,
            'rows': self._flight.rows,
            'woken': self._flight.woken,
            'looks': self._flight.problem,
            **self._describing.figures(),
        }

    # As text.

    def _on_text(self, message: String) -> None:
        done = partial(self._publish, message.data)
        self._worker.ask(message.data, TEXT_DEADLINE, lambda _: None, done)

    def _publish(self, question: str, live: LiveAnswer) -> None:
        if self.context.ok():
            self._answers.publish(String(data=answer_lines(question, live)))

    # As an action.

    def _on_request(self, goal: Any) -> GoalResponse:
        # It is kept for as long as its result; one character more says that it was too long.
        goal.question = goal.question[: LONGEST_QUERY + 1]
        return GoalResponse.ACCEPT

    def _on_goal(self, handle: Any) -> None:
        goal = handle.request
        self._asked[bytes(handle.goal_id.uuid)] = self._worker.ask(
            *(goal.question, goal.deadline),
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


main = program(QuestionsNode)


if __name__ == '__main__':
    main()
