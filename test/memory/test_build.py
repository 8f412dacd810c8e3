"""From a recorded flight to its memory, and from words to what it shows."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from mmedge_lab.simulation.appearance import looks_of
from mmedge_lab.simulation.build import build_world
from mmedge_ros.commands.memory import memory_app
from mmedge_ros.core.data_types import Box
from mmedge_ros.geometry.box_overlap import overlap
from mmedge_ros.memory import FlightMemoryError, build
from mmedge_ros.memory.build import BuiltMemory, build_memory
from mmedge_ros.memory.moment import ViewKind
from mmedge_ros.memory.store import MemoryReader
from mmedge_ros.memory.views import picture_of
from mmedge_ros.replay.recording import Recording

MODELS = Path(__file__).resolve().parents[2] / 'models'


@pytest.fixture(scope='module')
def flight(street_flight: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(shutil.copytree(street_flight, tmp_path_factory.mktemp('memory') / 'flight'))


@pytest.fixture(scope='module')
def built(flight: Path) -> BuiltMemory:
    return build_memory(str(flight), 'flight_people')


@pytest.fixture
def memory(built: BuiltMemory) -> Iterator[MemoryReader]:
    with MemoryReader(built.folder) as reader:
        yield reader


def beginning(flight: Path, cut: Path) -> Path:
    """Write the first third of a recording."""
    (whole,) = flight.glob('*.mcap')
    cut.write_bytes(whole.read_bytes()[: whole.stat().st_size // 3])
    return cut


def run(*words: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(memory_app, list(words))
    return result.exit_code, result.stdout, result.stderr


def test_everything_that_was_tracked_is_kept_with_pictures_places_and_times(
    flight: Path, built: BuiltMemory, memory: MemoryReader
) -> None:
    assert built.folder == flight.with_name('flight.memory')
    table = memory.table()
    assert len(table) == built.items
    assert {'person', 'car'} <= set(table.texts['label'])
    items = [table.item(row).item for row in range(len(table))]
    tracked = [item for item in items if item.kind is ViewKind.TRACK]
    assert len({item.track_id for item in tracked}) == built.tracks >= 5
    assert sum(item.kind is ViewKind.KEY_FRAME for item in items) == built.key_frames >= 1
    for item in tracked:
        assert 0 <= item.bag_offset_ns <= 3_100_000_000
        assert np.isfinite(item.position[:2]).all()
        assert np.isfinite(item.drone).all()
        assert item.vector.any()
    number = int(table.integers['id'][table.texts['label'] == 'person'][0])
    thumbnail = picture_of(memory.thumbnail(number))
    assert thumbnail is not None
    assert max(thumbnail.shape[:2]) <= 64


@pytest.mark.parametrize('colour', ['white', 'green'])
def test_words_bring_up_what_looks_so_and_others_are_far_behind(
    flight: Path, built: BuiltMemory, memory: MemoryReader, colour: str
) -> None:
    looks = looks_of(build_world('street_day_near', 5, 3.0).movers)
    code, out, err = run('search', f'a {colour} car', '--flight', str(flight))
    assert code == 0
    first = int(out.splitlines()[1].split()[0])
    table = memory.table()
    item = table.item(int(np.flatnonzero(table.integers['id'] == first)[0])).item
    with Recording(flight) as recording:
        truth = recording.truth()
    frame = truth.frame_at(item.stamp_ns) if truth else None
    assert frame is not None
    boxes = [overlap(item.box, Box(*box)) for box in np.nan_to_num(frame.boxes)]
    look = looks[int(frame.ids[int(np.argmax(boxes))])]
    assert (look.label, look.colour) == ('car', colour)
    scores = [float(line.split()[-1]) for line in out.splitlines() if ' car ' in line]
    assert scores[0] - max(scores[1:]) > 3.0
    assert 'none of them says that something was not there' in err


def test_a_damaged_memory_is_said_before_the_flight_is_replayed(
    flight: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = tmp_path / 'other'
    copy.symlink_to(flight)
    copy.with_name('other.memory').mkdir()
    copy.with_name('other.memory').joinpath('memory.sqlite').write_bytes(b'nothing of ours' * 99)
    monkeypatch.setattr(build, 'follow_everything', None)
    with pytest.raises(FlightMemoryError, match='damaged'):
        build_memory(str(copy), 'flight_people')


def test_a_memory_of_another_bundle_is_replaced_and_searched_by_its_own(
    flight: Path, built: BuiltMemory, tmp_path: Path
) -> None:
    other = tmp_path / 'my_people'
    shutil.copytree(MODELS / 'flight_people', other)
    with (other / 'manifest.yaml').open('a') as manifest:
        manifest.write('note: a copy\n')
    copy = beginning(flight, tmp_path / 'other.mcap')
    shutil.copytree(built.folder, tmp_path / 'other.mcap.memory')
    assert build_memory(str(copy), str(other)).folder == tmp_path / 'other.mcap.memory'
    code, _, err = run('search', 'car', '--flight', str(copy))
    assert code == 1
    assert 'name it with --encoder' in err
    code, out, _ = run('search', 'car', '--flight', str(copy), '--encoder', str(other))
    assert code == 0
    assert ' car ' in out


def test_a_broken_recording_is_kept_up_to_the_break_and_that_is_said(
    flight: Path, tmp_path: Path
) -> None:
    broken = beginning(flight, tmp_path / 'broken.mcap')
    code, out, err = run('build', str(broken), '--detector', 'flight_people')
    assert code == 0
    assert 'broken after' in err
    with MemoryReader(Path(out.strip())) as reader:
        assert len(reader.table())
