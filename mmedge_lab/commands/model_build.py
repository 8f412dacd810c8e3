"""What `mmedge lab model build` does: a bundle of networks that a user brings."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mmedge_ros.commands.display import StatusLine, say
from mmedge_ros.commands.errors import plain_errors
from mmedge_ros.commands.options import flag, option
from mmedge_ros.commands.tables import add_row, new_table, print_parts

if TYPE_CHECKING:
    from mmedge_lab.training.user_levels import Trial


def build(
    level: Annotated[
        list[str],
        option(
            '--level',
            'NAME=FILE',
            'a level and its network: YOLOX or ultralytics, .onnx or .pt; once for each. A .pt '
            'file runs the code in it, which takes --trust-weights',
        ),
    ],
    out: Annotated[Path, option('--out', 'BUNDLE', 'folder of the bundle', file_okay=False)],
    size: Annotated[
        str, option('--size', 'WIDTHxHEIGHT', 'input of .pt weights, multiples of 32')
    ] = '416x320',
    people: Annotated[
        str, option('--people', 'CLASS', 'what the networks call people \\[person or the like]')
    ] = '',
    licence: Annotated[
        str, option('--licence', 'TEXT', 'licence of the networks \\[unknown]')
    ] = '',
    trust_weights: Annotated[
        bool, flag('--trust-weights', 'load .pt files, and run whatever code is in them')
    ] = False,
) -> None:
    """Make a bundle of your own networks: each is tried, and timed on this machine."""
    numbers = re.fullmatch(r'(\d{2,4})x(\d{2,4})', size)
    if numbers is None:
        raise typer.BadParameter(f'{size!r} does not read WIDTHxHEIGHT', param_hint='--size')
    with plain_errors():
        from mmedge_lab.training.user_levels import (
            UNKNOWN,
            UserLevels,
            build_bundle,
            named_levels,
            trial_pictures,
        )

        weights = named_levels(level)
        for path in weights.values():
            if path.suffix.lower() == '.pt':
                say(f'note: {path} is opened by ultralytics (AGPL-3.0)')
        request = UserLevels(
            weights,
            out,
            (int(numbers[1]), int(numbers[2])),
            people,
            licence.strip() or UNKNOWN,
            trust_weights,
        )
        with StatusLine(f'building {out.name}') as line:
            line.advance(0.0, 'simulating pictures')
            trials = build_bundle(request, trial_pictures(), line.advance)
        _print_trials(trials)
        if not licence.strip():
            say('note: the licence of the networks is entered as unknown; --licence TEXT names it')
        for name, trial in trials.items():
            if not trial.recall:
                say(
                    f'note: {name} found none of {trial.people} people in simulated pictures; '
                    'look whether it finds those of your camera'
                )
        say(
            'note: accuracies are assumed: every level is better than the faster ones. '
            f'mmedge lab evaluate-bundle {out} SET --enter measures them'
        )
    typer.echo(out)


def _print_trials(trials: Mapping[str, Trial]) -> None:
    table = new_table('', 'level', 'input', 'median ms', 'p95 ms', 'people found')
    for level, trial in trials.items():
        width, height = trial.input_size
        add_row(
            table,
            level,
            f'{width} x {height}',
            f'{1e3 * trial.median:.1f}',
            f'{1e3 * trial.p95:.1f}',
            f'{100 * trial.recall:.0f} % of {trial.people}',
        )
    print_parts(table)
