"""What `mmedge lab model tap` does: a semantic memory for a classifier that a user brings."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from mmedge_ros.commands.display import StatusLine, say
from mmedge_ros.commands.errors import plain_errors
from mmedge_ros.commands.options import WORK, argument, existing_file, flag, option

if TYPE_CHECKING:
    from mmedge_lab.training.tap_figures import TapFigures

_INPUT = 'Input of the classifier'
_MEAN, _DEVIATION = '0.485,0.456,0.406', '0.229,0.224,0.225'


def tap(
    model: Annotated[
        Path,
        argument('MODEL', 'image classifier, .onnx', exists=True, dir_okay=False),
    ],
    out: Annotated[Path, option('--out', 'BUNDLE', 'folder of the bundle', file_okay=False)],
    classes: Annotated[
        Path,
        option(
            '--classes',
            'FOLDER',
            'pictures (.jpg, .png) in a folder for each class; 50 of each or more',
            exists=True,
            file_okay=False,
        ),
    ],
    labels: Annotated[
        Path | None,
        existing_file(
            '--labels', 'names of the classes, one a line, as the outputs \\[folders, sorted]'
        ),
    ] = None,
    taps: Annotated[int, option('--taps', 'N', 'places where it can be left', min=1, max=16)] = 4,
    error: Annotated[
        float,
        option('--error', 'SHARE', 'of early answers that may be wrong', min=0.0, max=0.5),
    ] = 0.02,
    size: Annotated[
        str, option('--size', 'WIDTHxHEIGHT', 'where the model takes any \\[its own]', _INPUT)
    ] = '',
    mean: Annotated[
        str, option('--mean', 'R,G,B', 'subtracted from values of 0..1', _INPUT)
    ] = _MEAN,
    deviation: Annotated[
        str, option('--deviation', 'R,G,B', 'that they are divided by then', _INPUT)
    ] = _DEVIATION,
    bgr: Annotated[
        bool, flag('--bgr', 'it takes blue first; --mean and --deviation too, then', _INPUT)
    ] = False,
    square: Annotated[
        bool, flag('--square', 'keep proportions: a square, not stretched', _INPUT)
    ] = False,
    most: Annotated[
        int, option('--pictures', 'N', 'of each class at most; 0: all', WORK, min=0)
    ] = 200,
) -> None:
    """Give a trained classifier a semantic memory, without training: often met classes are faster.

    The model is divided into stages, and the pictures say what each class looks like after each.
    """
    with plain_errors():
        pixels = _size(size)
        means, deviations = _triple(mean, '--mean'), _triple(deviation, '--deviation')
        if min(deviations) <= 0.0:
            raise typer.BadParameter(f'{deviation!r} must be above 0', param_hint='--deviation')
        from mmedge_lab.training.tapped_bundle import TapRequest, make_tapped_bundle

        request = TapRequest(
            model, out, classes, labels, taps, pixels, means, deviations, not bgr, square,
            error, most,
        )  # fmt: skip
        with StatusLine(f'tapping {model.name}') as line:
            figures = make_tapped_bundle(request, line.advance)
        Console(highlight=False).print(_table(figures))
        for sentence in _sentences(figures, taps, error):
            say(sentence)
    typer.echo(out)


def _table(figures: TapFigures) -> Table:
    table = Table(box=None, pad_edge=False)
    for title in ('stage', 'work', 'time', 'values of its tap', 'leave there'):
        table.add_column(title, justify='left' if title == 'stage' else 'right')
    for number, stage in enumerate(figures.stages, start=1):
        table.add_row(
            str(number) if stage.width else f'{number}, the last',
            f'{100 * stage.share:.0f} %',
            f'{1e3 * stage.seconds:.2f} ms',
            str(stage.width or ''),
            f'{100 * stage.left:.0f} %' if stage.is_safe or not stage.width else 'closed',
        )
    return table


def _sentences(figures: TapFigures, taps: int, error: float) -> list[str]:
    saved = '' if math.isnan(figures.saved) else f', {100 * figures.saved:.0f} % of time saved'
    sentences = [
        f'{figures.fitted} pictures fitted, {figures.held_out} held out, all classes alike',
        f'right of those held out: {100 * figures.whole_accuracy:.1f} % without the memory, '
        f'{100 * figures.accuracy:.1f} % with it{saved}; the memory has '
        f'{figures.memory_bytes / 1e3:.0f} kB',
    ]
    if (found := len(figures.stages) - 1) < taps:
        sentences.append(f'note: it can be left at {found} places only, not at {taps}')
    if figures.unreadable:
        sentences.append(f'note: {figures.unreadable} pictures cannot be read and were left out')
    if not any(stage.is_safe for stage in figures.stages):
        fewest = math.ceil(1.0 / error) - 2 if error else 0
        few = figures.held_out < fewest or not error
        sentences.append(
            'note: it is never left early; '
            + (
                f'{figures.held_out} held-out pictures cannot prove a share of {error:g} wrong '
                'ones: bring more, or allow more by --error'
                if few
                else 'no stage tells these classes apart safely: allow more by --error, bring '
                'more pictures, or train with a loss at each tap'
            )
        )
    return sentences


def _size(text: str) -> tuple[int, int] | None:
    numbers = re.fullmatch(r'(\d{1,4})x(\d{1,4})', text, re.ASCII)
    if text and numbers is None:
        raise typer.BadParameter(f'{text!r} does not read WIDTHxHEIGHT', param_hint='--size')
    return (int(numbers[1]), int(numbers[2])) if numbers else None


def _triple(text: str, name: str) -> tuple[float, float, float]:
    try:
        first, second, third = (float(part) for part in text.split(','))
    except ValueError:
        first = second = third = math.nan
    if not all(math.isfinite(value) for value in (first, second, third)):
        raise typer.BadParameter(
            f'{text!r} does not read as three numbers, such as {_MEAN}', param_hint=name
        )
    return first, second, third
