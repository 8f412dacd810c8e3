"""The nodes of a graph under a limit of the processor that can be changed while they run.

They are children of this module, run as a program, and `mmedge limit` holds that tree; player,
recorder and limiter are outside of it.
"""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import psutil

from mmedge_ros.ros.graph.description import NodeDescription
from mmedge_ros.ros.graph.process_group import ProcessGroup

_GRACE = 6.0


class LimitedGraph:
    """Starts nodes below a limiter; a context manager that ends them all.

    :param folder: of logs and parameters
    """

    def __init__(self, nodes: Sequence[NodeDescription], folder: Path) -> None:
        self._file = write_host_file(nodes, folder)
        self._log = folder / 'graph_host.log'
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> LimitedGraph:
        limiter = [sys.executable, '-m', 'mmedge_ros.commands.main', 'limit', '--trace', '-', '--']
        with self._log.open('wb') as log:
            self._process = subprocess.Popen(
                [*limiter, *host_command(self._file)],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                text=True,
                env={**os.environ, 'NO_COLOR': '1'},
                start_new_session=True,
            )
        return self

    def __exit__(self, *_: object) -> None:
        process = self._process
        if process is None:
            return
        process.terminate()
        try:
            process.wait(_GRACE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def limit(self, percent: float) -> None:
        """Let all nodes together have at most so much of the machine."""
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.write(f'{percent:g}\n')
            self._process.stdin.flush()

    def problem(self) -> str:
        """Say why the graph has ended; '' while it runs."""
        if self._process is None or self._process.poll() is None:
            return ''
        lines = self._log.read_text(errors='replace').strip().splitlines()
        own = [line for line in lines if 'mmedge limit' not in line]
        return own[-1] if own else 'the graph ended without a message'


_LOOK = 0.2


def write_host_file(nodes: Sequence[NodeDescription], folder: Path) -> Path:
    """Write what a host is to start, for the calling process, and return the file's path.

    :param folder: of logs and parameters, made where it is missing
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / 'graph.json'
    content = {
        'asker': os.getpid(),
        'folder': str(folder),
        'nodes': [dataclasses.asdict(node) for node in nodes],
    }
    path.write_text(json.dumps(content))
    return path


def host_command(path: Path) -> list[str]:
    """Return the command that starts what a file describes."""
    return [sys.executable, '-m', 'mmedge_ros.ros.graph.limited_graph', str(path)]


def main() -> None:
    """Run the nodes of the file on the command line."""
    content = json.loads(Path(sys.argv[1]).read_text())
    nodes = [NodeDescription(**node) for node in content['nodes']]
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: ended.set())
    with ProcessGroup(nodes, Path(content['folder']), on_event=_say) as group:
        while not ended.wait(_LOOK) and psutil.pid_exists(content['asker']):
            for name in group.watch():
                sys.exit(f'{name} ended: {group.last_words(name, 1) or "without a message"}')


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == '__main__':
    main()
