"""Bricks: networks that are loaded, run and released on their own; what they do and cost."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import psutil

from mmedge_ros.core.untrusted_files import is_number
from mmedge_ros.encoding import EncodingError

FULL_PRECISION = 'fp32'
CPU = 'cpu'
FUSION, RECOGNISER = 'fusion', 'recogniser'
# What served within so long (s) is said to be running.
_LATELY = 1.0
_REMEDY = 'measure again (mmedge profile)'
_MOST = 1e9
# Share of the newest run in the mean.
_NEWEST = 0.1


class BrickState(IntEnum):
    """What a network is doing; the values are those of BrickStatus.msg."""

    RELEASED = 0
    LOADING = 1
    RESIDENT = 2
    RUNNING = 3
    FAILED = 4


@dataclass(frozen=True)
class BrickStatus:
    """A brick on a device: ``load_time`` and ``run_time`` (s, NaN unknown), ``memory`` (bytes).

    RUNNING says that it served lately; ``memory`` is what loading it took, 0 where unknown.
    ``problem`` says why it FAILED.
    """

    name: str
    device: str = CPU
    precision: str = FULL_PRECISION
    state: BrickState = BrickState.RELEASED
    load_time: float = math.nan
    run_time: float = math.nan
    memory: int = 0
    problem: str = ''

    def words(self) -> str:
        """Say it as diagnostics do."""
        words = self.state.name.lower()
        if math.isfinite(self.load_time):
            words += f', loaded in {1e3 * self.load_time:.0f} ms'
            words += f' with {self.memory / 1e6:.0f} MB' if self.memory else ''
        if math.isfinite(self.run_time):
            words += f', {1e3 * self.run_time:.1f} ms a run'
        return f'{words}: {self.problem}' if self.problem else words


def brick_name(modality: str, level: str) -> str:
    """Return the name of a level of a modality; '' stands for a network that serves all levels."""
    return f'{modality}.{level}' if level else modality


class RunTime:
    """The usual duration of a run (s): a mean that forgets, NaN before the first.

    :param monotonic: seconds
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.mean = math.nan
        self._monotonic = monotonic
        self._ran_at = -math.inf

    def add(self, seconds: float) -> None:
        """Enter a run that ends now."""
        known = math.isfinite(self.mean)
        self.mean = self.mean + _NEWEST * (seconds - self.mean) if known else seconds
        self._ran_at = self._monotonic()

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Enter how long a run takes; one that fails is none."""
        begun = time.monotonic()
        yield
        self.add(time.monotonic() - begun)

    @property
    def state(self) -> BrickState:
        """Return whether a brick in memory runs or is idle."""
        lately = self._monotonic() - self._ran_at < _LATELY
        return BrickState.RUNNING if lately else BrickState.RESIDENT


@dataclass
class Loading:
    """What a loading took: ``seconds``, and ``memory`` (bytes) that the process grew by."""

    seconds: float = math.nan
    memory: int = 0


@contextmanager
def measured_loading() -> Iterator[Loading]:
    """Measure a loading; what other threads allocate meanwhile counts with it."""
    loading = Loading()
    begun, before = time.monotonic(), resident_memory()
    yield loading
    loading.seconds = time.monotonic() - begun
    loading.memory = max(resident_memory() - before, 0)


def resident_memory() -> int:
    """Return the memory (bytes) of this process."""
    return int(psutil.Process().memory_info().rss)


@dataclass(frozen=True)
class BrickCost:
    """What a brick was measured to cost on a device.

    ``load_time`` and ``run_time`` (s); ``memory`` (bytes) while it is loaded and runs, ``left``
    (bytes) of it after it was released; ``energy`` (J) of a run, NaN where no rail is measured.
    """

    name: str
    device: str
    load_time: float
    run_time: float
    memory: int
    left: int = 0
    precision: str = FULL_PRECISION
    energy: float = math.nan


def costs_as_plain(costs: Iterable[BrickCost]) -> list[dict[str, Any]]:
    """Return costs as a device profile has them: ms, MB and mJ."""
    return [
        {
            'brick': cost.name,
            'device': cost.device,
            'precision': cost.precision,
            'load_ms': round(1e3 * cost.load_time, 1),
            'run_ms': round(1e3 * cost.run_time, 3),
            'memory_mb': round(cost.memory / 1e6, 1),
            'left_mb': round(cost.left / 1e6, 1),
            **({'run_mj': round(1e3 * cost.energy, 2)} if math.isfinite(cost.energy) else {}),
        }
        for cost in costs
    ]


def costs_from_plain(entries: Any) -> list[BrickCost]:
    """Read what `costs_as_plain` wrote; [] for None.

    :raises EncodingError: for anything else
    """
    if entries is None:
        return []
    if not isinstance(entries, list):
        raise EncodingError(f'bricks is {str(entries)[:80]!r}; it must be a list, {_REMEDY}')
    return [_cost_from_plain(entry) for entry in entries]


def _cost_from_plain(entry: Any) -> BrickCost:
    fields = entry if isinstance(entry, Mapping) else {}
    texts = [fields.get(name) for name in ('brick', 'device', 'precision')]
    numbers = [fields.get(name) for name in ('load_ms', 'run_ms', 'memory_mb', 'left_mb')]
    energy = fields.get('run_mj')
    sound = all(isinstance(text, str) and text for text in texts) and all(
        is_number(n, 0.0, _MOST) for n in (*numbers, 0.0 if energy is None else energy)
    )
    if not sound:
        raise EncodingError(f'bricks has {str(entry)[:120]!r}, which is no cost; {_REMEDY}')
    name, device, precision = (str(text) for text in texts)
    load, run, memory, left = (float(n) for n in numbers if n is not None)
    return BrickCost(
        *(name, device, load / 1e3, run / 1e3, round(1e6 * memory), round(1e6 * left)),
        precision,
        math.nan if energy is None else energy / 1e3,
    )
