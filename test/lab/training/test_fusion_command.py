"""`mmedge lab train fusion`: what can be refused is refused before anything is begun."""

from __future__ import annotations

from pathlib import Path

import pytest
from painted_crossing import write_crossing
from typer.testing import CliRunner, Result

from mmedge_lab.commands.train import train_app


def run(place: Path, *arguments: str | Path) -> Result:
    known = ('--narrow', place / 'narrow', '--wide', place / 'wide', '--out', place / 'out')
    given = ['fusion', place / 'set', *known, *arguments]
    return CliRunner().invoke(train_app, [str(argument) for argument in given])


@pytest.fixture
def place(tmp_path: Path) -> Path:
    for name in ('set', 'narrow', 'wide'):
        (tmp_path / name).mkdir()
    return tmp_path


def add_detectors(place: Path) -> None:
    for name in ('narrow', 'wide'):
        (place / name / f'{name}.pt').touch()


def test_flights_without_ground_truth_are_refused_at_once(place: Path) -> None:
    write_crossing(place / 'set/one', seconds=0.2, truth=False)
    add_detectors(place)
    done = run(place)
    assert done.exit_code == 1
    assert 'ground truth is needed' in done.stderr
    assert not (place / '.out.training').exists()
