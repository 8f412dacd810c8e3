"""A flight is whole or not there, whatever ends its making."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import hand_made_flight
import pytest
from hand_made_flight import fly
from painted_flight import write_painted_set

from mmedge_lab.simulation import SimulationError
from mmedge_lab.simulation.flight_folder import (
    FLIGHT_FILE,
    FlightDescription,
    flights_in,
    read_description,
    whole_folder,
)

ROOT = Path(__file__).resolve().parents[3]
PROGRAM = Path(hand_made_flight.__file__)


def start(*arguments: object) -> subprocess.Popen[str]:
    """Start the writing of a flight in a process of its own."""
    return subprocess.Popen(
        [sys.executable, str(PROGRAM), *map(str, arguments)],
        env={**os.environ, 'PYTHONPATH': os.pathsep.join([str(ROOT), str(PROGRAM.parent)])},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def fail_in(target: Path, error: BaseException) -> None:
    """Begin to write a flight and fail."""
    with whole_folder(target) as part:
        part.mkdir()
        (part / 'begun').write_text('half')
        raise error


@pytest.fixture
def killed(tmp_path: Path) -> Path:
    """A place whose flight was being written when its process was killed."""
    target = tmp_path / 'flight'
    process = start(target, 600)
    assert process.stdout is not None
    for line in process.stdout:
        if float(line) > 0.002:
            break
    process.kill()
    process.communicate()
    assert process.returncode < 0
    return target


class TestKilled:
    def test_nothing_is_left_that_looks_like_a_flight(self, killed: Path) -> None:
        assert not killed.exists()
        left = [path.name for path in killed.parent.iterdir()]
        assert left == ['.flight.simulating']
        assert read_description(killed.parent / left[0] / 'flight') is None

    def test_an_earlier_flight_survives_a_killed_later_one(self, tmp_path: Path) -> None:
        target = fly(tmp_path / 'flight', seed=7)
        process = start(target, 600)
        assert process.stdout is not None
        process.stdout.readline()
        process.kill()
        process.communicate()
        description = read_description(target)
        assert description is not None
        assert description.seed == 7

    def test_an_earlier_flight_comes_back_if_its_replacement_was_killed_in_between(
        self, tmp_path: Path
    ) -> None:
        target, hidden = fly(tmp_path / 'flight', seed=7), tmp_path / '.flight.simulating'
        hidden.mkdir()
        target.rename(hidden / 'replaced')
        with pytest.raises(KeyboardInterrupt):
            fail_in(tmp_path / 'flight', KeyboardInterrupt())
        description = read_description(tmp_path / 'flight')
        assert description is not None
        assert description.seed == 7
        assert [path.name for path in tmp_path.iterdir()] == ['flight']


class TestFailure:
    def test_a_full_disk_is_said_in_one_sentence_and_leaves_nothing(self, tmp_path: Path) -> None:
        # A limit on a file's size fails like a disk that is full: in the middle of a write.
        process = start(tmp_path / 'flight', 60, 1_500_000)
        _, messages = process.communicate(timeout=60)
        assert process.returncode == 1
        assert 'cannot write the flight' in messages
        assert 'too large' in messages
        assert 'free that room' in messages
        assert 'Traceback' not in messages
        assert list(tmp_path.iterdir()) == []


class TestPlace:
    def test_a_flight_of_ours_is_replaced(self, tmp_path: Path) -> None:
        target = fly(tmp_path / 'flight', seed=7)
        fly(target, seed=8)
        assert read_description(target) == FlightDescription('meadow_day_near', 8, 1.0)
        assert [path.name for path in tmp_path.iterdir()] == ['flight']

    def test_a_folder_with_other_things_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / 'flight').mkdir()
        (tmp_path / 'flight' / 'letters').write_text('dear')
        with pytest.raises(SimulationError, match=r"holds 'letters'.*name another folder"):
            fly(tmp_path / 'flight')
        assert (tmp_path / 'flight' / 'letters').read_text() == 'dear'

    def test_a_recording_that_was_not_simulated_is_refused(self, tmp_path: Path) -> None:
        target = fly(tmp_path / 'flight')
        (target / FLIGHT_FILE).unlink()
        with pytest.raises(SimulationError, match='no simulated flight'):
            fly(target)

    def test_two_runs_do_not_write_the_same_flight(self, tmp_path: Path) -> None:
        target = tmp_path / 'flight'
        with whole_folder(target) as part:
            fly(tmp_path / 'hidden')
            with pytest.raises(SimulationError, match='another run is writing'):
                fly(target)
            # The first one goes on undisturbed.
            (tmp_path / 'hidden').rename(part)
        assert (target / FLIGHT_FILE).is_file()
        assert [path.name for path in tmp_path.iterdir()] == ['flight']


def test_a_set_holds_its_flights_by_name_and_nothing_else(tmp_path: Path) -> None:
    folder = write_painted_set(tmp_path / 'set', flights=2, pictures=1)
    (folder / 'notes').mkdir()
    (folder / 'notes.txt').touch()
    shutil.copytree(folder / 'flight_0', folder / '.flight_2.simulating')
    assert [path.name for path in flights_in(folder)] == ['flight_0', 'flight_1']
