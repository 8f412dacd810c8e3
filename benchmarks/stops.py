"""How graphs end that are interrupted at random moments: Ctrl-C, again and again.

    .venv/bin/python benchmarks/stops.py --stops 40 --up
    PYTHONPATH=LAUNCH:LAUNCH_ROS:OTHERS .venv/bin/python benchmarks/stops.py --stops 40

The first starts `./mmedge up`, the second a launch file, where launch and launch_ros are on the
path (as on ROS machines; see test/ros/test_real_launch.py for others). A stop is clean if all ends
in time, no process is left and nothing says Traceback. Prints each stop that is not, and how many
were; the logs of these stay in the folder --out. While launch is being imported Python answers
with a traceback of its own: such stops are counted apart.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import psutil

ROOT = Path(__file__).resolve().parents[1]
# All processes of a stop have it, whatever their session.
MARK = 'MMEDGE_STOP'
# As `ros2 launch`. Where no terminal is, launch interrupts the nodes by itself.
PROGRAM = """
import sys
from launch import LaunchDescription, LaunchService
from launch.actions import IncludeLaunchDescription
from launch.launch_description_sources import PythonLaunchDescriptionSource
source = PythonLaunchDescriptionSource(sys.argv[1])
service = LaunchService(noninteractive=sys.argv[2] == 'True')
service.include_launch_description(LaunchDescription([IncludeLaunchDescription(source)]))
sys.exit(service.run())
"""
PATIENCE = 30.0
# Of launch, once it runs.
FIRST_WORDS = 'All log files can be found below'


class Stop(NamedTuple):
    """One launch that was interrupted: after how long, and how it ended (s)."""

    after: float
    took: float
    code: int | None
    left: int
    tracebacks: int
    of_nodes: int
    has_begun: bool

    @property
    def is_clean(self) -> bool:
        return self.code is not None and not self.left and not self.tracebacks


def command_of(given: argparse.Namespace) -> list[str]:
    """Return what is started."""
    if given.up:
        return [str(ROOT / 'mmedge'), 'up', '--logs', str(given.out / 'logs')]
    launched = str(ROOT / 'launch' / given.file)
    return [sys.executable, '-c', PROGRAM, launched, str(not given.interactive)]


def interrupted(command: list[str], after: float, log: Path, *, is_alone: bool) -> Stop:
    """Start a command, press Ctrl-C after so long, and look at what is left.

    :param is_alone: the signal goes to the command and not to what it has started
    """
    with log.open('wb') as file:
        launch = subprocess.Popen(
            command,
            stdout=file,
            stderr=file,
            start_new_session=True,
            env={**os.environ, MARK: log.name},
        )
    time.sleep(after)
    (os.kill if is_alone else os.killpg)(launch.pid, signal.SIGINT)
    begun = time.monotonic()
    code: int | None = None
    try:
        code = launch.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        launch.kill()
    took = time.monotonic() - begun
    left = [p for p in psutil.process_iter() if _is_of(p, log.name)]
    for process in left:
        process.kill()
    text = log.read_text(errors='replace')
    lines = [line for line in text.splitlines() if 'Traceback' in line]
    # launch puts the name of a node before what it says.
    of_nodes = sum(line.startswith('[') for line in lines)
    return Stop(after, took, code, len(left), len(lines), of_nodes, FIRST_WORDS in text)


def _is_of(process: psutil.Process, mark: str) -> bool:
    try:
        is_dead = process.status() == psutil.STATUS_ZOMBIE
        return process.environ().get(MARK) == mark and not is_dead
    except (OSError, psutil.Error):
        return False


def main() -> None:
    """Stop launches, and report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--stops', type=int, default=40)
    parser.add_argument('--up', action='store_true', help='mmedge up, not a launch file')
    parser.add_argument('--file', default='perception.launch.py')
    parser.add_argument('--earliest', type=float, default=0.2)
    parser.add_argument('--latest', type=float, default=6.0)
    parser.add_argument('--seed', type=int, default=0)
    parser.add_argument('--interactive', action='store_true', help='as from a terminal')
    parser.add_argument('--out', type=Path, default=Path('out/stops'))
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    # In the background of a shell Ctrl-C is ignored, and what is started there ignores it as well.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    draw = random.Random(given.seed)
    stops = []
    for number in range(given.stops):
        after = draw.uniform(given.earliest, given.latest)
        log = given.out / f'{number:03d}.log'
        is_alone = given.up and not given.interactive
        stop = interrupted(command_of(given), after, log, is_alone=is_alone)
        stops.append(stop)
        if stop.is_clean:
            log.unlink()
        else:
            print(f'{log}: {stop}', flush=True)
    begun = [stop for stop in stops if stop.has_begun or given.up]
    clean = [stop for stop in begun if stop.is_clean]
    if len(begun) < len(stops):
        print(f'{len(stops) - len(begun)} stopped while launch was imported')
    print(f'{len(clean)} of {len(begun)} clean')
    if clean:
        print(f'of these the slowest ended within {max(stop.took for stop in clean):.2f} s')
    print(f'{sum(stop.of_nodes for stop in stops)} tracebacks of nodes')


if __name__ == '__main__':
    main()
