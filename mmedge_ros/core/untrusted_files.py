"""Files from outside: read up to a bounded size; YAML as data only, without references."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

_MAX_DEPTH = 40
# Several times as fast where PyYAML was built with libyaml. It does not survive deep nesting,
# which has to be refused before it builds anything.
_LOADER: type[Any] = getattr(yaml, 'CSafeLoader', yaml.SafeLoader)
_MOST_VALUES = 100_000
_LONGEST_SHOWN, _MOST_SHOWN, _MOST_BITS = 80, 20, 200


class PlainYamlError(ValueError):
    """A file is not the plain YAML it should be; the message begins with its path."""


class YamlTrapError(yaml.YAMLError):
    """YAML that could cost far more than its size; the message begins with the line."""


def read_bounded(
    path: str | Path, most_bytes: int, refusal: type[Exception], remedy: str = ''
) -> bytes:
    """Return all of a file; a device that never ends is not read for ever.

    :param refusal: what is raised, with a message that begins with the path
    :param remedy: what to do instead, for the end of that message
    :raises refusal: if it cannot be read or is larger
    """
    path, end = Path(path), f'; {remedy}' if remedy else ''
    try:
        with path.open('rb') as file:
            content = file.read(most_bytes + 1)
    except OSError as err:
        raise refusal(f'{path}: {err.strerror or err}{end}') from err
    except ValueError as err:  # a path that no file system can hold
        raise refusal(f'{str(path)!r}: {err}{end}') from err
    if len(content) > most_bytes:
        raise refusal(f'{path}: larger than {most_bytes} bytes{end}')
    return content


def load_plain_yaml(path: str | Path, max_bytes: int) -> dict[Any, Any]:
    """Read a YAML file that holds one mapping.

    Anchors are refused, because nested ones make a kilobyte grow without bound, and so is
    deep nesting, which costs the parser the square of the depth.

    :raises PlainYamlError: if the file cannot be read or is anything else
    """
    path = Path(path)
    raw = read_bounded(path, max_bytes, PlainYamlError)
    try:
        content = load_shallow_yaml(raw, anchors=False)
    except YamlTrapError as error:
        raise PlainYamlError(f'{path}: {error}') from error
    except yaml.YAMLError as error:
        raise PlainYamlError(f'{path}: not plain YAML ({brief(error)})') from error
    # Impossible dates and numbers, and keys that cannot be keys.
    except (ValueError, TypeError) as error:
        raise PlainYamlError(f'{path}: a value cannot be read ({brief(error)})') from error
    if not isinstance(content, dict):
        kind = 'nothing' if content is None else f'a {type(content).__name__}'
        raise PlainYamlError(f'{path}: holds {kind}, not keys and values')
    return content


def load_shallow_yaml(raw: bytes, anchors: bool = True) -> Any:
    """Read YAML whatever it holds; what would grow far beyond it is refused before it is built.

    :param anchors: whether values may refer to others, as those that PyYAML writes do
    :raises YamlTrapError: if it is nested too deep, refers to an anchor, or to anchors that hold
        too much
    :raises yaml.YAMLError: if it is not YAML
    :raises ValueError: for impossible dates and numbers
    """
    open_nodes: list[tuple[str | None, int]] = []  # anchor, and how many values came before
    sizes: dict[str | None, int] = {}
    values = 0
    for event in yaml.parse(raw, Loader=_LOADER):
        line = event.start_mark.line + 1 if event.start_mark else 0
        if isinstance(event, yaml.AliasEvent):
            if not anchors:
                raise YamlTrapError(f'line {line} refers to an anchor; write it out')
            values += sizes.get(event.anchor, _MOST_VALUES)
            if values >= _MOST_VALUES:
                raise YamlTrapError(
                    f'line {line} refers to anchors that hold themselves, or {_MOST_VALUES} '
                    'values and more; write them out'
                )
        elif isinstance(event, yaml.ScalarEvent):
            values += 1
            sizes[event.anchor] = 1
        elif isinstance(event, yaml.CollectionStartEvent):
            open_nodes.append((event.anchor, values))
            sizes.pop(event.anchor, None)
            values += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, before = open_nodes.pop()
            sizes[anchor] = values - before
        if len(open_nodes) > _MAX_DEPTH:
            raise YamlTrapError(f'line {line} is nested deeper than {_MAX_DEPTH} levels')
    return yaml.load(raw, Loader=_LOADER)  # a safe one


def is_number(value: Any, least: float, most: float) -> bool:
    """Whether a value of such a file is a number within bounds; NaN and booleans are not."""
    known = isinstance(value, int | float) and not isinstance(value, bool)
    return known and least <= value <= most


def shown(value: Any) -> str:
    """Show a value of such a file, cut to what fits a message."""
    if isinstance(value, dict | list | tuple) and len(value) > _MOST_SHOWN:
        return f'a {type(value).__name__} of {len(value)}'
    if isinstance(value, int) and value.bit_length() > _MOST_BITS:
        return 'a huge number'
    try:
        text = repr(value)
    except ValueError:  # Python refuses to print the hugest integers, also within others
        return 'a huge number'
    return text if len(text) <= _LONGEST_SHOWN else f'{text[:_LONGEST_SHOWN]}...'


def printable(text: str) -> str:
    """Make a foreign text one line without what a terminal would obey."""
    return ' '.join(''.join(c if c.isprintable() else ' ' for c in text).split())


def brief(error: Exception) -> str:
    """Put an exception into one line of at most 300 characters."""
    return ' '.join(str(error).split())[:300] or type(error).__name__
