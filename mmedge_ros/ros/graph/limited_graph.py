"""The nodes of a graph under a limit of the processor that can be changed while they run.

They live below a `graph_host`, and `mmedge limit` holds that tree; whoever plays, records and
limits is outside of it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from mmedge_ros.ros.graph.description import NodeDescription
from mmedge_ros.ros.graph.host import host_command, write_host_file

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

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
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
        told = [line for line in lines if 'mmedge limit' not in line]
        return told[-1] if told else 'the graph ended without a word'
