"""Asks the running graph one question as text, and waits for the answer to it."""

from __future__ import annotations

import time
from typing import Any

from rclpy.node import Node
from std_msgs.msg import String

from mmedge_ros.questions import QuestionError
from mmedge_ros.questions.model_client import printable
from mmedge_ros.ros.messages import names, qos
from mmedge_ros.ros.messages.question_messages import question_line
from mmedge_ros.ros.sessions.own_context import spinning

_LONGEST_LINE = 2000
_MOST_LINES = 2
# s. Both ends are found at about the same time; the other end may take a little longer.
_SETTLING = 0.2


class Asker(Node):
    """Publishes a question, and keeps the first answer whose first line is that question."""

    def __init__(self, question: str, **node_options: Any) -> None:
        super().__init__('mmedge_talk', **node_options)
        self._question = question_line(question)
        self.answer: tuple[str, ...] = ()
        self._is_asked = False
        self._questions = self.create_publisher(String, names.QUESTIONS, qos.RESULT)
        self.create_subscription(String, names.ANSWERS, self._on_answer, qos.RESULT)

    @property
    def is_heard(self) -> bool:
        """Whether there is something that takes questions and something that answers."""
        return bool(
            self._questions.get_subscription_count() and self.count_publishers(names.ANSWERS)
        )

    def ask(self) -> None:
        """Publish the question."""
        self._is_asked = True
        self._questions.publish(String(data=self._question))

    def _on_answer(self, message: String) -> None:
        question, *lines = message.data.split('\n', _MOST_LINES + 1)
        if self._is_asked and not self.answer and question == self._question:
            lines = [printable(line[:_LONGEST_LINE]) for line in lines[:_MOST_LINES]]
            self.answer = tuple(line for line in lines if line)


def ask_graph(question: str, deadline: float) -> tuple[str, ...]:
    """Return the lines of the answer: what was measured, and what a model says if there is one.

    :param deadline: instant (s) of the monotonic clock
    :raises QuestionError: if there is no answer by then
    """
    with spinning(lambda context: Asker(question, context=context)) as (asker, spin_once):
        asked_at = None
        found_at = None
        while not asker.answer:
            now = time.monotonic()
            if now >= deadline:
                raise QuestionError(
                    'nothing answers questions here; start mmedge up --questions'
                    if asked_at is None
                    else 'the graph did not answer in time'
                )
            if found_at is None and asker.is_heard:
                found_at = now
            if asked_at is None and found_at is not None and now - found_at >= _SETTLING:
                asker.ask()
                asked_at = now
            spin_once()
        return asker.answer
