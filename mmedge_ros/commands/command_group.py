"""Groups of commands for typer 0.7 and later: Debian 12 and Ubuntu 24.04 have old ones."""

from __future__ import annotations

import functools
import importlib.metadata
import inspect
import re
import types
from collections.abc import Callable
from copy import copy
from enum import Enum
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin, get_type_hints

import typer

Command = TypeVar('Command', bound=Callable[..., Any])

# The first typer that reads Annotated[Path | None, typer.Option(...)].
_READS_ANNOTATIONS = (0, 12)


class CommandGroup(typer.Typer):
    """A typer.Typer whose commands are declared with Annotated, whatever typer is installed."""

    def command(self, name: str | None = None, **rest: Any) -> Callable[[Command], Command]:
        """Register a command; see typer."""
        return self._registered(super().command(name, **rest))

    def callback(self, **rest: Any) -> Callable[[Command], Command]:
        """Register what is called before any command; see typer."""
        return self._registered(super().callback(**rest))

    @staticmethod
    def _registered(register: Callable[[Any], Any]) -> Callable[[Command], Command]:
        def registered(function: Command) -> Command:
            register(function if _reads_annotations() else with_default_style(function))
            return function

        return registered


def with_default_style(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a command declared as typer 0.7 wants it: `out: Optional[Path] = Option(None)`."""
    hints = get_type_hints(function, include_extras=True)
    declared = []
    for parameter in inspect.signature(function).parameters.values():
        hint, default = hints[parameter.name], parameter.default
        if get_origin(hint) is Annotated:
            hint, info = get_args(hint)[:2]
            info = copy(info)
            if default is not inspect.Parameter.empty:
                info.default = default.value if isinstance(default, Enum) else default
            default = info
        if get_origin(hint) is types.UnionType:
            hint = Union[get_args(hint)]  # noqa: UP007 typer 0.9 cannot read X | None
        declared.append(parameter.replace(annotation=hint, default=default))

    @functools.wraps(function)
    def command(*values: Any, **named: Any) -> Any:
        return function(*values, **named)

    # A required parameter may follow one with a default: typer passes everything by name.
    command.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in declared]
    )
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in declared}
    return command


@functools.cache
def _reads_annotations() -> bool:
    version = re.findall(r'\d+', importlib.metadata.version('typer'))
    return tuple(map(int, version[:2])) >= _READS_ANNOTATIONS
