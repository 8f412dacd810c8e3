"""What language models of a user take to load and to answer, and how much memory."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from itertools import product
from pathlib import Path

import cv2
import numpy as np

from mmedge_lab.judging import EvaluationError
from mmedge_lab.judging.bench import (
    Bench,
    BenchRequest,
    Figure,
    Row,
    Subject,
    Sums,
    UnmeasuredError,
    listed,
)
from mmedge_ros.questions.model_client import ModelError, ask_endpoint
from mmedge_ros.questions.model_prompt import PromptFacts, PromptPicture, messages_for
from mmedge_ros.questions.model_server import ModelFiles, ModelServer

# A load or an answer that takes longer (s) is given up.
_PATIENCE = 300.0
_QUESTION = 'What is in the pictures, and what was measured of it? Describe all in detail.'
_FACTS = PromptFacts(
    'Two people.',
    measured=tuple(
        f'track {number}, person: from 0.0 to 10.0 s; at 10.0 s at x {number}.0 m, y 4.0 m '
        '(+- 0.4 m), 1.2 m/s over ground'
        for number in (3, 7)
    ),
)
_SIDE = 128
_MOST_THREADS = 256
_FIGURES = {
    'files': Figure('files MB', 'files', digits=1),
    'load': Figure('load ms', 'load', digits=0, quantile=0.5),
    'first_token': Figure('first token ms', 'first_token', digits=0, quantile=0.5),
    'tokens': Figure('tokens/s', 'tokens', digits=1, quantile=0.5),
    'memory': Figure('memory MB', 'memory', digits=0, quantile=0.5),
}


def bench(
    request: BenchRequest,
    *,
    mmproj: str = '',
    threads: str = '1',
    rounds: int = 3,
    tokens: int = 64,
) -> Bench:
    """Measure what language models of your own take, each with every projector and threads.

    :param mmproj: projectors by commas, with which a model sees
    :param threads: numbers of threads by commas
    :param rounds: loads of each, with one answer
    :param tokens: longest answer
    """
    request.input(0, 'a language model, MODEL.gguf,')
    projectors: list[Path | None] = [Path(name) for name in mmproj.split(',') if name]
    counts = listed('threads', threads, 1, _MOST_THREADS)
    if not all(map(float.is_integer, counts)):
        raise EvaluationError(f'threads={threads!r} are no whole numbers')
    rows = [
        Row(
            f'{model.name}{f" with {eye.name}" if eye else ""}, {number:g} threads',
            partial(measure, ModelFiles(model, eye), int(number), tokens),
        )
        for model, eye, number in product(request.inputs, projectors or [None], counts)
    ]
    return Bench(
        'What language models take to load and to answer',
        tuple(rows),
        _FIGURES,
        request.repetitions(rounds),
        about={'longest answer': f'{tokens} tokens'},
    )


def measure(
    files: ModelFiles,
    threads: int,
    tokens: int,
    _: Subject,
    server_of: Callable[[ModelFiles, int], ModelServer] = ModelServer,
) -> Sums:
    """Load, ask with a picture if the model sees, and release.

    :raises UnmeasuredError: if one of them fails
    """
    try:
        return _measured(server_of(files, threads), tokens, files)
    except ModelError as err:
        raise UnmeasuredError(str(err)) from err


def _measured(server: ModelServer, tokens: int, files: ModelFiles) -> Sums:
    pictures = [PromptPicture('the whole scene', _noise())] if files.projector else []
    messages = messages_for(_QUESTION, _FACTS, pictures)
    with server:
        begun = time.monotonic()
        endpoint = server.start(begun + _PATIENCE)
        loaded = time.monotonic()
        said = ask_endpoint(
            endpoint, messages, loaded + _PATIENCE, bound=False, most_tokens=tokens
        )
        memory = server.memory()
    decoding = max(said.seconds - said.first_token, 1e-9)
    return {
        'files': sum(p.stat().st_size for p in (files.model, files.projector) if p) / 1e6,
        'load': [1e3 * (loaded - begun)],
        'first_token': [1e3 * said.first_token],
        'tokens': [max(said.tokens - 1, 0) / decoding],
        'memory': [memory / 1e6],
    }


def _noise() -> bytes:
    """Return a picture of the size of a key frame's thumbnail."""
    picture = np.random.default_rng(0).integers(0, 256, (_SIDE * 3 // 4, _SIDE, 3), np.uint8)
    return bytes(cv2.imencode('.jpg', picture)[1])
