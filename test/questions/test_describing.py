"""A model describes the newest decision, claims the time that takes, and never makes a queue."""

from __future__ import annotations

import os
import signal
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from fake_model_process import COMMAND
from fake_model_server import short_folder
from hand_made_sights import decided, sighted, standing

from mmedge_ros.adaptation.latency_budget import LatencyBudget, LatencyDemand
from mmedge_ros.core.data_types import Decision
from mmedge_ros.core.parameter import ParameterError
from mmedge_ros.questions.describing import KINDS, DescribeParameters, Describer
from mmedge_ros.questions.language_model import (
    IsCancelled,
    ModelRefusal,
    OnPhase,
    OwnModel,
    Phase,
    ReadyModel,
    explain,
)
from mmedge_ros.questions.model_client import ModelError, StreamedAnswer, never
from mmedge_ros.questions.model_prompt import PromptFacts
from mmedge_ros.questions.model_server import ModelFiles, ModelServer

LIMIT, USUAL = 1.0, 0.1


class Desk:
    """A describer with a model that answers when it is let, on a clock of its own."""

    def __init__(self, kinds: Sequence[str] = ('scene',), total_limit: float = LIMIT) -> None:
        self.now = 0.0
        self.taken = 0.5
        self.problem, self.words = '', 'sentence\n{}'
        self.is_loaded = True
        self.at_work: list[Callable[[], None]] = []
        self.said: list[str] = []
        self.asked: list[str] = []
        self.tasks: list[str] = []
        self.tokens: list[int] = []
        self.describer = Describer(
            self,
            DescribeParameters(tuple(kinds), total_limit),
            self.said.append,
            monotonic=lambda: self.now,
            start=self.at_work.append,
        )

    @contextmanager
    def serving(
        self, deadline: float, on_phase: OnPhase, is_cancelled: IsCancelled = never
    ) -> Iterator[ReadyModel]:
        if not self.is_loaded:
            on_phase(Phase.LOADING)
            self.is_loaded = True
            self.now += 3.0
        yield cast(ReadyModel, self)

    def ask(
        self, messages: Sequence[Mapping[str, Any]], _until: float, **form: Any
    ) -> StreamedAnswer:
        if self.problem:
            raise ModelError(self.problem)
        self.tasks.append(messages[0]['content'])
        self.asked.append(messages[-1]['content'])
        self.tokens.append(form['most_tokens'])
        self.now += self.taken
        return StreamedAnswer(self.words.format(len(self.asked)), (), 0.1, self.taken, 8)

    def describe(self, times: int = 1) -> None:
        for _ in range(times):
            assert self.describer.offer(decision(self.now))
            self.finish()

    def finish(self) -> None:
        self.at_work.pop(0)()

    def limit(self) -> float:
        """What an optimiser that hears every demand keeps to."""
        budget = LatencyBudget()
        for demand in self.describer.demands():
            assert budget.take(demand, self.now)
        return budget.limit(USUAL, self.now)[0]


def decision(seconds: float = 1.0, latency: float = 0.02) -> Decision:
    made = decided(seconds, sighted(7, 3, 0, standing()))
    return replace(made, published_ns=made.window_end_ns + round(latency * 1e9))


def test_decisions_that_come_while_a_sentence_is_made_are_skipped_and_never_queued() -> None:
    desk = Desk()
    assert desk.describer.offer(decision(1.0))
    assert [desk.describer.offer(decision(1.0 + n / 10)) for n in range(1, 51)] == [False] * 50
    assert len(desk.at_work) == 1
    desk.finish()
    assert desk.at_work == []
    assert desk.said == ['sentence 1']
    assert desk.describer.offer(decision(9.0))
    counts = desk.describer.counts
    assert (counts.sentences, counts.skipped) == (1, 50)


def test_what_the_slowest_sentences_leave_is_the_limit_of_perception() -> None:
    desk = Desk()
    desk.taken = 0.9
    desk.describe(4)
    assert desk.describer.demands() == []
    desk.taken = 0.94
    desk.describe(40)
    (demand,) = desk.describer.demands()
    assert demand == LatencyDemand('describing: scene', pytest.approx(0.94), LIMIT, 2.0)
    assert desk.limit() == pytest.approx(0.06)


def test_the_time_a_decision_waited_counts_and_that_of_loading_and_warming_up_does_not() -> None:
    desk = Desk()
    desk.is_loaded = False
    desk.describe()
    assert (desk.said, len(desk.asked)) == ([], 1)
    for _ in range(5):
        assert desk.describer.offer(decision(desk.now), waited=0.1)
        desk.finish()
    assert desk.describer.upper('scene') == pytest.approx(0.6)


def test_old_times_are_forgotten_so_that_the_limit_follows_the_machine() -> None:
    desk = Desk()
    desk.taken = 0.98
    desk.describe(40)
    assert desk.limit() == pytest.approx(0.02)
    desk.taken = 0.3
    desk.describe(32)
    assert desk.limit() == USUAL


def test_sentences_count_as_in_time_by_the_latency_of_their_decision() -> None:
    desk = Desk()
    desk.taken = 0.95
    desk.describe()
    assert desk.describer.offer(decision(latency=0.06))
    desk.finish()
    counts = desk.describer.counts
    assert (counts.sentences, counts.in_time) == (2, 1)
    assert counts.newest == pytest.approx(1.01)


def test_a_model_that_is_too_slow_alone_claims_nothing_and_is_named() -> None:
    desk = Desk()
    desk.taken = 1.5
    desk.describe(5)
    assert desk.limit() == USUAL
    assert desk.describer.missing() == ['most sentences (scene) take longer alone than 1 s']


def test_kinds_take_turns_and_the_hardest_leaves_least() -> None:
    desk = Desk(('count', 'comparison'))
    for _ in range(6):
        desk.taken = 0.91
        desk.describe()
        desk.taken = 0.97
        desk.describe()
    assert desk.tokens[:2] == [KINDS['count'].tokens, KINDS['comparison'].tokens]
    left = {d.source: d.total_limit - d.decode_time for d in desk.describer.demands()}
    assert left == {
        'describing: count': pytest.approx(0.09),
        'describing: comparison': pytest.approx(0.03),
    }
    assert desk.limit() == pytest.approx(0.03)


def test_a_kind_that_there_is_not_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(ParameterError, match="'sceen' is none of scene, existence, count"):
        Desk(('sceen',))


def test_what_was_claimed_ends_within_its_lease_when_the_model_dies() -> None:
    desk, budget = Desk(), LatencyBudget()
    desk.taken = 0.94
    desk.describe(5)
    for demand in desk.describer.demands():
        budget.take(demand, desk.now)
    died_at = desk.now
    desk.problem = 'the model server was killed'
    desk.describe()
    assert desk.describer.demands() == []
    assert budget.limit(USUAL, died_at + 1.9)[0] == pytest.approx(0.06)
    assert budget.limit(USUAL, died_at + 2.0)[0] == USUAL
    assert desk.describer.missing() == ['the model server was killed']
    # It is tried again, but not with every decision; nothing is claimed before it works again.
    assert not desk.describer.offer(decision())
    desk.now += 5.0
    desk.problem, desk.is_loaded = '', False
    desk.describe()
    assert desk.describer.demands() == []
    desk.describe()
    assert desk.limit() == pytest.approx(0.06)


def test_a_model_that_says_nothing_is_said_to() -> None:
    desk = Desk()
    desk.words = ' \n'
    desk.describe()
    assert desk.said == []
    assert desk.describer.missing() == ['the model said nothing of a decision']


def test_a_question_asked_once_shortens_nothing_and_describing_rests_meanwhile() -> None:
    desk = Desk()
    desk.taken = 0.94
    desk.describe(5)
    limits: list[float] = []
    offered: list[bool] = []

    def on_phase(phase: Phase) -> None:
        limits.append(desk.limit())
        offered.append(desk.describer.offer(decision()))

    with desk.describer.serving(desk.now + 5.0, on_phase):
        on_phase(Phase.DECODING)
    assert (limits, offered) == ([USUAL], [False])
    assert desk.limit() == pytest.approx(0.06)
    desk.describe()


def test_a_question_waits_for_the_sentence_in_work_by_its_deadline_only() -> None:
    desk = Desk()
    assert desk.describer.offer(decision())
    said = explain('who?', PromptFacts('One person.'), [], desk.now, desk.describer)
    assert isinstance(said, ModelRefusal)
    assert 'at work on something else' in said.reason
    desk.finish()
    assert desk.said == ['sentence 1']
    assert desk.describer.offer(decision())


def test_after_the_end_nothing_is_described_or_claimed() -> None:
    desk = Desk()
    desk.taken = 0.94
    desk.describe(5)
    assert desk.describer.offer(decision())
    desk.describer.close()
    desk.finish()
    assert len(desk.said) == 5
    assert not desk.describer.offer(decision())
    assert desk.describer.demands() == []


def test_a_killed_server_ends_the_claim_and_is_loaded_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / 'own.gguf'
    path.write_bytes(b'GGUF and more')
    said: list[str] = []
    later = 0.0
    with (
        short_folder() as folder,
        ModelServer(ModelFiles(path), command=(*COMMAND, 'answers')) as server,
    ):
        monkeypatch.setattr(tempfile, 'tempdir', str(folder))
        describer = Describer(
            OwnModel(server, stays=True),
            DescribeParameters(('scene',), 60.0),
            said.append,
            monotonic=lambda: time.monotonic() + later,
            start=lambda work: work(),
        )
        assert [describer.offer(decision()) for _ in range(6)] == [True] * 6
        assert len(said) == 5
        assert len(describer.demands()) == 1
        os.kill(server.pid, signal.SIGKILL)
        assert describer.offer(decision())
        assert describer.demands() == []
        # It is loaded anew at once where its end is known before it is asked.
        (problem,) = describer.missing()
        assert 'the model' in problem
        later = 5.0
        assert [describer.offer(decision()) for _ in range(2)] == [True] * 2
        assert len(said) > 5
        assert len(describer.demands()) == 1
