"""Options of commands that start the graph or record it, made from the record of options."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import typer

from mmedge_ros.commands.options import existing_file, flag, option
from mmedge_ros.ros.graph.options import GraphOptions, Option, options_of


def takes(
    command: str, kind: type = GraphOptions, only: Collection[str] = ()
) -> Callable[[Callable[..., None]], Any]:
    """Let a function take the options of a command beside its own, by keyword.

    It gets them as the fields of ``kind`` have them: '' where no path is given.

    :param command: as `options_of` has it
    :param only: names of the fields that are taken; empty for all
    """
    items = [item for item in options_of(kind, command) if not only or item.name in only]

    def decorate(function: Callable[..., None]) -> Any:
        own = inspect.signature(function, eval_str=True).parameters.values()
        shared = [
            inspect.Parameter(
                item.name,
                inspect.Parameter.KEYWORD_ONLY,
                default=_default(item),
                annotation=typer_option(item),
            )
            for item in items
        ]
        mine = [
            p.replace(kind=inspect.Parameter.KEYWORD_ONLY)
            for p in own
            if p.kind is not inspect.Parameter.VAR_KEYWORD
        ]

        @wraps(function)
        def run(**given: Any) -> None:
            for item in items:
                given[item.name] = _field_value(item, given[item.name])
            function(**given)

        del run.__dict__['__wrapped__']
        parameters = [*mine, *shared]
        run.__dict__['__signature__'] = inspect.Signature(parameters)
        run.__annotations__ = {p.name: p.annotation for p in parameters}
        return run

    return decorate


def typer_option(item: Option) -> Any:
    """Return the annotation that makes an option of a command."""
    bounds, form, words = item.bounds, item.form, item.bounds.description
    name = _flag_name(item)
    if isinstance(item.default, bool):
        return Annotated[bool, flag(name, words, form.panel)]
    if form.path == 'file':
        return Annotated[Path | None, existing_file(name, words, form.panel)]
    if form.path:
        exists = {'exists': True} if form.path == 'any' else {}
        return Annotated[Path | None, option(name, form.metavar, words, form.panel, **exists)]
    if isinstance(item.default, tuple):
        return Annotated[list[str] | None, option(name, form.metavar, words, form.panel)]
    if bounds.choices:
        words = f'{words}: {", ".join(bounds.choices)}'
    limits = {'min': bounds.minimum, 'max': bounds.maximum}
    limits = {end: limit for end, limit in limits.items() if limit is not None}
    return Annotated[type(item.default), option(name, form.metavar, words, form.panel, **limits)]


def _flag_name(item: Option) -> str:
    return item.form.flag or f'--{item.name.replace("_", "-")}'


def _default(item: Option) -> Any:
    return None if item.form.path or isinstance(item.default, tuple) else item.default


def _field_value(item: Option, value: Any) -> Any:
    if isinstance(item.default, tuple):
        return tuple(value or ())
    if item.form.path:
        return str(value or '')
    if item.bounds.choices and value not in item.bounds.choices:
        raise typer.BadParameter(
            f'choose {", ".join(item.bounds.choices)}',
            param_hint=_flag_name(item),
        )
    return value
