"""The processes of a graph: started, looked after, and gone when they should be."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from live_graph import abandoned, is_alive, wait_until

from mmedge_ros.ros.graph.description import NodeDescription
from mmedge_ros.ros.graph.middleware_files import left_behind, remove_unused, segments_of
from mmedge_ros.ros.graph.process_group import ProcessGroup, rotate

NODES = [NodeDescription('left', 'visualizer'), NodeDescription('right', 'visualizer')]
ALL_GONE_WITHIN = 3.0


class Watched:
    """A process group with everything it said."""

    def __init__(self, folder: Path, nodes: list[NodeDescription]) -> None:
        self.events: list[str] = []
        self.group = ProcessGroup(nodes, folder, (), self.events.append)

    def wait_until_up(self, names: tuple[str, ...] = ('left', 'right')) -> dict[str, int]:
        """Wait until nodes are so far that they have shared memory, and return their pids."""

        def up() -> dict[str, int]:
            self.group.watch()
            pids = {n: p for n, p in self.group.pids.items() if n in names and segments_of(p)}
            return pids if len(pids) == len(names) else {}

        found: dict[str, int] = wait_until(None, up)
        return found


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Watched]:
    found = Watched(tmp_path, NODES)
    with found.group:
        yield found


def segments_of_all(pids: dict[str, int]) -> set[Path]:
    """What the processes have mapped and this one has not."""
    return set().union(*map(segments_of, pids.values())) - segments_of(os.getpid())


def stop_takes(group: ProcessGroup) -> float:
    begun = time.monotonic()
    group.stop()
    return time.monotonic() - begun


def test_a_killed_node_is_started_again_and_a_stopped_group_leaves_nothing(
    watched: Watched,
) -> None:
    first = watched.wait_until_up()
    os.kill(first['left'], signal.SIGKILL)
    wait_until(None, lambda: len(watched.events) == 2, meanwhile=watched.group.watch)
    second = watched.wait_until_up()
    assert second['left'] != first['left']
    assert second['right'] == first['right']
    assert watched.events == [
        f'left ended by signal SIGKILL; see {watched.group.log_of("left")}',
        'left was started again',
    ]
    segments = segments_of_all(second)
    assert stop_takes(watched.group) < ALL_GONE_WITHIN
    assert not any(map(is_alive, second.values()))
    assert not abandoned(segments)
    assert watched.group.cpu_seconds > 0.1
    assert watched.group.peak_memory_mb > 20.0


def test_a_second_interrupt_cuts_the_patience_short(watched: Watched) -> None:
    pids = watched.wait_until_up()
    os.kill(pids['left'], signal.SIGSTOP)

    def impatient(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, impatient)
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    try:
        with pytest.raises(KeyboardInterrupt):
            watched.group.stop()
    finally:
        signal.signal(signal.SIGALRM, before)
    assert not any(map(is_alive, pids.values()))


def test_a_node_that_was_told_something_wrong_is_not_started_again(tmp_path: Path) -> None:
    wrong = NodeDescription('wrong', 'visualizer', {'image_transport': 'pigeon'})
    watched = Watched(tmp_path, [wrong])
    with watched.group as group:
        assert wait_until(None, group.watch) == ['wrong']
        assert group.last_words('wrong', 1) == (
            "visualizer: parameter 'image_transport' is 'pigeon'; choose one of raw, compressed"
        )
    assert watched.events == []


class TestSharedMemory:
    """Files like the middleware's, under a name no process uses."""

    @pytest.fixture
    def segment(self) -> Iterator[Path]:
        found = Path(f'/dev/shm/fastdds_test_of_mmedge_{os.getpid()}')
        for path in self.files(found):
            path.touch()
        yield found
        for path in self.files(found):
            path.unlink(missing_ok=True)

    @staticmethod
    def files(segment: Path) -> list[Path]:
        names = (segment.name, f'{segment.name}_el', f'sem.{segment.name}_mutex')
        return [segment.with_name(name) for name in names]

    def test_what_nobody_uses_is_removed_with_lock_and_semaphore(self, segment: Path) -> None:
        remove_unused({segment})
        assert not any(path.exists() for path in self.files(segment))

    def test_what_a_process_has_mapped_is_kept(self, segment: Path) -> None:
        import mmap

        segment.write_bytes(b'0' * mmap.PAGESIZE)
        with segment.open('r+b') as file, mmap.mmap(file.fileno(), 0):
            assert segment in segments_of(os.getpid())
            remove_unused({segment})
            assert all(path.exists() for path in self.files(segment))

    def test_what_an_unseen_process_holds_the_lock_of_is_kept(self, segment: Path) -> None:
        import fcntl

        with self.files(segment)[1].open('r+b') as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            remove_unused({segment})
            assert all(path.exists() for path in self.files(segment))

    def test_only_files_that_have_been_there_for_a_while_count_as_left_behind(
        self, segment: Path
    ) -> None:
        assert segment not in left_behind()
        old = time.time() - 60.0
        os.utime(segment, (old, old))
        assert segment in left_behind()


def test_logs_are_begun_anew_before_they_grow_without_bound(tmp_path: Path) -> None:
    log = tmp_path / 'node.log'
    rotate(log)
    with log.open('ab') as node:
        node.write(b'first flight')
        node.flush()
        rotate(log, 100)
        assert log.read_bytes() == b'first flight'
        rotate(log, 5)
        assert (log.read_bytes(), (tmp_path / 'node.log.1').read_bytes()) == (b'', b'first flight')
        node.write(b'and on')
    assert log.read_bytes() == b'and on'
