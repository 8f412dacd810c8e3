"""What `mmedge lab bench radar-stream` does: damage a radar's bytes and look what is found."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Annotated

import typer

from mmedge_ros.commands.display import say
from mmedge_ros.commands.errors import plain_errors
from mmedge_ros.commands.options import existing_file, option


def radar_stream(
    count: Annotated[int, option('--count', 'N', 'mutated streams', min=1)] = 100_000,
    seed: Annotated[int, option('--seed', 'N', 'the same seed, the same streams', min=0)] = 0,
    captures: Annotated[
        list[Path] | None,
        existing_file('--capture', 'recording whose packets are damaged, too; repeatable'),
    ] = None,
) -> None:
    """Feed the parser with damaged streams and check that it finds what came through whole."""
    with plain_errors():
        from mmedge_lab.rivals.mmedge.tlv_mutation import run_mutations

        began = time.monotonic()
        outcome = run_mutations(count, seed, captures or ())
        say(f'{count} streams in {time.monotonic() - began:.1f} s')
        for failure in outcome.failures[:10]:
            say(failure)
        typer.echo(json.dumps(outcome.described(), indent=2))
        if outcome.failures:
            raise typer.Exit(1)
