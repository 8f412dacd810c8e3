"""A flight is whole or not there, whatever ends its making."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import hand_made_flight
import pytest
from hand_made_flight import fly, scene, sensors

from mmedge_lab.simulation import SimulationError
from mmedge_lab.simulation.flight import record_flight
from mmedge_lab.simulation.flight_folder import (
    FLIGHT_FILE,
    FlightDescription,
    add_preview,
    read_description,
    whole_folder,
)
from mmedge_ros.replay.bag import Bag

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

    def test_the_next_run_clears_up_and_finishes(self, killed: Path) -> None:
        fly(killed)
        assert [path.name for path in killed.parent.iterdir()] == ['flight']
        with Bag(killed) as bag:
            assert bag.problems == []

    def test_what_another_target_left_is_not_touched(self, killed: Path) -> None:
        fly(killed.parent / 'other')
        assert (killed.parent / '.flight.simulating').is_dir()

    def test_a_hidden_folder_of_somebody_else_is_not_touched(self, tmp_path: Path) -> None:
        mine = tmp_path / '.flight.backup'
        mine.mkdir()
        (mine / 'notes').write_text('mine')
        fly(tmp_path / 'flight')
        assert (mine / 'notes').read_text() == 'mine'

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

    def test_a_disk_that_is_full_at_the_very_end_counts_as_full(self, tmp_path: Path) -> None:
        # The file fits but for its index.
        whole = fly(tmp_path / 'whole') / 'whole.mcap'
        process = start(tmp_path / 'flight', 1, whole.stat().st_size - 500)
        _, messages = process.communicate(timeout=60)
        assert process.returncode == 1
        assert messages.startswith('cannot write the flight')
        assert [path.name for path in tmp_path.iterdir()] == ['whole']

    def test_an_earlier_flight_stays_when_the_later_one_fails(self, tmp_path: Path) -> None:
        target = fly(tmp_path / 'flight', seed=7)
        with pytest.raises(SimulationError, match=r'No space left.* free that room'):
            fail_in(target, OSError(errno.ENOSPC, 'No space left on device'))
        assert read_description(target) == FlightDescription('meadow_day_near', 7, 1.0)
        assert [path.name for path in tmp_path.iterdir()] == ['flight']

    def test_any_other_end_of_a_run_leaves_nothing(self, tmp_path: Path) -> None:
        with pytest.raises(KeyboardInterrupt):
            fail_in(tmp_path / 'flight', KeyboardInterrupt())
        assert list(tmp_path.iterdir()) == []

    def test_a_place_below_a_file_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / 'file').write_text('')
        with pytest.raises(SimulationError, match='name a folder that can be written'):
            fly(tmp_path / 'file' / 'flight')

    @pytest.mark.skipif(os.geteuid() == 0, reason='root may write anywhere')
    def test_a_folder_that_is_read_only_is_refused(self, tmp_path: Path) -> None:
        tmp_path.chmod(0o500)
        with pytest.raises(SimulationError, match='Permission denied'):
            fly(tmp_path / 'flight')

    def test_a_path_that_cannot_be_is_refused(self, tmp_path: Path) -> None:
        for name in ('a\0b', 'x' * 300):
            with pytest.raises(SimulationError, match='cannot write'):
                fly(tmp_path / name)


class TestPlace:
    def test_a_flight_of_ours_is_replaced(self, tmp_path: Path) -> None:
        target = fly(tmp_path / 'flight', seed=7)
        assert add_preview(target, b'of the old one').read_bytes() == b'of the old one'
        fly(target, seed=8)
        assert read_description(target) == FlightDescription('meadow_day_near', 8, 1.0)
        assert not (target / 'preview.png').exists()
        assert [path.name for path in tmp_path.iterdir()] == ['flight']

    def test_a_preview_that_cannot_be_written_leaves_the_flight(self, tmp_path: Path) -> None:
        target = fly(tmp_path / 'flight')
        (target / 'preview.png').mkdir()
        with pytest.raises(SimulationError, match='the flight itself is whole'):
            add_preview(target, b'png')
        assert sorted(path.name for path in target.iterdir()) == [
            'flight.mcap',
            'flight.yaml',
            'metadata.yaml',
            'preview.png',
        ]

    def test_an_empty_folder_is_taken(self, tmp_path: Path) -> None:
        (tmp_path / 'flight').mkdir()
        fly(tmp_path / 'flight')
        assert (tmp_path / 'flight' / FLIGHT_FILE).is_file()

    def test_folders_on_the_way_are_made(self, tmp_path: Path) -> None:
        fly(tmp_path / 'a' / 'b' / 'flight')
        assert (tmp_path / 'a' / 'b' / 'flight' / FLIGHT_FILE).is_file()

    def test_a_folder_with_other_things_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / 'flight').mkdir()
        (tmp_path / 'flight' / 'letters').write_text('dear')
        with pytest.raises(SimulationError, match=r"holds 'letters'.*name another folder"):
            fly(tmp_path / 'flight')
        assert (tmp_path / 'flight' / 'letters').read_text() == 'dear'

    def test_a_flight_with_something_added_is_refused(self, tmp_path: Path) -> None:
        target = fly(tmp_path / 'flight')
        (target / 'holiday.png').write_text('mine')
        with pytest.raises(SimulationError, match=r"'holiday\.png'"):
            fly(target, seed=2)
        assert read_description(target) == FlightDescription('meadow_day_near', 1, 1.0)

    def test_a_recording_that_was_not_simulated_is_refused(self, tmp_path: Path) -> None:
        target = fly(tmp_path / 'flight')
        (target / FLIGHT_FILE).unlink()
        with pytest.raises(SimulationError, match='no simulated flight'):
            fly(target)

    def test_a_file_or_link_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / 'file').write_text('x')
        (tmp_path / 'link').symlink_to(tmp_path / 'nowhere')
        for name in ('file', 'link'):
            with pytest.raises(SimulationError, match='is no folder'):
                fly(tmp_path / name)

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

    def test_progress_grows_to_the_end(self, tmp_path: Path) -> None:
        shares: list[float] = []
        flown = scene()
        record_flight(tmp_path / 'flight', flown, sensors(flown), shares.append)
        assert shares == sorted(shares)
        assert 0.0 < shares[0] < 0.1
        assert 0.95 < shares[-1] <= 1.0


@pytest.mark.parametrize(
    'text',
    [
        '',
        '[1, 2]',
        'scenario: x',
        'scenario: x\nseed: y\nseconds: 1\nsimulator: 1',
        '\0',
        '&a [*a]',
    ],
)
def test_a_damaged_description_is_none(text: str, tmp_path: Path) -> None:
    target = fly(tmp_path / 'flight')
    (target / FLIGHT_FILE).write_text(text)
    assert read_description(target) is None
