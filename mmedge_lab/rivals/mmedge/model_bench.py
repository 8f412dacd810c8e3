"""What language models of a user take to load and to answer, and how much memory."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any

import cv2
import numpy as np

from mmedge_ros.questions.model_client import ModelError, ask_endpoint
from mmedge_ros.questions.model_prompt import Facts, Picture, messages_for
from mmedge_ros.questions.model_server import ModelFiles, ModelServer

# A load or an answer that takes longer (s) is given up.
_PATIENCE = 300.0
_QUESTION = 'What is in the pictures, and what was measured of it? Describe all in detail.'
_FACTS = Facts(
    'Two people.',
    measured=tuple(
        f'track {number}, person: from 0.0 to 10.0 s; at 10.0 s at x {number}.0 m, y 4.0 m '
        '(+- 0.4 m), 1.2 m/s over ground'
        for number in (3, 7)
    ),
)
_SIDE = 128


@dataclass(frozen=True)
class ModelBench:
    """What is measured: every model with every projector and number of threads.

    ``rounds`` of load, one answer of up to ``tokens``, and release.
    """

    models: Sequence[Path]
    projectors: Sequence[Path] = ()
    threads: Sequence[int] = (1,)
    rounds: int = 3
    tokens: int = 64


def run_model_bench(
    bench: ModelBench,
    on_share: Callable[[float, str], None],
    server_of: Callable[[ModelFiles, int], ModelServer] = ModelServer,
) -> dict[str, Any]:
    """Measure all of it; what fails is a problem, and the others are measured.

    :param on_share: called with the share that is done, and what is measured next
    :raises ModelError: if nothing can be measured
    """
    rows: list[dict[str, Any]] = []
    problems: list[str] = []
    ways = list(product(bench.models, bench.projectors or (None,), bench.threads))
    for number, (model, projector, threads) in enumerate(ways):
        files = ModelFiles(model, projector)
        on_share(number / len(ways), f'{model.name} with {threads} threads')
        try:
            runs = [
                _measure(server_of(files, threads), bench.tokens, projector is not None)
                for _ in range(bench.rounds)
            ]
        except ModelError as err:
            problems.append(str(err))
            continue
        rows.append(
            {
                'model': model.name,
                'projector': projector.name if projector is not None else None,
                'threads': threads,
                'file_mb': round(sum(p.stat().st_size for p in (model, projector) if p) / 1e6, 1),
                **{key: round(median(run[key] for run in runs), 2) for key in runs[0]},
            }
        )
    if not rows:
        raise ModelError(problems[0])
    return {'rounds': bench.rounds, 'tokens': bench.tokens, 'rows': rows, 'problems': problems}


def _measure(server: ModelServer, tokens: int, sees: bool) -> dict[str, float]:
    """Load, ask with a picture if the model sees, and release.

    :raises ModelError: if one of them fails
    """
    pictures = [Picture('the whole scene', _noise())] if sees else []
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
        'load_ms': 1e3 * (loaded - begun),
        'first_token_ms': 1e3 * said.first_token,
        'tokens_per_s': max(said.tokens - 1, 0) / decoding,
        'memory_mb': memory / 1e6,
    }


def _noise() -> bytes:
    """Return a picture of the size of a key frame's thumbnail."""
    picture = np.random.default_rng(0).integers(0, 256, (_SIDE * 3 // 4, _SIDE, 3), np.uint8)
    return bytes(cv2.imencode('.jpg', picture)[1])
