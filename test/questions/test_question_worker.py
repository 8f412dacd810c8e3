"""Every question has one result by its deadline, whatever tracks and models do."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import pytest
from hand_made_observations import observed, walked

from mmedge_ros.questions.answer import Answer
from mmedge_ros.questions.language_model import (
    IsCancelled,
    LanguageModel,
    ModelRefusal,
    OnPhase,
    Phase,
    ReadyModel,
    never,
)
from mmedge_ros.questions.model_client import ModelError
from mmedge_ros.questions.model_prompt import PromptPicture
from mmedge_ros.questions.question_worker import MOST_WAITING, LiveAnswer, QuestionWorker
from mmedge_ros.questions.selection import KnownFlight

PEOPLE = 'how many people were seen?'
PATIENCE = 20.0


class Flight:
    """Two people for ten seconds; known only once it is let, and pictures come when they are."""

    def __init__(self) -> None:
        self.let, self.came = threading.Event(), threading.Event()
        self.let.set()
        self.needs_pictures = False
        self.breaks = False

    def awaited(self, question: str) -> Callable[[], bool] | None:
        return self.came.is_set if self.needs_pictures else None

    def known(self) -> KnownFlight:
        assert self.let.wait(PATIENCE)
        if self.breaks:
            raise ZeroDivisionError
        return KnownFlight(observed(walked(1), walked(2, place=(20.0, 0.0))))

    def pictures(self, answer: Answer) -> Sequence[PromptPicture]:
        return []


class HangingModel:
    """Serves nobody, until it is cancelled or let go."""

    def __init__(self) -> None:
        self.begun, self.released = threading.Event(), threading.Event()

    @contextmanager
    def serving(
        self, deadline: float, on_phase: OnPhase, is_cancelled: IsCancelled = never
    ) -> Iterator[ReadyModel]:
        on_phase(Phase.LOADING)
        self.begun.set()
        moments = threading.Event()
        while not is_cancelled() and time.monotonic() < deadline:
            moments.wait(0.01)
        self.released.set()
        raise ModelError('it hangs')
        yield


class Asked:
    """A question, and what was heard of it."""

    def __init__(self, worker: QuestionWorker, text: str = PEOPLE, seconds: float = 9.0) -> None:
        self.phases: list[Phase] = []
        self.results: list[LiveAnswer] = []
        self._done = threading.Event()
        self.begun = time.monotonic()
        self.question = worker.ask(text, seconds, self.phases.append, self._on_done)

    def _on_done(self, live: LiveAnswer) -> None:
        self.results.append(live)
        self.seconds = time.monotonic() - self.begun
        self._done.set()

    @property
    def result(self) -> LiveAnswer:
        assert self._done.wait(PATIENCE)
        return self.results[0]

    @property
    def refused(self) -> str:
        return self.result.answer.refused


@contextmanager
def working(flight: Flight, model: LanguageModel | None = None) -> Iterator[QuestionWorker]:
    worker = QuestionWorker(flight, model)
    worker.start()
    try:
        yield worker
    finally:
        flight.let.set()
        worker.stop(PATIENCE)


def test_what_was_measured_is_answered_and_times_count_from_the_begin_of_the_flight() -> None:
    with working(Flight()) as worker:
        asked = Asked(worker)
        assert asked.result.answer.value == 2
        assert asked.result.begin_ns == 100_000_000_000
        assert asked.result.said is None
        assert asked.phases == [Phase.WAITING]
        assert 'track 9' in Asked(worker, 'which way is track 9 going?').refused
        assert (worker.answered, worker.refused) == (1, 1)


@pytest.mark.parametrize(
    ('text', 'seconds', 'words'),
    [
        (PEOPLE, 0.0, 'a deadline of 0 s; name 0.1 to 600 s'),
        (PEOPLE, -1.0, 'name 0.1 to 600 s'),
        (PEOPLE, float('nan'), 'name 0.1 to 600 s'),
        (PEOPLE, 1e300, 'name 0.1 to 600 s'),
        ('  ', 9.0, '1 to 500 characters, not 2'),
        ('x' * 1_000_000, 9.0, '1 to 500 characters, not 1000000'),
        ('how many\0people?', 9.0, 'that can be printed'),
    ],
)
def test_what_is_no_question_is_refused_at_once(text: str, seconds: float, words: str) -> None:
    asked = Asked(QuestionWorker(Flight()), text, seconds)
    assert words in asked.refused
    assert asked.phases == []


def test_so_many_may_wait_and_others_are_refused() -> None:
    flight = Flight()
    flight.let.clear()
    with working(flight) as worker:
        asked = [Asked(worker) for _ in range(MOST_WAITING + 3)]
        assert [bool(one.results) for one in asked] == [False] * MOST_WAITING + [True] * 3
        assert asked[-1].refused == '16 questions are waiting already; ask again later'
        flight.let.set()
        assert {one.result.answer.value for one in asked[:MOST_WAITING]} == {2}
        assert not Asked(worker).refused


def test_a_question_is_refused_at_its_deadline_and_has_no_second_result() -> None:
    flight = Flight()
    flight.let.clear()
    with working(flight) as worker:
        late = Asked(worker, seconds=0.2)
        assert late.refused == 'the answer was not worked out by the deadline'
        assert 0.2 <= late.seconds < PATIENCE / 2
        flight.let.set()
        assert not Asked(worker).refused
        assert len(late.results) == 1


def test_pictures_are_waited_for_and_other_questions_go_on_meanwhile() -> None:
    flight = Flight()
    flight.needs_pictures = True
    with working(flight) as worker:
        first = Asked(worker)
        flight.needs_pictures = False
        # It may be looked at before the first one.
        assert not Asked(worker).refused
        flight.came.set()
        assert first.result.answer.value == 2


def test_pictures_that_do_not_come_cost_half_of_the_time_and_no_answer() -> None:
    flight = Flight()
    flight.needs_pictures = True
    with working(flight) as worker:
        asked = Asked(worker, seconds=0.6)
        assert asked.result.answer.value == 2


def test_a_hanging_model_is_left_at_the_deadline_and_what_was_measured_is_answered() -> None:
    model = HangingModel()
    with working(Flight(), model) as worker:
        asked = Asked(worker, seconds=0.4)
        assert asked.result.answer.value == 2
        assert asked.result.said == ModelRefusal('it hangs')
        assert asked.phases == [Phase.WAITING, Phase.LOADING]
        assert model.released.is_set()


def test_a_second_question_does_not_wait_for_the_model_beyond_its_own_deadline() -> None:
    model = HangingModel()
    with working(Flight(), model) as worker:
        first = Asked(worker)
        assert model.begun.wait(PATIENCE)
        second = Asked(worker, seconds=0.3)
        assert second.result.answer.value == 2
        assert isinstance(second.result.said, ModelRefusal)
        assert second.result.said.reason == 'the model was busy with another question by then'
        assert not first.results
        first.question.cancel()
        assert first.result.is_cancelled
        assert first.result.is_refused
        assert model.released.wait(PATIENCE)


def test_an_error_that_nobody_foresaw_ends_a_question_and_not_the_worker() -> None:
    flight = Flight()
    with working(flight) as worker:
        flight.breaks = True
        assert 'unexpected ZeroDivisionError' in Asked(worker).refused
        flight.breaks = False
        assert not Asked(worker).refused


def test_the_end_waits_for_no_model() -> None:
    model = HangingModel()
    with working(Flight(), model) as worker:
        asked = Asked(worker, seconds=500.0)
        assert model.begun.wait(PATIENCE)
        worker.stop(PATIENCE)
        assert model.released.is_set()
        assert asked.result.is_cancelled
