"""Parameters are declared once, as fields of a frozen dataclass.

The ROS parameter descriptors, the tables in documents and the check of values all come from here.
A field made with `parameter` is a user's to set. A plain field is a constant of the algorithm and
has no ROS name.
"""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, TypeVar

from mmedge_ros import MmedgeError
from mmedge_ros.core.untrusted_files import shown

_T = TypeVar('_T')

# Far beyond any unit's use, and safely a float.
_LARGEST = 1e300


class ParameterError(MmedgeError):
    """A parameter has an unknown name or a value outside its bounds."""


class ParameterBounds(NamedTuple):
    """Description, unit and inclusive limits of a parameter."""

    description: str
    unit: str
    minimum: float | None
    maximum: float | None
    choices: tuple[str, ...]


class Parameter(NamedTuple):
    """One declared parameter with its full (dotted) name."""

    name: str
    default: Any
    bounds: ParameterBounds


def parameter(
    default: Any,
    description: str,
    unit: str = '',
    minimum: float | None = None,
    maximum: float | None = None,
    choices: tuple[str, ...] = (),
) -> Any:
    """Declare a field of a parameter dataclass (float, int, bool, str or tuple of these)."""
    bounds = ParameterBounds(description, unit, minimum, maximum, choices)
    return dataclasses.field(default=default, metadata={'bounds': bounds})


def group(kind: type[_T]) -> _T:
    """Nest another parameter dataclass; its names get the field's name as prefix."""
    return dataclasses.field(default_factory=kind)


def declared(kind: type, prefix: str = '') -> list[Parameter]:
    """List every parameter of a dataclass, nested ones with dotted names, in order."""
    parameters: list[Parameter] = []
    defaults = kind()
    for item in dataclasses.fields(kind):
        value = getattr(defaults, item.name)
        if dataclasses.is_dataclass(value):
            parameters += declared(type(value), f'{prefix}{item.name}.')
        elif 'bounds' in item.metadata:
            parameters.append(Parameter(prefix + item.name, value, item.metadata['bounds']))
    return parameters


def unknown_name_message(name: str, valid: Iterable[str]) -> str:
    """Say that a parameter does not exist and which one was probably meant."""
    names = sorted(valid)
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.0)
    return (
        f'unknown parameter {shown(name)}; the nearest valid one is {near[0]!r}'
        if near
        else (f'unknown parameter {shown(name)}; this takes no parameters')
    )


def build(kind: type[_T], values: Mapping[str, Any]) -> _T:
    """Make a parameter dataclass from dotted names.

    :raises ParameterError: for an unknown name, a wrong type or a value outside its bounds
    """
    known = {item.name: item for item in declared(kind)}
    for name, value in values.items():
        if name not in known:
            raise ParameterError(unknown_name_message(name, known))
        item = known[name]
        check_value(item.name, item.default, item.bounds, value)
    return _assemble(kind, values, '')


def _assemble(kind: type[_T], values: Mapping[str, Any], prefix: str) -> _T:
    arguments: dict[str, Any] = {}
    defaults = kind()
    for item in dataclasses.fields(kind):  # type: ignore[arg-type]
        default = getattr(defaults, item.name)
        if dataclasses.is_dataclass(default):
            nested = _assemble(type(default), values, f'{prefix}{item.name}.')
            arguments[item.name] = nested
        elif prefix + item.name in values:
            value = values[prefix + item.name]
            arguments[item.name] = type(default)(value)
    return kind(**arguments)


def check_value(name: str, default: Any, bounds: ParameterBounds, value: Any) -> None:
    """Refuse a value that is of another type than the default, or outside the bounds.

    :raises ParameterError: which names the parameter and the value
    """
    if isinstance(default, bool) or isinstance(value, bool):
        suits = isinstance(default, bool) and isinstance(value, bool)
    elif isinstance(default, float):
        suits = isinstance(value, int | float) and abs(value) <= _LARGEST
    elif isinstance(default, tuple):
        element = type(default[0]) if default else str
        suits = isinstance(value, list | tuple) and all(isinstance(v, element) for v in value)
    else:
        suits = isinstance(value, type(default))
    if not suits:
        kind = type(default).__name__
        raise ParameterError(f'parameter {name!r} must be a {kind}, not {shown(value)}')
    if bounds.choices and value not in bounds.choices:
        raise ParameterError(
            f'parameter {name!r} is {shown(value)}; choose one of {", ".join(bounds.choices)}'
        )
    low, high = bounds.minimum, bounds.maximum
    for number in value if isinstance(default, tuple) else (value,):
        if (low is not None and number < low) or (high is not None and number > high):
            given = f'{shown(number)} {bounds.unit}'.strip()
            raise ParameterError(f'parameter {name!r} is {given}; the limits are {low} to {high}')
