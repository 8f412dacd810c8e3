"""Show on standard error how far a step of `./mmedge` is, until terminated.

As a program: LOG PARENT, the log of pip or CMake in the environment that is being made, and the
process without which this one ends. On a terminal one moving line; elsewhere a line now and then.
Needs the standard library alone.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TextIO

_PERIOD, _PLAIN_PERIOD = 0.5, 15.0
_CLEAR_LINE = '\r\x1b[K'
_BUILT = re.compile(r'^\[(\d+)/(\d+)\]', re.MULTILINE)
_TO_INSTALL = re.compile(r'^Installing collected packages: (.*)', re.MULTILINE)


class StepProgress:
    """How far pip or CMake is, by its log and by what lies in the environment."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self._before = self._installed()

    def words(self) -> str:
        """Say how far it is; '' while nothing is known."""
        text = self._log.read_text(errors='replace') if self._log.exists() else ''
        built = _BUILT.findall(text)
        if built:
            return f'{built[-1][0]} of {built[-1][1]} files built'
        if '\nSuccessfully installed' in text:
            return 'installed, almost done'
        to_install = _TO_INSTALL.search(text)
        if to_install:
            count = len(to_install[1].split(','))
            done = min(count, max(0, self._installed() - self._before))
            return f'{done} of {count} packages installed'
        packages = len(re.findall(r'^Collecting ', text, re.MULTILINE))
        if not packages:
            return ''
        plural = '' if packages == 1 else 's'
        return f'{packages} package{plural} looked up, {self._fetched() / 1e6:.0f} MB fetched'

    def _installed(self) -> int:
        return sum(1 for _ in self._log.parent.glob('lib/python*/site-packages/*.dist-info'))

    def _fetched(self) -> int:
        """Bytes in the files that pip has downloaded or is downloading."""
        size = 0
        for path in self._log.parent.glob('tmp/pip-unpack-*/*'):
            try:
                size += path.stat().st_size
            except OSError:  # removed meanwhile
                continue
        return size


def show(
    progress: StepProgress, stream: TextIO, seconds: float, last: float, width: int = 80
) -> float:
    """Show how far it is; returns when (s) a line was last written without a terminal."""
    words = progress.words()
    if stream.isatty():
        line = ', '.join(filter(None, [words, f'{seconds:.0f} s']))
        stream.write(f'{_CLEAR_LINE}    {line}'[: width + len(_CLEAR_LINE) - 1])
    elif words and seconds - last >= _PLAIN_PERIOD:
        stream.write(f'mmedge: {words}, {seconds:.0f} s\n')
        last = seconds
    stream.flush()
    return last


def watch(log: Path, stream: TextIO, goes_on: Callable[[], bool]) -> None:
    """Show how far the step is until its parent process is gone."""
    progress, begun, last = StepProgress(log), time.monotonic(), 0.0
    while goes_on():
        width = shutil.get_terminal_size().columns
        last = show(progress, stream, time.monotonic() - begun, last, width)
        time.sleep(_PERIOD)


def main() -> None:
    """Watch the log named as argument."""
    log, parent = Path(sys.argv[1]), int(sys.argv[2])

    def end(*_: object) -> None:
        if sys.stderr.isatty():
            os.write(sys.stderr.fileno(), _CLEAR_LINE.encode())
        os._exit(0)

    signal.signal(signal.SIGTERM, end)
    watch(log, sys.stderr, lambda: os.getppid() == parent)


if __name__ == '__main__':
    main()
