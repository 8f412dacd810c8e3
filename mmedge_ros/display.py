"""What a person sees in the terminal; everything but results goes to standard error."""

from __future__ import annotations

import time
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from mmedge_ros.data_types import CAMERA, NS_PER_S, Decision

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
    """One line that tells how far a run is and what it sees; plain lines without a terminal."""

    def __init__(self, title: str) -> None:
        self._title = one_line(title)
        self._progress = Progress(
            TextColumn('{task.description}', markup=False),
            BarColumn(bar_width=24),
            TextColumn('{task.percentage:>3.0f} %'),
            TextColumn('{task.fields[state]}', markup=False),
            TimeElapsedColumn(),
            console=console,
            transient=True,
        )
        self._task = self._progress.add_task(self._title, total=1.0, state='starting')
        self._plain = not console.is_terminal
        self._last = 0.0

    def __enter__(self) -> StatusLine:
        if self._plain:
            say(f'{self._title}: starting')
            self._last = time.monotonic()
        else:
            self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if not self._plain:
            self._progress.stop()

    def show(self, share: float, decision: Decision | None) -> None:
        """Show the share done (0..1) and the newest decision."""
        self.advance(share, describe(decision))

    def advance(self, share: float, state: str = '') -> None:
        """Show the share done (0..1) and what there is to say of it."""
        if not self._plain:
            self._progress.update(self._task, completed=share, state=state)
            return
        now = time.monotonic()
        if now - self._last >= _PLAIN_PERIOD:
            self._last = now
            say(f'{self._title}: {100 * share:.0f} %  {state}')


def describe(decision: Decision | None) -> str:
    """Say in a few words what a decision holds."""
    if decision is None:
        return 'waiting for the first decision'
    count = len(decision.tracks)
    words = [f'{count} track{"" if count == 1 else "s"}', f'{1e3 * decision.latency:.0f} ms']
    if CAMERA in decision.newest_ns:
        age = (decision.published_ns - decision.newest_ns[CAMERA]) / NS_PER_S
        words.append(f'camera age {1e3 * age:.0f} ms')
    if decision.lost:
        words.append(f'no {" and no ".join(decision.lost)}')
    return ', '.join(words)
