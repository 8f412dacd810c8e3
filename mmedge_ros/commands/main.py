"""The `mmedge` command line."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from mmedge_ros.commands import stopping
from mmedge_ros.commands.ask import ask
from mmedge_ros.commands.calibrate import calibrate
from mmedge_ros.commands.command_group import CommandGroup
from mmedge_ros.commands.display import say
from mmedge_ros.commands.doctor import doctor
from mmedge_ros.commands.errors import stop
from mmedge_ros.commands.laboratory import REMEDY, offered
from mmedge_ros.commands.limit import limit
from mmedge_ros.commands.memory import memory_app
from mmedge_ros.commands.model import model_app
from mmedge_ros.commands.options import argument, flag
from mmedge_ros.commands.profile import profile as profile_machine
from mmedge_ros.commands.radar import radar_app
from mmedge_ros.commands.record import record
from mmedge_ros.commands.replay import replay
from mmedge_ros.commands.up import up
from mmedge_ros.commands.version import version_line

Command = Callable[..., None] | typer.Typer


def lab_commands() -> dict[str, Command]:
    """Return the commands of the laboratory; where it is not installed, they say so."""
    commands: dict[str, Command] | None = offered('commands')
    return commands or dict.fromkeys(('demo', 'simulate', 'lab'), needs_the_laboratory)


def needs_the_laboratory(
    _words: Annotated[list[str] | None, argument('[WORDS]', 'ignored', hidden=True)] = None,
) -> None:
    """Not here: needs the laboratory."""
    stop(REMEDY)


_lab = lab_commands()

# Panels of `mmedge --help` and the commands in each, in the order in which a newcomer needs them.
PANELS: dict[str, dict[str, Command]] = {
    'Start': {
        'demo': _lab['demo'],
        'replay': replay,
        'up': up,
        'record': record,
        'doctor': doctor,
    },
    'Remember': {'memory': memory_app, 'ask': ask},
    'Models': {'model': model_app},
    'Tools': {
        'calibrate': calibrate,
        'profile': profile_machine,
        'radar': radar_app,
        'limit': limit,
    },
    'Laboratory': {'simulate': _lab['simulate'], 'lab': _lab['lab']},
}


class _InPanels(TyperGroup):
    """Lists commands in the order of their panels; typer itself lists groups first."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002
        """Return the names in order."""
        return [name for commands in PANELS.values() for name in commands]


app = CommandGroup(
    name='mmedge',
    cls=_InPanels,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode='rich',
    epilog='./mmedge install sets everything up and ends; ./mmedge test runs format, lint, types '
    'and tests, and hands its arguments to pytest.',
)


def _show_version(is_asked_for: bool) -> None:
    if is_asked_for:
        typer.echo(version_line())
        raise typer.Exit


@app.callback()
def mmedge(
    _version: Annotated[
        bool,
        flag(
            '--version',
            'show version, commit, Python and ROS, and end',
            is_eager=True,
            callback=_show_version,
        ),
    ] = False,
) -> None:
    """Real-time people tracking for drones: camera and mmWave radar, pipelined."""


def _help(command: Callable[..., None]) -> str:
    """Return a command's docstring, a line for each paragraph: typer keeps its line breaks."""
    paragraphs = inspect.cleandoc(command.__doc__ or '').split('\n\n')
    return '\n\n'.join(' '.join(paragraph.split('\n')) for paragraph in paragraphs)


for panel, commands in PANELS.items():
    for name, command in commands.items():
        if not isinstance(command, typer.Typer):
            # What the laboratory's commands take is not known without it.
            anything = command is needs_the_laboratory
            app.command(
                name,
                rich_help_panel=panel,
                help=_help(command),
                context_settings={'ignore_unknown_options': anything},
            )(command)
            continue
        app.add_typer(command, name=name, rich_help_panel=panel)
        for info in command.registered_commands:
            if info.callback is not None:
                info.help = _help(info.callback)


def main() -> None:
    """Run the command line."""
    stopping.catch_signals()
    try:
        app(prog_name='mmedge')
    except BaseException as err:
        if not stopping.received:
            raise
        # Unwound in the middle of something, the stack may end in another error than ours.
        stopping.ignore_signals()
        say('stopped')
        raise stopping.Stopped(128 + stopping.received[0]) from err


if __name__ == '__main__':
    main()
