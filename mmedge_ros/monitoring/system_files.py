"""Small files of the kernel, below a root that tests may choose; whatever fails is unknown."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

_T = TypeVar('_T')

# Far more than any file we read holds, except for counters of interrupts in /proc/stat.
_LONGEST = 65536
# Readings after which sources are looked for anew: a driver may have been loaded again.
_LOOK_AGAIN = 60
# The same where nothing is found; looking costs more than reading.
_LOOK_AGAIN_SOON = 5


class SystemFiles:
    """Reads files of /proc and /sys.

    :param root: the folder that stands for /
    """

    def __init__(self, root: str | Path = '/') -> None:
        self.root = Path(root)
        self.prefix = str(self.root).rstrip('/') + '/'

    def text(self, path: str) -> str:
        """Return the content without white space around it, '' if it cannot be read."""
        try:
            with open(self.prefix + path, 'rb') as file:  # noqa: PTH123  # read often
                return file.read(_LONGEST).decode('utf-8', 'replace').strip()
        except OSError:
            return ''

    def number(self, path: str, scale: float = 1.0) -> float:
        """Return the number in a file times ``scale``, NaN if there is none."""
        try:
            value = float(self.text(path)) * scale
        except ValueError:
            return math.nan
        return value if math.isfinite(value) else math.nan

    def matching(self, *patterns: str) -> list[str]:
        """Return the paths, relative to the root, that match; sorted, without repetitions."""
        matches: dict[str, None] = {}
        for pattern in patterns:
            try:
                paths = sorted(str(path) for path in self.root.glob(pattern))
            except OSError:
                continue  # a folder that vanished while it was listed
            matches.update(dict.fromkeys(path.removeprefix(self.prefix) for path in paths))
        return list(matches)


class Discovered(Generic[_T]):
    """Something that was looked for, kept until it is to be looked for again."""

    def __init__(self, look: Callable[[], _T]) -> None:
        self._look = look
        self._result: _T | None = None
        self._readings = 0
        self._gone = False

    def get(self) -> _T:
        """Return what was found, after a new look now and then."""
        keep = _LOOK_AGAIN_SOON if self._gone else _LOOK_AGAIN
        if self._result is None or self._readings >= keep:
            self._result = self._look()
            self._readings, self._gone = 0, False
        self._readings += 1
        return self._result

    def forget(self) -> None:
        """Look again soon: what was found has gone, or nothing was found."""
        self._gone = True
