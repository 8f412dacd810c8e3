"""An option is one field: commands and launch files take it from the record."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from mmedge_ros.commands import graph_options
from mmedge_ros.core.parameter import ParameterError
from mmedge_ros.ros.graph.options import (
    DRONE,
    RECORD_FILE,
    UP,
    FlagForm,
    GraphOptions,
    InputOptions,
    RecordOptions,
    from_launch,
    is_true,
    launch_arguments,
    shared,
)


@dataclass(frozen=True, kw_only=True)
class Extended(InputOptions):
    """The record with options that a test adds."""

    speed: float = shared(1.0, 'how fast', (UP, DRONE), FlagForm('MS'), minimum=0.0, maximum=9.0)
    colour: str = shared('red', 'which', (UP, DRONE), choices=('red', 'blue'))
    place: str = shared('', 'where', (UP,), FlagForm(path='file'))
    names: tuple[str, ...] = shared((), 'who', (UP, DRONE), FlagForm('NAME'))
    ready: bool = shared(False, 'whether', (UP, DRONE))


def as_command(*arguments: str) -> Any:
    """What a command with the options makes of its arguments."""
    app, made = typer.Typer(), list[Extended]()

    @app.command()
    @graph_options.takes(UP, Extended)
    def run(own: int = 0, **given: Any) -> None:
        made.append(Extended(**given))

    done = CliRunner().invoke(app, arguments, env={'NO_COLOR': '1'})
    return made[0] if made else done.output


def test_a_command_takes_a_new_field_with_its_limits_and_choices(tmp_path: Path) -> None:
    place = tmp_path / 'here'
    place.touch()
    given = ('--speed', '2.5', '--colour', 'blue', '--names', 'ann', '--names', 'bob', '--ready')
    assert as_command(*given, '--place', str(place), '--own', '3') == Extended(
        speed=2.5, colour='blue', place=str(place), names=('ann', 'bob'), ready=True
    )
    assert as_command() == Extended()
    for wrong, words in (('--speed=9.5', '--speed'), ('--colour=green', 'red, blue')):
        assert words in as_command(wrong)
    assert 'nowhere' in as_command('--place=nowhere')


def test_a_launch_file_takes_it_too() -> None:
    arguments = launch_arguments(Extended, DRONE)
    values = {name: default for name, default, _ in arguments}
    assert from_launch(Extended, DRONE, values) == Extended()
    assert 'place' not in values
    values |= {'speed': '2.5', 'names': 'ann bob', 'ready': 'true', 'colour': 'blue'}
    assert from_launch(Extended, DRONE, values, clock=True) == Extended(
        speed=2.5, names=('ann', 'bob'), ready=True, colour='blue', clock=True
    )
    for name, text, words in (
        ('speed', 'fast', 'speed:=fast is not a number'),
        ('speed', '10', 'the limits are 0.0 to 9.0'),
        ('colour', 'green', 'choose one of red, blue'),
        ('ready', 'perhaps', 'neither true nor false'),
    ):
        with pytest.raises(ParameterError, match=words):
            from_launch(Extended, DRONE, {**values, name: text})


def test_switches_are_read_as_people_write_them() -> None:
    assert [is_true(text) for text in ('true', 'True', ' 1', 'on', 'yes')] == [True] * 5
    assert [is_true(text) for text in ('false', '0', '', 'off', 'no')] == [False] * 5


@pytest.mark.parametrize(('kind', 'file'), [(GraphOptions, DRONE), (RecordOptions, RECORD_FILE)])
def test_every_option_is_described(kind: type, file: str) -> None:
    assert all(len(words) > 10 for _, _, words in launch_arguments(kind, file))
