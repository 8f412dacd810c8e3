"""What flies starts from a copy of the package that has no lab."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from live_graph import Bystander, wait_until

ROOT = Path(__file__).resolve().parents[2]
NODES = sorted(path.stem for path in (ROOT / 'mmedge_ros/ros/nodes').glob('[!_]*.py'))


@pytest.fixture(scope='module')
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp('without_the_lab')
    leave = shutil.ignore_patterns('lab', '__pycache__')
    for name in ('mmedge_ros', 'config', 'launch', 'msg'):
        shutil.copytree(ROOT / name, folder / name, ignore=leave)
    return folder


def environment(copy: Path) -> dict[str, str]:
    return {**os.environ, 'PYTHONPATH': str(copy), 'NO_COLOR': '1', 'ROS_LOG_DIR': str(copy)}


@contextmanager
def command(copy: Path, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run `mmedge` from the copy, and end it at the end."""
    process = subprocess.Popen(
        [sys.executable, '-P', '-m', 'mmedge_ros.commands.main', *arguments],
        env=environment(copy),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    try:
        yield process
    finally:
        process.terminate()
        process.communicate(timeout=30.0)


def test_every_node_can_be_imported(copy: Path) -> None:
    names = ', '.join(f'mmedge_ros.ros.nodes.{node}' for node in NODES)
    code = f'import sys, {names}; print(*[m for m in sys.modules if "mmedge_lab" in m])'
    done = subprocess.run(
        [sys.executable, '-P', '-c', code],
        env=environment(copy),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == ''


def test_up_decides_and_record_records_it(
    copy: Path, little_bag: Path, detector: Path, bystander: Bystander, tmp_path: Path
) -> None:
    out = tmp_path / 'flight'
    graph = ('--loop', '--bag', str(little_bag), '--detector', str(detector))
    with ExitStack() as running:
        running.enter_context(command(copy, 'up', *graph, '--logs', str(tmp_path)))
        bystander.wait_for_decisions(3)
        running.enter_context(command(copy, 'record', str(out)))
        wait_until(bystander.executor, lambda: list(out.glob('*.mcap')))
        bystander.wait_for_decisions(3)


@pytest.mark.timeout(120)
def test_launch_files_of_drone_and_perception_describe_their_graphs(copy: Path) -> None:
    paths = f'{copy} {ROOT / "test/support"}'
    done = subprocess.run(
        [
            *(sys.executable, '-P', '-m', 'pytest', '-q', '-p', 'no:cacheprovider'),
            *('-o', f'pythonpath={paths}', '-k', 'drone or perception'),
            'test/ros/test_launch_files.py',
        ],
        cwd=ROOT,
        env=environment(copy),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:]
    assert ' passed' in done.stdout
