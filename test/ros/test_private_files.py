"""What other users of the machine can read: files as the umask says, shared memory never."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from hand_made_moments import memory_of, view
from live_graph import wait_until

from mmedge_ros.ros.graph.description import NodeDescription
from mmedge_ros.ros.graph.middleware_files import segments_of
from mmedge_ros.ros.graph.process_group import ProcessGroup
from mmedge_ros.ros.recording.writer import BagWriter
from mmedge_ros.transport.picture_ring import RingWriter
from mmedge_ros.transport.shared_segment import FOLDER


@pytest.fixture(params=[0o022, 0o077], ids=oct)
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    """The umask of this process and of those it starts."""
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def modes(paths: set[Path]) -> set[int]:
    return {stat.S_IMODE(path.stat().st_mode) for path in paths}


def below(folder: Path) -> set[Path]:
    return {path for path in folder.rglob('*') if path.is_file()}


def folders(folder: Path) -> set[Path]:
    return {folder, *(path for path in folder.rglob('*') if path.is_dir())}


def test_pictures_in_the_ring_are_their_users_alone(umask: int) -> None:
    writer = RingWriter(1000)
    try:
        assert modes({FOLDER / writer.name}) == {0o600}
    finally:
        writer.close()


def test_memories_and_recordings_are_as_open_as_the_umask_lets_them(
    umask: int, tmp_path: Path
) -> None:
    out = tmp_path / 'out'
    memory = memory_of(out / 'flight.memory', view(1))
    BagWriter(out / 'flight').close()
    assert modes(below(out)) == {0o666 & ~umask}
    assert modes(folders(out)) == {0o777 & ~umask}
    memory.close()


@pytest.mark.parametrize('umask', [0o022], ids=oct, indirect=True)
def test_messages_in_shared_memory_and_logs_of_a_node_process(
    umask: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A node maps what is left of others of its domain that were killed a moment ago.
    monkeypatch.setenv('ROS_DOMAIN_ID', '101')
    out = tmp_path / 'logs'
    with ProcessGroup([NodeDescription('picture', 'visualizer')], out) as group:

        def segments() -> set[Path]:
            group.watch()
            return segments_of(group.pids['picture']) - segments_of(os.getpid())

        wait_until(None, lambda: segments() and modes(segments()) == {0o600})
        assert modes(below(out)) == {0o666 & ~umask}
        assert modes(folders(out)) == {0o777 & ~umask}
