"""Writes a flight memory, batch by batch; a process of its own, so that it can be killed.

PYTHONPATH=. python test/support/remember_until_killed.py FOLDER ROLE

``between``: stops after two batches of three views. ``within``: stops in the middle of the third.
``steadily``: goes on for ever. Says a line for every batch that is kept.
"""

from __future__ import annotations

import sys
from pathlib import Path

from hand_made_moments import HEADER, view

from mmedge_ros.memory.store import MemoryWriter
from mmedge_ros.memory.store_file import transaction


def main(folder: Path, role: str) -> None:
    with MemoryWriter(folder, HEADER) as writer:
        batch = 0
        while role == 'steadily' or batch < 2:
            writer.add([view(batch + 1, seconds=part) for part in (1.0, 2.0, 3.0)])
            batch += 1
            print(batch, flush=True)
        with transaction(writer._connection):
            if role == 'within':
                writer._connection.execute('UPDATE items SET track = 99')
            print('stopped', flush=True)
            sys.stdin.read()


if __name__ == '__main__':
    main(Path(sys.argv[1]), sys.argv[2])
