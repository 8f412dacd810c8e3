"""What bricks of a bundle and language models cost, and what loading on demand costs and saves."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from mmedge_lab.judging.bench import (
    Bench,
    BenchRequest,
    Figure,
    Row,
    Subject,
    Sums,
    UnmeasuredError,
)
from mmedge_lab.rivals.nanomind import brick_cascade
from mmedge_ros.adaptation.brick_measurement import bricks_of, figures_of_process, measure_bricks
from mmedge_ros.core.data_types import CAMERA, RADAR
from mmedge_ros.encoding.bricks import CPU, FUSION, RECOGNISER, brick_name
from mmedge_ros.encoding.bundle.default_model import default_detector
from mmedge_ros.encoding.bundle.model_bundle import is_bundle, load_bundle
from mmedge_ros.encoding.onnx_session import available_devices
from mmedge_ros.questions.model_client import ModelError, ask_endpoint
from mmedge_ros.questions.model_prompt import PromptFacts, messages_for
from mmedge_ros.questions.model_server import ModelFiles, ModelServer

_PATIENCE = 300.0
_QUESTION = 'What was measured? Describe all in detail.'
_FACTS = PromptFacts(
    'Two people.',
    measured=tuple(
        f'track {number}, person: from 0.0 to 10.0 s; at 10.0 s at x {number}.0 m, y 4.0 m '
        '(+- 0.4 m), 1.2 m/s over ground'
        for number in (3, 7)
    ),
)
# Of a language model: the longest answer, and its threads.
_TOKENS, _THREADS = 64, 1
_MODELS = 'language models'
_FIGURES = {
    'load': Figure('load ms', 'load_ms', digits=0),
    'run': Figure('run ms', 'run_ms', digits=2),
    'memory': Figure('memory MB', 'memory_mb', digits=0),
    'left': Figure('left MB', 'left_mb', digits=0),
    'peak': Figure('peak MB', 'peak_mb', digits=0, relative=True),
    'between': Figure('between events MB', 'between_mb', digits=0),
    'processor': Figure('processor ms an event', 'processor_ms', digits=0, relative=True),
    'wall': Figure('time ms', 'wall_ms', digits=0),
    'first_token': Figure('first token ms', 'first_token', digits=0),
    'tokens': Figure('tokens/s', 'tokens', digits=1),
}


def bench(request: BenchRequest, *, events: int = 5, rounds: int = 1) -> Bench:
    """Measure what networks take to load, run and release, each in a process of its own.

    Inputs are a bundle, and language models MODEL.gguf.

    :param events: that pass through all bricks, of which each runs eight times
    :param rounds: repetitions of everything
    """
    models = [path for path in request.inputs if path.suffix == '.gguf']
    bundles = [str(path) for path in request.inputs if path not in models]
    named = request.detector or (bundles[0] if bundles else '')
    model = default_detector(named, simulated=True)
    bricks = [
        Row(f'{name} on {device}', partial(_cost, model, name, device), group='bricks')
        for name in bricks_of(model)
        for device in available_devices()
        if device == CPU or name not in (FUSION, RECOGNISER)
    ]
    ways = [
        Row(way, partial(_events, model, way, events), group='events through all bricks')
        for way in brick_cascade.WAYS
    ]
    return Bench(
        'What networks take to load, run and release',
        (*bricks, *ways, *(Row(p.name, partial(answer_cost, p), group=_MODELS) for p in models)),
        _FIGURES,
        request.repetitions(rounds),
        references=(brick_cascade.STAYING,),
        about={'bundle': model.name, 'events': events},
    )


def _cost(model: Path, name: str, device: str, _: Subject) -> Sums:
    (found,) = measure_bricks(model, [name], [device])
    if isinstance(found, str):
        raise UnmeasuredError(found)
    return {
        'load_ms': 1e3 * found.load_time,
        'run_ms': 1e3 * found.run_time,
        'memory_mb': found.memory / 1e6,
        'left_mb': found.left / 1e6,
    }


def bricks_of_a_decision(model: Path) -> list[str]:
    """Name the bricks that a decision needs: the default levels, and all that is no level."""
    there = bricks_of(model)
    if not is_bundle(model):
        return there
    bundle = load_bundle(model)
    wanted = {
        brick_name(CAMERA, bundle.default),
        brick_name(RADAR, bundle.radar.default),
        *(FUSION, RECOGNISER),
    }
    return [name for name in there if name in wanted]


def _events(model: Path, way: str, events: int, _: Subject) -> Sums:
    arguments = [str(model), way, str(events), *bricks_of_a_decision(model)]
    return figures_of_process(brick_cascade.__name__, arguments, _PATIENCE)


def answer_cost(
    model: Path,
    _: Subject,
    server_of: Callable[[ModelFiles, int], ModelServer] = ModelServer,
) -> Sums:
    """Load a language model, ask it, and release it.

    :raises UnmeasuredError: if one of them fails
    """
    messages = messages_for(_QUESTION, _FACTS, [])
    try:
        server = server_of(ModelFiles(model), _THREADS)
        with server:
            begun = time.monotonic()
            endpoint = server.start(begun + _PATIENCE)
            loaded = time.monotonic()
            said = ask_endpoint(
                endpoint, messages, loaded + _PATIENCE, bound=False, most_tokens=_TOKENS
            )
            memory = server.memory()
    except ModelError as err:
        raise UnmeasuredError(str(err)) from err
    decoding = max(said.seconds - said.first_token, 1e-9)
    return {
        'load_ms': 1e3 * (loaded - begun),
        'first_token': 1e3 * said.first_token,
        'tokens': max(said.tokens - 1, 0) / decoding,
        'memory_mb': memory / 1e6,
    }
