"""A processor share that changes over time, as recorded or made up."""

from __future__ import annotations

import contextlib
import math
import threading
from bisect import bisect_right
from collections.abc import Iterable
from pathlib import Path

from mmedge_ros.core.untrusted_files import read_bounded, shown
from mmedge_ros.monitoring import MonitoringError

_MOST_BYTES = 10_000_000
SMALLEST_PERCENT = 1.0


class LimitTrace:
    """Shares in 0..1 from the instants on at which they begin to hold, in seconds."""

    def __init__(self, begins: list[float], shares: list[float]) -> None:
        self._begins = begins
        self._shares = shares

    def share_at(self, elapsed: float) -> float:
        """Return the share ``elapsed`` seconds after the start; the last one holds on."""
        place = bisect_right(self._begins, elapsed)
        return self._shares[max(place - 1, 0)]


class StreamedShare(LimitTrace):
    """A share read while it is kept: percentages, one per line.

    The last one holds on, also where lines come to an end; what is no percentage is left out.

    :param lines: blocks until there is one more
    """

    def __init__(self, lines: Iterable[str]) -> None:
        super().__init__([0.0], [1.0])
        self._lines = lines
        threading.Thread(target=self._listen, name='share', daemon=True).start()

    def _listen(self) -> None:
        for line in self._lines:
            with contextlib.suppress(ValueError, MonitoringError):
                self._shares = [_share(float(line), 'the limit')]


def constant_share(percent: float) -> LimitTrace:
    """Return a share that never changes.

    :raises MonitoringError: outside 1 to 100 %
    """
    return LimitTrace([0.0], [_share(percent, 'the limit')])


def read_trace(path: Path) -> LimitTrace:
    """Read lines of ``seconds,percent``, ascending in time; a header and # lines may be there.

    :raises MonitoringError: naming the line
    """
    raw = read_bounded(path, _MOST_BYTES, MonitoringError, 'give a text of seconds,percent')
    try:
        text = raw.decode()
    except ValueError as err:
        raise MonitoringError(f'{path}: is not a text of seconds,percent') from err
    begins: list[float] = []
    shares: list[float] = []
    for number, line in enumerate(text.splitlines(), start=1):
        where = f'{path}, line {number}'
        content = line.partition('#')[0].strip()
        if not content:
            continue
        try:
            seconds, percent = (float(part) for part in content.split(','))
        except ValueError as err:
            if not begins:
                continue  # the header
            raise MonitoringError(f'{where}: {shown(content)} is not seconds,percent') from err
        if not 0.0 <= seconds < math.inf or (begins and seconds <= begins[-1]):
            raise MonitoringError(f'{where}: {seconds:g} s is not later than the line before')
        begins.append(seconds)
        shares.append(_share(percent, where))
    if not begins:
        raise MonitoringError(f'{path}: holds no line of seconds,percent')
    return LimitTrace(begins, shares)


def _share(percent: float, where: str) -> float:
    if not SMALLEST_PERCENT <= percent <= 100.0:
        raise MonitoringError(
            f'{where}: {percent:g} %; a share of the machine is {SMALLEST_PERCENT:g} to 100 %'
        )
    return percent / 100.0
