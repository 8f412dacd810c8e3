"""Answers questions in threads: at once from tracks, then with a language model.

One thread works out what was measured, another one waits for a model, one question at a time.
Whatever they do, each question has its result by its deadline.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Protocol

from mmedge_ros.core.run_record import unexpected
from mmedge_ros.memory.query import LONGEST_QUERY
from mmedge_ros.questions.answer import Answer
from mmedge_ros.questions.answering import ask
from mmedge_ros.questions.language_model import (
    LanguageModel,
    ModelAnswer,
    ModelRefusal,
    Phase,
    explain,
)
from mmedge_ros.questions.model_prompt import PromptPicture, flight_facts
from mmedge_ros.questions.selection import KnownFlight

_LOG = logging.getLogger(__name__)
MOST_WAITING = 16
# Seconds that may be given.
LEAST_TIME, MOST_TIME = 0.1, 600.0
# What a model that is cut off at the deadline takes to say why (s).
_LAST_WORDS = 0.03
# Pictures are awaited for so long (s), and looked for so often.
LONGEST_LOOK, _LOOK = 3.0, 0.02
_NICE = 10


@dataclass(frozen=True)
class LiveAnswer:
    """The result of a question.

    ``answer`` is what was measured, ``begin_ns`` from where its times count. ``said`` is what a
    model says, or why it says nothing; None where none is asked.
    """

    answer: Answer
    begin_ns: int = 0
    said: ModelAnswer | ModelRefusal | None = None
    is_cancelled: bool = False

    @property
    def is_refused(self) -> bool:
        """Whether neither tracks nor a model answered."""
        return bool(self.answer.refused) and not isinstance(self.said, ModelAnswer)


class Flight(Protocol):
    """The flight that questions are about; called from the threads of the worker."""

    def awaited(self, question: str) -> Callable[[], bool] | None:
        """Return a test whether the pictures for a question have come; None if none are needed."""

    def known(self) -> KnownFlight:
        """Return what is known now."""

    def pictures(self, answer: Answer) -> Sequence[PromptPicture]:
        """Return pictures of what an answer is about."""


class AskedQuestion:
    """A question on its way to its result.

    :param deadline: instant (s) of the monotonic clock
    """

    def __init__(
        self,
        text: str,
        deadline: float,
        on_phase: Callable[[Phase], None],
        on_done: Callable[[LiveAnswer], None],
    ) -> None:
        self.text, self.deadline = text, deadline
        # What was measured, and of what flight, once that is known.
        self.live: LiveAnswer | None = None
        self.flight: KnownFlight | None = None
        # Whether the pictures that it needs have come, and how long it waits for them.
        self.has_come: Callable[[], bool] | None = None
        self.look_until: float | None = None
        self.is_over = False
        self._on_phase, self._on_done = on_phase, on_done
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None

    def enter(self, phase: Phase) -> None:
        """Enter a phase."""
        with self._lock:
            if not self.is_over:
                self._on_phase(phase)

    def due(self, expire: Callable[[AskedQuestion], None], more: float = 0.0) -> None:
        """Have something done at the deadline, or that much (s) later, if it is open then."""
        left = max(self.deadline + more - time.monotonic(), 0.0)
        self._timer = threading.Timer(left, expire, [self])
        self._timer.daemon = True
        self._timer.start()

    def finish(self, live: LiveAnswer) -> bool:
        """Give it its result; False if it has one."""
        with self._lock:
            if self.is_over:
                return False
            self.is_over = True
            if self._timer is not None:
                self._timer.cancel()
            self._on_done(live)
            return True

    def cancel(self) -> None:
        """End it now, without an answer."""
        self.finish(replace(_refused('the question was cancelled'), is_cancelled=True))


class QuestionWorker:
    """Answers questions about a flight in threads of its own.

    :param model: says more after what was measured; None asks none
    """

    def __init__(self, flight: Flight, model: LanguageModel | None = None) -> None:
        self.answered = self.refused = 0
        self._flight, self._model = flight, model
        self._changed = threading.Condition()
        self._open: list[AskedQuestion] = []
        self._new: list[AskedQuestion] = []
        self._for_model: deque[AskedQuestion] = deque()
        self._with_model: AskedQuestion | None = None
        self._stopping = False
        work = (self._measure_all, self._explain_all)[: 1 if model is None else 2]
        self._threads = [threading.Thread(target=one, daemon=True) for one in work]

    def start(self) -> None:
        """Begin to answer."""
        for thread in self._threads:
            thread.start()

    def stop(self, timeout: float = 1.0) -> None:
        """End; questions that are open are cancelled."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        for question in self._open:
            question.cancel()
        for thread in self._threads:
            if thread.is_alive():
                thread.join(timeout)

    def ask(
        self,
        text: str,
        seconds: float,
        on_phase: Callable[[Phase], None],
        on_done: Callable[[LiveAnswer], None],
    ) -> AskedQuestion:
        """Take in a question; returns at once.

        :param seconds: by then it has its result
        :param on_phase: called with each phase it enters, from any thread
        :param on_done: called once with the result, from any thread
        """
        question = AskedQuestion(text, time.monotonic() + seconds, on_phase, on_done)
        reason = _refusal(text, seconds)
        with self._changed:
            self._open = [one for one in self._open if not one.is_over]
            if not reason and len(self._open) >= MOST_WAITING:
                reason = f'{MOST_WAITING} questions are waiting already; ask again later'
            if not reason:
                question.enter(Phase.WAITING)
                question.due(self._expire)
                self._open.append(question)
                self._new.append(question)
                self._changed.notify_all()
        if reason:
            self._finish(question, _refused(reason))
        return question

    # What was measured.

    def _measure_all(self) -> None:
        with suppress(OSError):  # the flight goes first
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICE)
        while (question := self._next()) is not None:
            try:
                known = self._flight.known()
                answer = ask(question.text, known)
            except Exception as err:  # noqa: BLE001  # no question may end the flight's answers
                _LOG.exception('a question failed')
                self._finish(question, _refused(unexpected(err)))
                continue
            question.live = LiveAnswer(answer, known.observations.begin_ns)
            question.flight = known
            if self._model is None:
                self._finish(question, question.live)
                continue
            with self._changed:
                self._for_model.append(question)
                self._changed.notify_all()

    def _next(self) -> AskedQuestion | None:
        """Wait for a question that can be answered; None: there will be no more."""
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._stopping or self._new)
                self._new = [one for one in self._new if not one.is_over]
                waiting = list(self._new)
            if self._stopping:
                return None
            ready = next(filter(self._is_ready, waiting), None)
            with self._changed:
                if ready is not None:
                    self._new.remove(ready)
                    return ready
                self._changed.wait_for(lambda: self._stopping, _LOOK)

    def _is_ready(self, question: AskedQuestion) -> bool:
        """Whether the pictures that it needs have come, or will not come in time."""
        now = time.monotonic()
        if question.look_until is None:
            question.look_until = now + min(LONGEST_LOOK, (question.deadline - now) / 2.0)
            question.has_come = self._flight.awaited(question.text)
        return question.has_come is None or question.has_come() or now >= question.look_until

    # What a model says.

    def _explain_all(self) -> None:
        while True:
            with self._changed:
                self._with_model = None
                self._changed.wait_for(lambda: self._stopping or self._for_model)
                if self._stopping:
                    return
                self._with_model = question = self._for_model.popleft()
            live, known = question.live, question.flight
            if question.is_over or live is None or known is None or self._model is None:
                continue
            said: ModelAnswer | ModelRefusal
            try:
                said = explain(
                    question.text,
                    flight_facts(live.answer, known.observations),
                    self._flight.pictures(live.answer),
                    question.deadline,
                    self._model,
                    question.enter,
                    lambda: question.is_over,  # noqa: B023  # it is asked before the next one
                )
            except Exception as err:  # noqa: BLE001  # what was measured is answered anyhow
                _LOG.exception('a question to the model failed')
                said = ModelRefusal(unexpected(err))
            self._finish(question, replace(live, said=said))

    # The end.

    def _expire(self, question: AskedQuestion) -> None:
        """Give a question its result at the deadline, whatever is at work on it."""
        with self._changed:
            is_with_model = question is self._with_model
        if is_with_model and time.monotonic() < question.deadline + _LAST_WORDS:
            question.due(self._expire, _LAST_WORDS)
        elif question.live is None:
            self._finish(question, _refused('the answer was not worked out by the deadline'))
        else:
            reason = 'not done' if is_with_model else 'busy with another question'
            said = ModelRefusal(f'the model was {reason} by then')
            self._finish(question, replace(question.live, said=said))

    def _finish(self, question: AskedQuestion, live: LiveAnswer) -> None:
        if question.finish(live):
            self.refused += live.is_refused
            self.answered += not live.is_refused


def _refusal(text: str, seconds: float) -> str:
    """Say what is wrong with a question before it is read; '' if nothing is."""
    if not LEAST_TIME <= seconds <= MOST_TIME:
        return f'a deadline of {seconds:g} s; name {LEAST_TIME:g} to {MOST_TIME:g} s'
    if not 0 < len(text.strip()) <= LONGEST_QUERY:
        return f'a question has 1 to {LONGEST_QUERY} characters, not {len(text)}'
    if not text.isprintable():
        return 'a question is one line of characters that can be printed'
    return ''


def _refused(reason: str) -> LiveAnswer:
    return LiveAnswer(Answer(reason, refused=reason))
