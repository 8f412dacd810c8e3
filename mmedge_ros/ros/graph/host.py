"""A process whose children are the nodes of a graph, so that all of them can be limited at once.

``python -m mmedge_ros.ros.graph.host DESCRIPTION.json``, as `write_host_file` wrote it. Ends
when it is told to, when a node ends that cannot go on, or with the process that asked for it.
"""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import psutil

from mmedge_ros.ros.graph.description import NodeDescription
from mmedge_ros.ros.graph.process_group import ProcessGroup

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
    return [sys.executable, '-m', 'mmedge_ros.ros.graph.host', str(path)]


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
                sys.exit(f'{name} ended: {group.last_words(name, 1) or "without a word"}')


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == '__main__':
    main()
