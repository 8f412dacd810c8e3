"""A model says more, or a sentence says why it does not; and never a broken process."""

from __future__ import annotations

import os
import signal
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from fake_model_process import COMMAND
from fake_model_server import short_folder

from mmedge_ros.questions.language_model import (
    ModelAnswer,
    ModelRefusal,
    OwnModel,
    Phase,
    RunningModel,
    explain,
)
from mmedge_ros.questions.model_client import Endpoint
from mmedge_ros.questions.model_prompt import PromptFacts
from mmedge_ros.questions.model_server import ModelFiles, ModelServer

FACTS = PromptFacts('One person.', tracks=frozenset({7}))
PATIENCE = 30.0


@pytest.fixture
def temporary(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    with short_folder() as folder:
        monkeypatch.setattr(tempfile, 'tempdir', str(folder))
        yield folder


def own(behaviour: str, folder: Path) -> OwnModel:
    path = folder / 'own.gguf'
    path.write_bytes(b'GGUF and more')
    return OwnModel(ModelServer(ModelFiles(path), command=(*COMMAND, behaviour)))


def test_a_model_is_loaded_asked_and_released_and_names_only_what_it_was_told_of(
    tmp_path: Path, temporary: Path
) -> None:
    model, phases = own('answers', tmp_path), []
    deadline = time.monotonic() + PATIENCE
    said = explain('who?', FACTS, [], deadline, model, phases.append)
    assert isinstance(said, ModelAnswer)
    assert (said.text, said.tracks) == ('A man in red.', (7,))
    assert phases == [Phase.LOADING, Phase.ENCODING, Phase.DECODING]
    assert model.server.pid == 0
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize(
    ('behaviour', 'within', 'reason'),
    [
        ('is killed when asked', PATIENCE, 'was killed, as it is where memory runs out'),
        ('hangs when asked', 2.0, 'cut off at the deadline, before its first word'),
        ('never loads', 0.5, 'own.gguf was not loaded by the deadline'),
        ('ends', PATIENCE, 'the model server ended while own.gguf loaded'),
    ],
)
def test_where_the_model_fails_a_sentence_says_why(
    tmp_path: Path, temporary: Path, behaviour: str, within: float, reason: str
) -> None:
    deadline = time.monotonic() + within
    said = explain('who?', FACTS, [], deadline, own(behaviour, tmp_path))
    # What is kept to on a quiet machine is in docs/results/language_model.md.
    assert time.monotonic() < deadline + PATIENCE / 2
    assert isinstance(said, ModelRefusal)
    assert reason in said.reason
    assert list(temporary.iterdir()) == []


def test_a_model_that_stays_is_loaded_once_and_anew_after_a_failure(
    tmp_path: Path, temporary: Path
) -> None:
    server = own('answers', tmp_path).server
    phases: list[Phase] = []
    with server:
        model = OwnModel(server, stays=True)

        def ask() -> ModelAnswer | ModelRefusal:
            return explain('who?', FACTS, [], time.monotonic() + PATIENCE, model, phases.append)

        assert isinstance(ask(), ModelAnswer)
        assert isinstance(ask(), ModelAnswer)
        assert phases.count(Phase.LOADING) == 1
        os.kill(server.pid, signal.SIGKILL)
        assert server.problem(time.monotonic() + PATIENCE)
        assert isinstance(ask(), ModelAnswer)
        assert phases.count(Phase.LOADING) == 2
        assert isinstance(explain('', FACTS, [], time.monotonic(), model), ModelRefusal)
    assert list(temporary.iterdir()) == []


def test_no_word_of_a_question_is_a_command_or_a_path(tmp_path: Path, temporary: Path) -> None:
    witness = tmp_path / 'witness'
    question = f"'; touch {witness}; $(touch {witness}) `touch {witness}` | ../../../etc/passwd"
    said = explain(question, FACTS, [], time.monotonic() + PATIENCE, own('answers', tmp_path))
    assert isinstance(said, ModelAnswer)
    assert not witness.exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ['own.gguf']
    assert list(temporary.iterdir()) == []


def test_a_server_of_somebody_else_is_asked_and_left_alone(tmp_path: Path) -> None:
    nobody = RunningModel(Endpoint(socket=str(tmp_path / 'nobody.sock')))
    phases: list[Phase] = []
    said = explain('who?', FACTS, [], time.monotonic() + PATIENCE, nobody, phases.append)
    assert isinstance(said, ModelRefusal)
    assert 'cannot be asked' in said.reason
    assert phases == [Phase.ENCODING]


def test_an_empty_question_starts_nothing(tmp_path: Path) -> None:
    phases: list[Phase] = []
    said = explain('', FACTS, [], time.monotonic() + 1.0, own('answers', tmp_path), phases.append)
    assert isinstance(said, ModelRefusal)
    assert phases == []
