"""The table that answers before anything is installed, made from the command line itself.

As a program it writes the table anew: PYTHONPATH=. python test/support/command_table.py
"""

from __future__ import annotations

import enum
import inspect
import json
import types
import typing
from collections.abc import Callable
from pathlib import Path
from typing import Any

import typer
from typer.models import OptionInfo

from mmedge_ros.commands.early_answers import TABLE
from mmedge_ros.commands.main import PANELS, app, mmedge


def command_table() -> dict[str, dict[str, Any]]:
    """What commands there are and what they take, by name; '' is `mmedge` itself."""
    names = [name for commands in PANELS.values() for name in commands]
    table = {'': _group(app, '', '', names) | {'epilog': app.info.epilog}}
    table['']['parameters'] = _parameters(mmedge)
    table['']['help'] = inspect.cleandoc(mmedge.__doc__ or '')
    for panel, commands in PANELS.items():
        for name, command in commands.items():
            if not isinstance(command, typer.Typer):
                table[name] = _command(command, panel)
                continue
            of_it = {_name(info): info for info in command.registered_commands}
            table[name] = _group(command, panel, command.info.help, list(of_it))
            for word, info in of_it.items():
                table[f'{name} {word}'] = _command(info.callback, info.rich_help_panel)
    return table


def _name(info: Any) -> str:
    return info.name or info.callback.__name__.replace('_', '-')


def _group(group: typer.Typer, panel: str, words: Any, names: list[str]) -> dict[str, Any]:
    return {'panel': panel, 'help': _plain(words), 'commands': names}


def _command(function: Callable[..., None], panel: Any) -> dict[str, Any]:
    return {
        'panel': panel if isinstance(panel, str) else '',
        'help': ' '.join(_plain(inspect.getdoc(function)).split('\n')).replace('  ', '\n\n'),
        'parameters': _parameters(function),
    }


def _parameters(function: Callable[..., None]) -> list[dict[str, Any]]:
    function = inspect.unwrap(function)  # as it was declared, whatever typer is installed
    hints = typing.get_type_hints(function, include_extras=True)
    signature = inspect.signature(function)
    return [_parameter(hints[name], p.default) for name, p in signature.parameters.items()]


def _parameter(hint: Any, default: Any) -> dict[str, Any]:
    kind, info = hint.__origin__, hint.__metadata__[0]
    options = [kind for kind in typing.get_args(kind) if kind is not types.NoneType]
    repeatable = typing.get_origin(kind) is list
    if not repeatable and options:
        (kind,) = options
        repeatable = typing.get_origin(kind) is list
    if repeatable:
        (kind,) = typing.get_args(kind)
    names = (info.param_decls or ()) if isinstance(info, OptionInfo) else ()
    described = {
        'names': [part for name in names for part in name.split('/')],
        'metavar': info.metavar,
        'kind': _kind(kind, info),
        'required': default is inspect.Parameter.empty,
        'repeatable': repeatable,
        'hidden': info.hidden,
        'panel': info.rich_help_panel,
        'default': _default(default),
        'help': _plain(info.help),
        'least': info.min,
        'most': info.max,
    }
    if described['kind'] == 'choice':
        described['choices'] = [member.value for member in kind]
        described['metavar'] = info.metavar or 'NAME'
    return {key: value for key, value in described.items() if value not in (None, '', [], False)}


def _kind(kind: Any, info: Any) -> str:
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return 'choice'
    if kind is Path and info.exists:
        return (
            'path' if info.dir_okay and info.file_okay else 'file' if info.file_okay else 'folder'
        )
    return {bool: 'flag', int: 'int', float: 'float'}.get(kind, 'text')


def _default(default: Any) -> str:
    value = default.value if isinstance(default, enum.Enum) else default
    return '' if value in (None, inspect.Parameter.empty) or value is False else str(value)


def _plain(words: Any) -> str:
    return inspect.cleandoc(words or '').replace('\\[', '[')


def text_of(table: dict[str, dict[str, Any]]) -> str:
    """The table as it is written: a parameter a line, so that changes stay apart."""
    entries = []
    for name, entry in table.items():
        rows = ',\n'.join(f'  {_json(parameter)}' for parameter in entry.get('parameters', ()))
        facts = {key: value for key, value in entry.items() if key != 'parameters'}
        lines = [f'{_json(key)}: {_json(value)}' for key, value in facts.items()]
        lines.append(f'"parameters": [\n{rows}\n]')
        entries.append(f'{_json(name)}: {{\n' + ',\n'.join(lines) + '\n}')
    return '{\n' + ',\n'.join(entries) + '\n}\n'


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


if __name__ == '__main__':
    TABLE.write_text(text_of(command_table()))
