"""How commands end where something is wrong that a user can do something about."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

import typer
from rich.markup import escape

from mmedge_ros import MmedgeError
from mmedge_ros.commands.display import console, one_line

_NEEDS_ROS = (
    'this command needs ROS 2 and the built package: ./mmedge brings both to x86-64 Linux, and '
    'docs/install.md has the steps for other machines'
)


def require_ros() -> None:
    """End with a sentence where there is no ROS 2, before anything takes long."""
    if importlib.util.find_spec('rclpy') is None:
        stop(f'rclpy is not installed; {_NEEDS_ROS}')


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
        stop(f'{err.name} is not installed; {_NEEDS_ROS}')


def stop(sentence: str) -> NoReturn:
    """End with a sentence and exit code 1."""
    console.print(f'[bold red]mmedge:[/] {escape(one_line(sentence))}', soft_wrap=True)
    raise typer.Exit(1)
