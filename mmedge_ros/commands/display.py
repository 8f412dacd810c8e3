"""What a person sees in the terminal; everything but results goes to standard error."""

from __future__ import annotations

import time
from datetime import timedelta

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from mmedge_ros.commands import stopping
from mmedge_ros.core.data_types import CAMERA, NS_PER_S, Decision

console = Console(stderr=True, highlight=False)

_PLAIN_PERIOD = 5.0


def say(sentence: str) -> None:
    """Say something as it is: paths may hold what would otherwise be markup."""
    console.print(one_line(sentence), markup=False, emoji=False, soft_wrap=True)


def one_line(text: str) -> str:
    """Make a foreign text one line without what a terminal would obey instead of show."""
    return ''.join(c if c.isprintable() else '\N{REPLACEMENT CHARACTER}' for c in _joined(text))


def _joined(text: str) -> str:
    return ' '.join(line.strip() for line in text.splitlines() if line.strip())


class StatusLine:
    """One line with a run's progress and what it sees; plain lines without a terminal.

    How far is a share, or the time it has taken where there is no end in sight.
    """

    def __init__(self, title: str) -> None:
        self._title = one_line(title)
        self._progress = Progress(
            TextColumn('{task.description}', markup=False),
            BarColumn(bar_width=24),
            TextColumn('{task.fields[done]}', markup=False),
            TextColumn('{task.fields[state]}', markup=False),
            TimeElapsedColumn(),
            console=console,
            transient=True,
        )
        self._task = self._progress.add_task(self._title, total=None, done='', state='starting')
        self._plain = not console.is_terminal
        self._begun = self._last = time.monotonic()

    def __enter__(self) -> StatusLine:
        self._begun = time.monotonic()
        if self._plain:
            say(f'{self._title}: starting')
            self._last = self._begun
        else:
            self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        if not self._plain:
            self._progress.stop()

    def show(
        self, share: float | None, decision: Decision | None, rate: float | None = None
    ) -> None:
        """Show the share done (0..1, None without an end), the newest decision and their rate."""
        self.advance(share, describe(decision, rate))

    def advance(self, share: float | None, state: str = '') -> None:
        """Show the share done (0..1, None without an end) and what there is to say of it."""
        stopping.check()
        if not self._plain:
            if share is not None:
                done = f'{100 * share:>3.0f} %'
                self._progress.update(self._task, total=1.0, completed=share, done=done)
            self._progress.update(self._task, state=state)
            return
        now = time.monotonic()
        if now - self._last >= _PLAIN_PERIOD:
            self._last = now
            elapsed = timedelta(seconds=int(now - self._begun))
            done = str(elapsed) if share is None else f'{100 * share:.0f} %'
            say(f'{self._title}: {done}  {state}')


def describe(decision: Decision | None, rate: float | None = None) -> str:
    """Say in a few words what a decision holds, and how many of them come in a second."""
    if decision is None:
        return 'waiting for the first decision'
    count = len(decision.tracks)
    words = [f'{count} track{"" if count == 1 else "s"}']
    if rate is not None:
        words.append(f'{rate:.1f} decisions/s')
    words.append(f'latency {1e3 * decision.latency:.0f} ms')
    if CAMERA in decision.newest_ns:
        age = (decision.published_ns - decision.newest_ns[CAMERA]) / NS_PER_S
        words.append(f'camera age {1e3 * age:.0f} ms')
    if decision.lost:
        words.append(f'no {" and no ".join(decision.lost)}')
    return ', '.join(words)
