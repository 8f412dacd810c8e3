"""Lets a language model say more to a question than tracks do, by a deadline or not at all."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from enum import Enum
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from mmedge_ros.questions.model_client import (
    Endpoint,
    ModelError,
    StreamedAnswer,
    ask_endpoint,
    never,
    read_endpoint,
)
from mmedge_ros.questions.model_prompt import Facts, Picture, messages_for
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

    ``structured`` is the answer without a model, which comes first. ``tracks`` are those that
    the model names, of those it was told of. ``first_token`` and ``seconds`` (s) count from the
    request, without loading.
    """

    structured: str
    text: str
    tracks: tuple[int, ...]
    first_token: float
    seconds: float


@dataclass(frozen=True)
class ModelRefusal:
    """No answer of a model: ``reason`` says in a sentence what happened; ``structured`` stays."""

    structured: str
    reason: str


class LanguageModel(Protocol):
    """Something that answers while it is asked to serve."""

    def serving(
        self, deadline: float, on_phase: OnPhase, is_cancelled: IsCancelled = never
    ) -> AbstractContextManager[Asking]:
        """Make it ready by a deadline (s, monotonic) for one question, and release it after.

        :raises ModelError: if that is not possible
        """


class Asking(Protocol):
    """A model that is ready."""

    @property
    def endpoint(self) -> Endpoint: ...

    @property
    def deadline(self) -> float:
        """By when (s, monotonic) an answer must have come."""

    def problem(self) -> str:
        """Say within 50 ms what happened to its server, if that is known; '' for nothing."""


@dataclass(frozen=True)
class _Ready:
    endpoint: Endpoint
    deadline: float
    server: ModelServer | None = None

    def problem(self) -> str:
        until = min(time.monotonic() + _HEARSAY, self.deadline)
        return self.server.problem(until) if self.server is not None else ''


@dataclass(frozen=True)
class RunningModel:
    """A model on a server that runs anyway."""

    endpoint: Endpoint

    @contextmanager
    def serving(
        self, deadline: float, on_phase: OnPhase, is_cancelled: IsCancelled = never
    ) -> Iterator[Asking]:
        del is_cancelled  # it is asked while the answer comes
        on_phase(Phase.ENCODING)
        yield _Ready(self.endpoint, deadline)


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
    ) -> Iterator[Asking]:
        until = deadline - _RELEASING
        is_kept = False
        try:
            endpoint = self.server.running()
            if endpoint is None:
                on_phase(Phase.LOADING)
                endpoint = self.server.start(until, is_cancelled)
            on_phase(Phase.ENCODING)
            begun = time.monotonic()
            yield _Ready(endpoint, until, self.server)
            self.server.ran(time.monotonic() - begun)
            is_kept = self.stays
        finally:
            if not is_kept:
                self.server.stop(deadline)


def language_model(
    name: str, projector: Path | None = None, stays: bool = False
) -> RunningModel | OwnModel:
    """Return what answers: a server that runs, by its address, or a file of the user's own.

    :raises ModelError: for an address that is none of this machine
    """
    if '://' in name or name.startswith('unix:'):
        return RunningModel(read_endpoint(name))
    return OwnModel(ModelServer(ModelFiles(Path(name), projector)), stays)


def explain(
    question: str,
    facts: Facts,
    pictures: Sequence[Picture],
    deadline: float,
    model: LanguageModel,
    on_phase: OnPhase = lambda _: None,
    is_cancelled: IsCancelled = never,
) -> ModelAnswer | ModelRefusal:
    """Ask a model; by the deadline there is an answer or the reason why there is none.

    :param deadline: instant (s) of `time.monotonic`
    :param on_phase: called as the question comes forward
    :param is_cancelled: asked now and then; where it says so the model is released at once
    """
    try:
        messages = messages_for(question, facts, pictures)
        with model.serving(deadline, on_phase, is_cancelled) as ready:
            decoding = partial(on_phase, Phase.DECODING)
            said = ask_ready(ready, messages, decoding, is_cancelled=is_cancelled)
    except ModelError as err:
        return ModelRefusal(facts.answer, str(err))
    named = tuple(number for number in said.tracks if number in facts.tracks)
    return ModelAnswer(facts.answer, said.text, named, said.first_token, said.seconds)


def ask_ready(
    ready: Asking,
    messages: Sequence[Mapping[str, Any]],
    on_first_token: Callable[[], None] = lambda: None,
    until: float = math.inf,
    **form: Any,
) -> StreamedAnswer:
    """Ask a model that is ready.

    :param until: instant (s) of `time.monotonic`, where that is before its deadline
    :param form: of the answer, see `ask_endpoint`
    :raises ModelError: which says what happened to the server, where that is known
    """
    try:
        deadline = min(ready.deadline, until)
        return ask_endpoint(ready.endpoint, messages, deadline, on_first_token, **form)
    except ModelError as err:
        # What is known of the server says more than a broken connection.
        raise ModelError(ready.problem() or str(err)) from err
