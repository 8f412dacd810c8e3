"""Answers questions about what was perceived, by an action and as plain text."""

from __future__ import annotations

import sys
import time
from functools import partial
from typing import Any

from rclpy.node import Node
from std_msgs.msg import String

from mmedge_ros import msg
from mmedge_ros.geometry.sensor_rig import SensorRig
from mmedge_ros.questions.question_worker import LiveAnswer, QuestionWorker
from mmedge_ros.ros.ask_action import AskAction
from mmedge_ros.ros.configuration_input import ConfigurationInput
from mmedge_ros.ros.describing_output import DescribingOutput
from mmedge_ros.ros.diagnostics import Diagnostics
from mmedge_ros.ros.geometry_inputs import GeometryInputs
from mmedge_ros.ros.input_watch import InputWatch
from mmedge_ros.ros.messages import conversions, names, qos
from mmedge_ros.ros.messages.question_messages import answer_lines
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
        self.rig.prefix = p.frame_prefix
        self._wakes = self.create_publisher(String, names.WAKE, qos.RESULT)
        self._flight = live_flight(p, self._ros_clock.now_ns, self._wake)
        self._describing = DescribingOutput(self, self._ros_clock, model_of(p), p.describe)
        self._worker = QuestionWorker(self._flight, self._describing.model)
        self._answers = self.create_publisher(String, names.ANSWERS, qos.RESULT)
        self._watch = InputWatch(self, time.monotonic)
        self._watch.expect('tracks', names.TRACKS, qos.RESULT)
        self._diagnostics = Diagnostics(self, self, self._figures)
        self._geometry = GeometryInputs(self, self._do, False, p.frame_prefix)
        self.create_subscription(msg.TrackArray, names.TRACKS, self._on_tracks, qos.RESULT)
        ConfigurationInput(self, self._flight.configured)
        self.create_subscription(String, names.QUESTIONS, self._on_text, qos.RESULT)
        self._worker.start()
        self._action = AskAction(self, self._worker)

    def stop(self) -> None:
        """Release the model."""
        self._worker.stop()
        self._describing.stop()
        self._action.destroy()

    def missing(self) -> list[str]:
        """Say in words what is missing."""
        return [*self._watch.missing(), *self._describing.missing()]

    def _do(self, task: Any, urgent: bool = True) -> None:
        """Do at once what a pipeline would do in its turn: it enters something in the rig."""
        del urgent
        task(self, 0)

    def _on_tracks(self, message: msg.TrackArray) -> None:
        self._watch.heard('tracks')
        if conversions.is_update(message):
            return
        try:
            decision = conversions.from_track_array(message)
            self._flight.add(decision, self.rig.ego_at(decision.state_ns))
            self._describing.decided(decision)
        except ValueError as err:
            self.get_logger().warning(f'tracks not used: {err}', throttle_duration_sec=5.0)

    def _wake(self) -> None:
        self._wakes.publish(String(data='a question about now'))

    # As text.

    def _on_text(self, message: String) -> None:
        done = partial(self._publish, message.data)
        self._worker.ask(message.data, TEXT_DEADLINE, lambda _: None, done)

    def _publish(self, question: str, live: LiveAnswer) -> None:
        if self.context.ok():
            self._answers.publish(String(data=answer_lines(question, live)))

    def _figures(self) -> dict[str, object]:
        return {
            'answered': self._worker.answered,
            'refused': self._worker.refused,
            'rows': self._flight.rows,
            'woken': self._flight.woken,
            'looks': self._flight.problem,
            **self._describing.figures(),
        }


def main(args: list[str] | None = None) -> None:
    """Run the node."""
    sys.exit(run_nodes([QuestionsNode], args))


if __name__ == '__main__':
    main()
