"""Answers that need nothing installed: the version, help, and what is wrong with a command line.

Runs with the standard library of any Python from 3.7 on, as a program, before `./mmedge` installs
anything. What commands and options there are is read from a table beside this file, which a test
compares with the command line. Ends with 0 where all is answered, with 2 after a typing error, and
with 3 where there is work to do.
"""

from __future__ import annotations

import difflib
import importlib.metadata
import json
import os
import platform
import shutil
import stat
import sys
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

if __name__ == '__main__':
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from mmedge_ros import __version__, git_revision
from mmedge_ros.commands.old_spellings import respelled

TABLE = Path(__file__).with_name('command_table.json')
# Words that only the script ./mmedge knows.
WORDS_OF_THE_SCRIPT = ('install', 'test')
ANSWERED, WRONG, GO_ON = 0, 2, 3

_EMPTY: dict[str, Any] = {
    'names': [],
    'metavar': '',
    'required': False,
    'repeatable': False,
    'hidden': False,
    'panel': '',
    'default': '',
    'least': None,
    'most': None,
}
_INDENT, _WIDEST_NAMES = 2, 34


def version_line() -> str:
    """Say version, commit (in a checkout), Python and which ROS 2 there is."""
    revision = git_revision()
    commit = f' ({revision})' if revision else ''
    return f'mmedge {__version__}{commit}, Python {platform.python_version()}, {_ros()}'


def _ros() -> str:
    if os.environ.get('ROS_DISTRO'):
        return f'ROS 2 {os.environ["ROS_DISTRO"]}'
    try:
        return f'ROS 2 from PyPI (rclpy {importlib.metadata.version("ros-rclpy")})'
    except importlib.metadata.PackageNotFoundError:
        return 'no ROS 2'


class UsageError(Exception):
    """A command line that cannot be obeyed; says why in a sentence."""


def read_table() -> dict[str, Any]:
    """Read the table of commands: by name, what they take; what is empty is left out there."""
    table: dict[str, Any] = json.loads(TABLE.read_text(encoding='utf-8'))
    for entry in table.values():
        entry['parameters'] = [{**_EMPTY, **parameter} for parameter in entry['parameters']]
    return table


def answer(arguments: Sequence[str]) -> int:
    """Answer what can be answered without any library, and return the exit status."""
    words, _ = respelled(arguments)
    if words[:1] == ['--version']:
        print(version_line())
        return ANSWERED
    if words and words[0] in WORDS_OF_THE_SCRIPT:
        return GO_ON
    table = read_table()
    command, rest = '', words
    try:
        command, rest = _command(table, words)
        end = rest.index('--') if '--' in rest else len(rest)
        if '--help' in rest[:end]:
            print(help_text(table, command, _width()))
            return ANSWERED
        if 'commands' in table[command]:
            print(help_text(table, command, _width()), file=sys.stderr)
            return WRONG
        check(table[command]['parameters'], rest)
    except UsageError as err:
        named = ' '.join(('mmedge', *command.split()))
        print(usage_line(table, command), file=sys.stderr)
        print(f"Try '{named} --help' for help.\n\nmmedge: {err}", file=sys.stderr)
        return WRONG
    return GO_ON


def _command(table: dict[str, Any], words: Sequence[str]) -> tuple[str, list[str]]:
    """Return the name of the command that words begin with ('' without one), and the rest."""
    name, rest = '', list(words)
    while rest and 'commands' in table[name]:
        known = table[name]['commands']
        if rest[0].startswith('-'):
            if rest[0] != '--help':
                near = _nearest(rest[0], ['--help', *([] if name else ['--version'])])
                raise UsageError(f'no such option: {rest[0]}{near}')
            break
        if rest[0] not in known:
            raise UsageError(f'no such command: {rest[0]}{_nearest(rest[0], known)}')
        name = f'{name} {rest.pop(0)}'.strip()
    return name, rest


# ---------------------------------------------------------------- what is wrong


def check(parameters: Sequence[dict[str, Any]], words: Sequence[str]) -> None:
    """Check what is written after a command.

    :raises UsageError: for the first thing that cannot be right
    """
    options = {name: p for p in parameters for name in p['names']}
    places = [p for p in parameters if not p['names']]
    given: list[str] = []
    placed: list[str] = []
    rest = iter(words)
    for word in rest:
        if word == '--':
            placed += rest
        elif word.startswith('-') and word != '-':
            given += _option(options, word, rest)
        else:
            placed.append(word)
    for option in options.values():
        if option['required'] and not any(name in given for name in option['names']):
            raise UsageError(f'missing option: {option["names"][0]} {option["metavar"]}')
    _check_places(places, placed)


def _option(options: dict[str, Any], word: str, rest: Iterator[str]) -> list[str]:
    name, equals, value = word.partition('=')
    option = options.get(name)
    if option is None:
        raise UsageError(f'no such option: {name}{_nearest(name, options)}')
    if option['kind'] == 'flag':
        if equals:
            raise UsageError(f'{name} takes no value')
    else:
        given = value if equals else next(rest, None)
        if given is None:
            raise UsageError(f'{name} needs a value: {name} {option["metavar"]}')
        _check_value(name, option, given)
    return [name]


def _check_places(places: Sequence[dict[str, Any]], words: Sequence[str]) -> None:
    rest = list(words)
    for place in places:
        taken = rest if place['repeatable'] else rest[:1]
        if place['required'] and not taken:
            raise UsageError(f'missing argument: {place["metavar"]}, {place["help"]}')
        for word in taken:
            _check_value(place['metavar'], place, word)
        rest = rest[len(taken) :]
    if rest:
        raise UsageError(f'unexpected argument: {rest[0]}')


def _check_value(name: str, parameter: dict[str, Any], value: str) -> None:
    kind = parameter['kind']
    if kind == 'choice' and value not in parameter['choices']:
        raise UsageError(f'{name}: {value!r} is none of {", ".join(parameter["choices"])}')
    if kind in ('int', 'float'):
        _check_number(name, parameter, value)
    if kind in ('file', 'folder', 'path'):
        _check_path(name, kind, value)


def _check_path(name: str, kind: str, value: str) -> None:
    try:
        is_folder = stat.S_ISDIR(Path(value).stat().st_mode)
    except (OSError, ValueError):
        raise UsageError(f'{name}: there is no {value[:200]!r}') from None
    if kind == 'file' and is_folder:
        raise UsageError(f'{name}: {value!r} is a folder, and a file is needed')
    if kind == 'folder' and not is_folder:
        raise UsageError(f'{name}: {value!r} is a file, and a folder is needed')


def _check_number(name: str, parameter: dict[str, Any], value: str) -> None:
    whole = parameter['kind'] == 'int'
    try:
        number = int(value) if whole else float(value)
    except ValueError:
        what = 'whole number' if whole else 'number'
        raise UsageError(f'{name}: {value!r} is no {what}') from None
    least, most = parameter['least'], parameter['most']
    inside = (least is None or number >= least) and (most is None or number <= most)
    if not inside:
        limits = ' and '.join(
            words
            for limit, words in ((least, f'at least {least}'), (most, f'at most {most}'))
            if limit is not None
        )
        raise UsageError(f'{name}: {value} has to be {limits}')


def _nearest(word: str, known: Sequence[str] | dict[str, Any]) -> str:
    close = difflib.get_close_matches(word, known, n=1)
    return f'; did you mean {close[0]}?' if close else ''


# ---------------------------------------------------------------- help


def usage_line(table: dict[str, Any], command: str) -> str:
    """Return the line that shows how a command is written."""
    entry = table[command]
    words = ['Usage: mmedge', *command.split(), '[OPTIONS]']
    words += ['COMMAND [ARGS]...'] if 'commands' in entry else []
    words += [_place(p) for p in entry['parameters'] if not p['names']]
    return ' '.join(words)


def help_text(table: dict[str, Any], command: str, width: int) -> str:
    """Return the help of a command, or of all of them for ''."""
    entry = table[command]
    lines = [usage_line(table, command), '']
    for paragraph in entry['help'].split('\n\n'):
        lines += [*textwrap.wrap(paragraph, width, initial_indent=' ', subsequent_indent=' '), '']
    for title, rows in _panels(table, command).items():
        lines += [f'{title}:', *_columns(rows, width), '']
    if entry.get('epilog'):
        lines += textwrap.wrap(entry['epilog'], width, initial_indent=' ', subsequent_indent=' ')
    return '\n'.join(lines).rstrip()


def _panels(table: dict[str, Any], command: str) -> dict[str, list[tuple[str, str]]]:
    entry = table[command]
    panels: dict[str, list[tuple[str, str]]] = {}
    for parameter in entry['parameters']:
        if parameter['hidden']:
            continue
        title = 'Arguments' if not parameter['names'] else parameter['panel'] or 'Options'
        panels.setdefault(title, []).append((_names(parameter), _help(parameter)))
    panels.setdefault('Options', []).append(('--help', 'show this and end'))
    for name in entry.get('commands', ()):
        of_it = table[f'{command} {name}'.strip()]
        panels.setdefault(of_it['panel'] or 'Commands', []).append(
            (name, of_it['help'].split('\n\n')[0])
        )
    return panels


def _names(parameter: dict[str, Any]) -> str:
    if not parameter['names']:
        return _place(parameter)
    names = ' / '.join(parameter['names'])
    return names if parameter['kind'] == 'flag' else f'{names} {parameter["metavar"]}'


def _place(parameter: dict[str, Any]) -> str:
    metavar: str = parameter['metavar']
    dots = '...' if parameter['repeatable'] and not metavar.endswith('...') else ''
    return metavar + dots if metavar[0] == '[' or parameter['required'] else f'[{metavar}]{dots}'


def _help(parameter: dict[str, Any]) -> str:
    notes = []
    if parameter['kind'] == 'choice':
        notes.append('|'.join(parameter['choices']))
    if parameter['default']:
        notes.append(f'default: {parameter["default"]}')
    if parameter['required'] and parameter['names']:
        notes.append('required')
    return ' '.join([parameter['help'], *(f'[{note}]' for note in notes)])


def _columns(rows: Sequence[tuple[str, str]], width: int) -> Iterator[str]:
    room = min(_WIDEST_NAMES, max(len(names) for names, _ in rows))
    indent = ' ' * (_INDENT + room + 2)
    for names, words in rows:
        first = ' ' * _INDENT + names.ljust(room) + '  '
        if len(names) > room:
            yield first.rstrip()
            first = indent
        yield from textwrap.wrap(
            words, max(width, len(indent) + 20), initial_indent=first, subsequent_indent=indent
        )


def _width() -> int:
    return max(40, min(100, shutil.get_terminal_size().columns - 1))


if __name__ == '__main__':
    sys.exit(answer(sys.argv[1:]))
