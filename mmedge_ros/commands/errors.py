"""How commands end where something is wrong that a user can do something about."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

import typer
from rich.markup import escape

from mmedge_ros import MmedgeError
from mmedge_ros.commands.display import console, one_line


@contextmanager
def plain_errors() -> Iterator[None]:
    """Turn every error a user can do something about into one sentence and exit code 1."""
    try:
        yield
    except MmedgeError as err:
        stop(str(err))
    except OSError as err:
        stop(f'{err.filename or "file"}: {err.strerror or err}')
    except ModuleNotFoundError as err:
        stop(
            f'{err.name} is not installed; this command needs ROS 2 and the built package '
            '(./mmedge brings both)'
        )


def stop(sentence: str) -> NoReturn:
    """End with a sentence and exit code 1."""
    console.print(f'[bold red]mmedge:[/] {escape(one_line(sentence))}', soft_wrap=True)
    raise typer.Exit(1)
