"""`mmedge talk`: a spoken question to the running graph, and its answer as text and as speech."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Annotated

import typer

from mmedge_ros.commands.display import StatusLine
from mmedge_ros.commands.errors import plain_errors
from mmedge_ros.commands.options import NetworkOption, argument, option
from mmedge_ros.commands.tables import print_parts

# Nobody waits longer, s.
_LONGEST = 600.0


def talk(
    question: Annotated[
        Path, argument('WAV', 'a spoken question, 25 MB at most', exists=True, dir_okay=False)
    ],
    speech: Annotated[
        str,
        option(
            '--speech', 'ADDRESS', 'speech server on this machine such as http://127.0.0.1:8000'
        ),
    ],
    out: Annotated[
        Path | None,
        option('--out', 'FILE', 'have the answer spoken, as WAV', dir_okay=False),
    ] = None,
    within: Annotated[
        float, option('--within', 'S', 'everything is done in this time, or given up')
    ] = 30.0,
    network: NetworkOption = False,
) -> None:
    """Ask the running graph a spoken question, through a speech server of your own.

    It is for a computer on the ground, with --network to the drone: rotors drown speech.
    """
    if not 0.0 < within <= _LONGEST:
        raise typer.BadParameter(f'name 0 to {_LONGEST:.0f} s', param_hint='--within')
    if out is not None and not out.parent.is_dir():
        raise typer.BadParameter(f'{out.parent} is no folder', param_hint='--out')
    deadline = time.monotonic() + within
    with plain_errors():
        from mmedge_ros.questions.model_client import read_endpoint
        from mmedge_ros.questions.speech_client import hear, read_wave, speak
        from mmedge_ros.ros.graph.middleware_profile import set_profile
        from mmedge_ros.ros.sessions.talk_session import ask_graph

        endpoint = read_endpoint(speech)
        spoken = read_wave(question)
        with StatusLine('listening') as line:
            asked = hear(endpoint, spoken, deadline)
            print_parts(asked)
            line.advance(None, 'asking')
            set_profile(network)
            answer = ask_graph(asked, deadline)
        print_parts('\n'.join(answer))
        if out is not None:
            with StatusLine('speaking'):
                wave = speak(endpoint, ' '.join(answer), deadline)
            _write_whole(out, wave)
            typer.echo(out)
    if all(said.startswith(('not answered: ', 'the model says nothing: ')) for said in answer):
        raise typer.Exit(1)


def _write_whole(path: Path, content: bytes) -> None:
    """Write a file that is there whole, or not at all."""
    part = path.with_name(f'.{path.name}.{os.getpid()}.part')
    try:
        part.write_bytes(content)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
