"""Lets a language model add to an answer from tracks, by a deadline or not at all."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, Protocol

from mmedge_ros.questions.model_client import (
    Endpoint,
    ModelError,
    StreamedAnswer,
    ask_endpoint,
    is_endpoint,
    never,
    read_endpoint,
)
from mmedge_ros.questions.model_prompt import PromptFacts, PromptPicture, messages_for
from mmedge_ros.questions.model_server import ModelFiles, ModelServer

# Of the time until the deadline, what killing a server takes (s).
_RELEASING = 0.1
# How long after a connection broke it is known that its server ended (s).
_HEARSAY = 0.05


class Phase(Enum):
    """What a question waits for."""

    WAITING = 'waiting'
    LOADING = 'loading'
    ENCODING = 'encoding'
    DECODING = 'decoding'


OnPhase = Callable[[Phase], None]
IsCancelled = Callable[[], bool]


@dataclass(frozen=True)
class ModelAnswer:
    """What a model answered; it may be wrong, unlike what was measured.

    ``tracks`` are those that the model names, of those it was told of. ``first_token`` and
    ``seconds`` (s) count from the request, without loading.
    """

    text: str
    tracks: tuple[int, ...]
    first_token: float
    seconds: float


@dataclass(frozen=True)
class ModelRefusal:
    """No answer of a model: ``reason`` says in a sentence what happened."""

    reason: str


@dataclass(frozen=True)
class ReadyModel:
    """A model that can be asked, up to a ``deadline`` (s, monotonic).

    ``server`` is the one that was started for it; None: it runs anyway.
    """

    endpoint: Endpoint
    deadline: float
    server: ModelServer | None = None

    def ask(
        self, messages: Sequence[Mapping[str, Any]], until: float = math.inf, **form: Any
    ) -> StreamedAnswer:
        """Ask it.

        :param until: instant (s, monotonic), where that is before its deadline
        :param form: of the answer, see `ask_endpoint`
        :raises ModelError: which says what happened to the server, where that is known
        """
        deadline = min(self.deadline, until)
        try:
            return ask_endpoint(self.endpoint, messages, deadline, **form)
        except ModelError as err:
            # What is known of the server says more than a broken connection.
            known_by = min(time.monotonic() + _HEARSAY, deadline)
            ended = self.server.problem(known_by) if self.server is not None else ''
            raise ModelError(ended or str(err)) from err


class LanguageModel(Protocol):
    """A model that can be made ready for one question."""

    def serving(
        self, deadline: float, on_phase: OnPhase, is_cancelled: IsCancelled = never
    ) -> AbstractContextManager[ReadyModel]:
        """Make it ready by a deadline (s, monotonic) for one question, and release it after.

        :raises ModelError: if that is not possible
        """


@dataclass(frozen=True)
class RunningModel:
    """A model on a server that runs anyway."""

    endpoint: Endpoint

    @contextmanager
    def serving(
        self, deadline: float, on_phase: OnPhase, is_cancelled: IsCancelled = never
    ) -> Iterator[ReadyModel]:
        del is_cancelled  # it is asked while the answer comes
        on_phase(Phase.ENCODING)
        yield ReadyModel(self.endpoint, deadline)


@dataclass(frozen=True)
class OwnModel:
    """A model of the user's files, loaded for a question and released after it.

    One that ``stays`` is released only after a failure, or when its server is stopped.
    """

    server: ModelServer
    stays: bool = False

    @contextmanager
    def serving(
        self, deadline: float, on_phase: OnPhase, is_cancelled: IsCancelled = never
    ) -> Iterator[ReadyModel]:
        until = deadline - _RELEASING
        is_kept = False
        try:
            endpoint = self.server.running()
            if endpoint is None:
                on_phase(Phase.LOADING)
                endpoint = self.server.start(until, is_cancelled)
            on_phase(Phase.ENCODING)
            yield ReadyModel(endpoint, until, self.server)
            is_kept = self.stays
        finally:
            if not is_kept:
                self.server.stop(deadline)


def language_model(
    name: str, projector: Path | None = None, stays: bool = False
) -> RunningModel | OwnModel:
    """Return a model: a running server, by its address, or a file of the user.

    :raises ModelError: for an address that is none of this machine
    """
    if is_endpoint(name):
        return RunningModel(read_endpoint(name))
    return OwnModel(ModelServer(ModelFiles(Path(name), projector)), stays)


def explain(
    question: str,
    facts: PromptFacts,
    pictures: Sequence[PromptPicture],
    deadline: float,
    model: LanguageModel,
    on_phase: OnPhase = lambda _: None,
    is_cancelled: IsCancelled = never,
) -> ModelAnswer | ModelRefusal:
    """Ask a model; by the deadline there is an answer or the reason why there is none.

    :param deadline: instant (s) of `time.monotonic`
    :param on_phase: called with each phase the question enters
    :param is_cancelled: called now and then; once it returns True the model is released
    """
    try:
        messages = messages_for(question, facts, pictures)
        with model.serving(deadline, on_phase, is_cancelled) as ready:
            said = ready.ask(
                messages,
                on_first_token=lambda: on_phase(Phase.DECODING),
                is_cancelled=is_cancelled,
            )
    except ModelError as err:
        return ModelRefusal(str(err))
    named = tuple(number for number in said.tracks if number in facts.tracks)
    return ModelAnswer(said.text, named, said.first_token, said.seconds)
