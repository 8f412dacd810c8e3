"""Options that several commands share, and the panels of help they stand in."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any

import typer

# Panels of options in help; what a newcomer needs stands above them, in the panel "Options".
RECORDING = 'Recording'
LIVE = 'Live graph'
DRIVERS = 'Drivers of your own'
TIMES = 'Service times'
SETS = 'Sets to judge on'
WORK = 'Work'


def option(name: str, metavar: str, words: str, panel: str = '', **rest: Any) -> Any:
    """Return an option with a value; an Enum's values need no metavar ('')."""
    if {'min', 'max'} & rest.keys():
        rest.setdefault('callback', _within_bounds)
    # The dots are where typer before 0.9 wants a default.
    return typer.Option(
        ..., name, metavar=metavar or None, help=words, rich_help_panel=panel or None, **rest
    )


def _within_bounds(value: Any) -> Any:
    """Refuse nan, which older versions of click hold to be within all bounds."""
    if isinstance(value, float) and math.isnan(value):
        raise typer.BadParameter('nan is no number')
    return value


def flag(name: str, words: str, panel: str = '', **rest: Any) -> Any:
    """Return an option without a value; typer's help would show one, <bool>."""
    return typer.Option(..., name, metavar='', help=words, rich_help_panel=panel or None, **rest)


def argument(metavar: str, words: str, **rest: Any) -> Any:
    """Return an argument, which has no name but a place."""
    return typer.Argument(..., metavar=metavar, help=words, **rest)


def existing_file(name: str, words: str, panel: str = '') -> Any:
    """Return an option that names a file to read."""
    return option(name, 'FILE', words, panel, exists=True, dir_okay=False)


def existing_set(name: str, words: str, panel: str = SETS) -> Any:
    """Return an option that names a set of flights."""
    return option(name, 'SET', words, panel, exists=True, file_okay=False)


BagArgument = Annotated[
    Path,
    argument('BAG', 'rosbag2 folder, or a single .mcap or .db3 file', exists=True),
]
SetArgument = Annotated[
    Path,
    argument('SET', 'set: a folder with a folder per flight', exists=True, file_okay=False),
]
BundleArgument = Annotated[str, argument('BUNDLE', 'bundle folder, or the name of a bundle')]
DetectorArgument = Annotated[
    str, argument('DETECTOR', 'bundle folder, its name, or a weight file')
]
NetworkOption = Annotated[
    bool,
    flag(
        '--network',
        'let other machines take part, such as a laptop with RViz; without it nothing is '
        'open beyond this machine (your own FASTDDS_DEFAULT_PROFILES_FILE takes '
        'precedence)',
        LIVE,
    ),
]
NoPicturesOption = Annotated[
    bool,
    flag(
        '--no-pictures',
        'a report without camera pictures; those of a real recording may show people who '
        'can be recognised',
    ),
]
JobsOption = Annotated[
    int, option('--jobs', 'N', 'flights at once; 0: one per processor', WORK, min=0)
]
