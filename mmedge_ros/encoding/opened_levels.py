"""The networks of a modality's levels: which are opened, which one serves, and when they go."""

from __future__ import annotations

import ctypes
import gc
import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import Generic, NamedTuple, TypeVar

from mmedge_ros.encoding import EncodingError
from mmedge_ros.encoding.bricks import (
    CPU,
    FULL_PRECISION,
    BrickState,
    BrickStatus,
    Loading,
    RunTime,
    brick_name,
    measured_loading,
)

_LOG = logging.getLogger(__name__)

Network = TypeVar('Network')
Result = TypeVar('Result')
_Key = tuple[str, str]

# A level that was not wanted for so long (s) is released: an optimiser may come back to it.
HOLD = 10.0
# After so many failures in a row a device is taken to be gone.
_FAILURES = 2


class OpenedLevels(Generic[Network]):
    """Opens each level once per device, and remembers those that cannot be opened.

    :param open_level: opens the network of a level on a device
    :param levels: what ``open_level`` knows; () where one network serves all names
    :param default: the level that stands for ''
    """

    def __init__(
        self,
        open_level: Callable[[str, str], Network],
        levels: tuple[str, ...],
        default: str,
    ) -> None:
        self._open = open_level
        self._levels = levels
        self._default = default
        self._opened: dict[_Key, Network | EncodingError] = {}

    def name(self, level: str) -> str:
        return level or self._default

    def serving(self, level: str, device: str) -> str:  # noqa: ARG002  # others need it
        """Return the level that serves where this one is wanted: here it always does itself."""
        return self.name(level)

    def get(self, level: str, device: str) -> Network:
        """Return the network of a level.

        :raises EncodingError: if it cannot be opened, or could not before
        """
        key = self._key(level, device)
        if key not in self._opened:
            try:
                self._opened[key] = self._open(*key)
            except EncodingError as err:
                # Kept: hashing and parsing a broken file again would slow down every unit.
                self._opened[key] = err
        network = self._opened[key]
        if isinstance(network, EncodingError):
            raise EncodingError(str(network))
        return network

    def run(self, level: str, device: str, work: Callable[[Network], Result]) -> Result:
        """Return what ``work`` makes of the network of a level.

        :raises EncodingError: as `get` and ``work`` do
        """
        return work(self.get(level, device))

    def warm(self, device: str) -> Iterator[Network]:
        """Yield the networks that are to run once before the first unit: here every level's.

        :raises EncodingError: as `get`
        """
        for level in self._levels or (self._default,):
            yield self.get(level, device)

    def bricks(self) -> list[BrickStatus]:
        """Return what is known of the networks that are held: here nothing."""
        return []

    def _key(self, level: str, device: str) -> _Key:
        return (self.name(level) if self._levels else '', device)


class HeldLevels(OpenedLevels[Network]):
    """Holds the level in use; the next one loads in a thread of its own while that one serves.

    A level that was not wanted for a while is released, and its memory goes back to the system.
    One that cannot be opened does not take the place of one that serves; where its device is not
    the processor, or goes away in flight, it is opened on the processor. All methods but
    ``bricks`` belong to one thread.

    :param modality: names the bricks
    :param warm_up: runs a network once, so that no unit pays for it
    :param first: the level that is opened at once, and ``device`` where
    :param monotonic: seconds
    :param precisions: of levels that are not in full precision
    """

    def __init__(
        self,
        open_level: Callable[[str, str], Network],
        levels: tuple[str, ...],
        default: str,
        modality: str,
        warm_up: Callable[[Network], None],
        first: str = '',
        monotonic: Callable[[], float] = time.monotonic,
        precisions: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        super().__init__(self._loader(open_level), levels, default)
        self._modality = modality
        self._precisions = precisions
        self._warm_up = warm_up
        self._first = first
        self._monotonic = monotonic
        self._wanted_at: dict[_Key, float] = {}
        self._current: _Key | None = None
        self._loading: dict[_Key, threading.Thread] = {}
        self._loads: dict[_Key, Loading] = {}
        self._runs: dict[_Key, RunTime] = {}
        self._failures = 0

    def serving(self, level: str, device: str) -> str:
        """Return the level that serves, and begin to load the wanted one if it is another.

        Where nothing serves yet, the wanted one is opened at once.
        """
        key, now = self._reachable(level, device), self._monotonic()
        self._wanted_at[key] = now
        found = self._opened.get(key)
        if self._current is None or (found is not None and not isinstance(found, EncodingError)):
            self._current = key
        elif found is None and key not in self._loading:
            self._load(key)
        self._wanted_at[self._current] = now
        self._release_others(now)
        return self._current[0] if self._levels else self.name(level)

    def get(self, level: str, device: str) -> Network:
        """Return the network of a level; where it is not there yet, that of the one that serves.

        :raises EncodingError: if nothing serves
        """
        return super().get(*self._found(level, device))

    def run(self, level: str, device: str, work: Callable[[Network], Result]) -> Result:
        """Return what ``work`` makes of the network that serves.

        :raises EncodingError: as `get` and ``work`` do; where a device fails again and again, the
            next unit is encoded by the processor
        """
        key = self._found(level, device)
        network = super().get(*key)
        try:
            with self._run_time(key).timed():
                result = work(network)
        except EncodingError as err:
            self._failed(key, err)
            raise
        self._failures = 0
        return result

    def warm(self, device: str) -> Iterator[Network]:
        """Yield the network of the first level.

        :raises EncodingError: as `get`
        """
        self.serving(self._first, device)
        yield self.get(self._first, device)

    def wait(self, timeout: float) -> None:
        """Wait for what is loading, at most so long (s)."""
        for thread in list(self._loading.values()):
            thread.join(timeout)

    def bricks(self) -> list[BrickStatus]:
        """Return what each network that was wanted does and costs; from any thread."""
        keys = {*self._opened.copy(), *self._loading.copy(), *self._loads.copy()}
        return [self._status(key) for key in sorted(keys)]

    def state(self, level: str, device: str) -> BrickState:
        """Return what the network of a level is doing."""
        return self._status(self._key(level, device)).state

    def _status(self, key: _Key) -> BrickStatus:
        found = self._opened.get(key)
        state, problem = BrickState.RELEASED, ''
        if key in self._loading:
            state = BrickState.LOADING
        elif isinstance(found, EncodingError):
            state, problem = BrickState.FAILED, str(found)
        elif found is not None:
            state = self._run_time(key).state
        precision = self._precisions.get(key[0], FULL_PRECISION)
        name = brick_name(self._modality, key[0])
        loads = self._loads.get(key, Loading())
        return BrickStatus(
            *(name, key[1], precision, state),
            *(loads.seconds, self._run_time(key).mean, loads.memory, problem),
        )

    def _run_time(self, key: _Key) -> RunTime:
        return self._runs.setdefault(key, RunTime(self._monotonic))

    def _reachable(self, level: str, device: str) -> _Key:
        """Return the key of a level on a device, on the processor where that one has failed."""
        key = self._key(level, device)
        return (key[0], CPU) if isinstance(self._opened.get(key), EncodingError) else key

    def _found(self, level: str, device: str) -> _Key:
        key = self._reachable(level, device)
        if self._current is not None and key not in self._opened:
            return self._current
        return key

    def _failed(self, key: _Key, err: EncodingError) -> None:
        """Give a device up where it fails again and again; the processor has no substitute."""
        self._failures += 1
        if key[1] == CPU or self._failures < _FAILURES:
            return
        _LOG.warning('%s is not used any more, the processor goes on: %s', key[1], err)
        self._failures = 0
        self._opened[key] = EncodingError(f'it failed in flight: {err}')
        self._current = None

    def _loader(self, open_level: Callable[[str, str], Network]) -> Callable[[str, str], Network]:
        def load(level: str, device: str) -> Network:
            with measured_loading() as self._loads[level, device]:
                return open_level(level, device)

        return load

    def _load(self, key: _Key) -> None:
        thread = threading.Thread(target=self._loaded, args=(key,), name='level', daemon=True)
        self._loading[key] = thread
        thread.start()

    def _loaded(self, key: _Key) -> None:
        try:
            network = self._open(*key)
            self._warm_up(network)
            self._opened[key] = network
            # What reading its file took is free again, and would stay where it was.
            give_back()
        except EncodingError as err:
            self._opened[key] = err
            _LOG.warning('level %s cannot be opened, another one serves on: %s', key[0], err)
        except Exception as err:  # noqa: BLE001
            # A runtime of a device may fail in any way.
            self._opened[key] = EncodingError(f'level {key[0]}: {type(err).__name__}: {err}')
            _LOG.exception('level %s cannot be opened, another one serves on', key[0])
        finally:
            del self._loading[key]

    def _release_others(self, now: float) -> None:
        for key, wanted_at in list(self._wanted_at.items()):
            if key == self._current or now - wanted_at < HOLD or key in self._loading:
                continue
            del self._wanted_at[key]
            # Not the errors: a broken file need not be read again.
            if not isinstance(self._opened.get(key), EncodingError):
                # The thread has the only reference: its memory is freed before it is given back.
                released: list[object] = [self._opened.pop(key, None)]
                threading.Thread(target=release, args=(released,), daemon=True).start()


class HeldLevel(NamedTuple):
    """In flight one level is held at a time: this one first, on this device.

    ``precisions`` of levels are shown; those not named are in full precision. ``sends_grids``:
    something beyond the encoder fuses them.
    """

    level: str = ''
    device: str = CPU
    precisions: Mapping[str, str] = {}
    sends_grids: bool = True


def levels_of(
    open_level: Callable[[str, str], Network],
    levels: tuple[str, ...],
    default: str,
    modality: str,
    warm_up: Callable[[Network], None],
    held: HeldLevel | None,
) -> OpenedLevels[Network]:
    """Return levels that are held one at a time, or all of them where ``held`` is None."""
    if held is None:
        return OpenedLevels(open_level, levels, default)
    return HeldLevels(
        open_level, levels, default, modality, warm_up, held.level, precisions=held.precisions
    )


def release(networks: list[object]) -> None:
    """Let go of networks, and give their memory back to the system."""
    networks.clear()
    gc.collect()
    give_back()


def give_back() -> None:
    """Give memory that is free back to the system."""
    with suppress(OSError, AttributeError):  # of glibc alone
        ctypes.CDLL('libc.so.6').malloc_trim(0)
