"""A run that is killed and started again says the same as one that was not."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from bag_fixtures import write_bag
from tiny_bundle import write_tiny_bundle
from truth_fixtures import recording_with_truth

# Each run starts an interpreter or two, which takes long on a machine with other work.
pytestmark = pytest.mark.timeout(600)
SUPPORT = Path(__file__).resolve().parents[3] / 'support'
SCRIPT = SUPPORT / 'compare_until_killed.py'
FLIGHTS, CASES = 2, 2 * 3


class Place:
    """Where a comparison is run, again and again."""

    def __init__(self, folder: Path) -> None:
        self.bundle = write_tiny_bundle(folder / 'tiny')
        self.flights, self.whole = folder / 'flights', folder / 'whole'
        for name in ('first', 'second'):
            write_bag(self.flights / name, messages=recording_with_truth(0.8))

    def start(self, out: Path) -> subprocess.Popen[bytes]:
        paths = [SUPPORT.parents[1], SUPPORT]
        environment = {**os.environ, 'PYTHONPATH': os.pathsep.join(map(str, paths))}
        arguments = [str(SCRIPT), str(self.bundle), str(self.flights), str(out)]
        return subprocess.Popen(
            [sys.executable, *arguments],
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )

    def finish(self, out: Path) -> None:
        process = self.start(out)
        _, messages = process.communicate(timeout=170)
        assert process.returncode == 0, messages.decode()


@pytest.fixture(scope='module')
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    return Place(tmp_path_factory.mktemp('killed'))


@pytest.fixture(scope='module')
def unbroken(place: Place) -> dict[str, bytes]:
    place.finish(place.whole)
    return report_files(place.whole)


def report_files(out: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in out.iterdir() if path.is_file()}


def outcomes(out: Path) -> list[Path]:
    return sorted(out.glob('cases/*/*.npz'))


@pytest.mark.parametrize('after', [1, CASES + 2], ids='after {} outcomes'.format)
def test_killed_and_started_again_the_report_is_the_same(
    after: int, place: Place, unbroken: dict[str, bytes], tmp_path: Path
) -> None:
    process = place.start(tmp_path)
    deadline = time.monotonic() + 120.0
    while len(outcomes(tmp_path)) < after and process.poll() is None:
        assert time.monotonic() < deadline
        threading.Event().wait(0.005)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate(timeout=60)
    kept = {path: path.stat().st_mtime_ns for path in outcomes(tmp_path)}
    assert len(kept) >= after
    place.finish(tmp_path)
    assert report_files(tmp_path) == unbroken
    assert len(outcomes(tmp_path)) == FLIGHTS * CASES
    assert all(path.stat().st_mtime_ns == stamp for path, stamp in kept.items())


def test_a_damaged_outcome_is_found_out_and_made_again(
    place: Place, unbroken: dict[str, bytes], tmp_path: Path
) -> None:
    shutil.copytree(place.whole, tmp_path, dirs_exist_ok=True)
    first, second, third = outcomes(tmp_path)[:3]
    first.write_bytes(first.read_bytes()[:-7])
    second.write_bytes(third.read_bytes())
    place.finish(tmp_path)
    assert report_files(tmp_path) == unbroken
