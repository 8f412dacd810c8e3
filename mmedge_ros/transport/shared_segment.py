"""A named piece of shared memory that disappears with its owner.

It is a file below /dev/shm, as POSIX shared memory is on Linux, opened without
`multiprocessing.shared_memory`: before Python 3.13 that one starts a process per user of a
segment, and unlinks it when the first of them ends.

Who is alive is told by the kernel: each participant holds a lock on a byte of the file (an open
file description lock, fcntl(2)), which ends with its process however it ends, also where process
ids are reused or another container's. A segment whose owner's byte is not locked is a leftover.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import re
import secrets
import stat
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from mmedge_ros.transport import TransportError

FOLDER = Path('/dev/shm')
PREFIX = 'mmedge_ring_'
_NAME = re.compile(rf'{PREFIX}[0-9a-z_]{{1,64}}')

# struct flock: type, whence, start, length, pid (0 for these locks).
_FLOCK = struct.Struct('hhqqi4x')
# Bytes that are locked: for a change of state, by the owner, and by each other participant.
_CHANGE, _OWNER, _FIRST_GUEST = 0, 1, 2
# A change takes microseconds, but a limit of the processor may stop who is in one for a while.
_LONGEST_CHANGE = 1.0
_LOOK = 0.0001


class SharedSegment:
    """Memory of one owner that others of the same user enter; ``memory`` is all of it.

    :param name: a segment to enter; '' makes one of ``size`` bytes
    :raises TransportError: if there is none of that name, it is another user's, or there is not
        enough shared memory
    """

    def __init__(self, name: str = '', size: int = 0) -> None:
        self.is_owner = not name
        self.name = name or f'{PREFIX}{os.getpid()}_{secrets.token_hex(4)}'
        self._file = self._create(size) if self.is_owner else self._enter()
        self.size = os.fstat(self._file).st_size
        try:
            self.memory = mmap.mmap(self._file, self.size)
        except (OSError, ValueError) as err:
            os.close(self._file)
            raise TransportError(f'{self.name}: {self.size} bytes cannot be mapped') from err
        self._guest = -1

    def has_owner(self) -> bool:
        """Whether the process that made it is still there and has not closed it."""
        return self._is_locked(_OWNER)

    def has_guest(self, number: int) -> bool:
        """Whether the participant of a number is still there."""
        return self._is_locked(_FIRST_GUEST + number)

    def become_guest(self, most: int) -> int:
        """Take part under the lowest number that is free.

        :raises TransportError: if ``most`` others take part already
        """
        for number in range(most):
            if _lock(self._file, _FIRST_GUEST + number):
                self._guest = number
                return number
        raise TransportError(f'{self.name} has {most} readers already; end one of them')

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Change states with nobody else doing so; also orders memory between processors.

        :raises TransportError: if another process has been stopped in such a change, or has cut
            the segment short
        """
        deadline = time.monotonic() + _LONGEST_CHANGE
        while not _lock(self._file, _CHANGE):
            if time.monotonic() > deadline:
                raise TransportError(f'{self.name} is held by a process that does not go on')
            time.sleep(_LOOK)
        try:
            # Memory that is not there any more would end this process.
            if os.fstat(self._file).st_size < self.size:
                raise TransportError(f'{self.name} was cut short by another process')
            yield
        finally:
            _unlock(self._file, _CHANGE)

    def close(self) -> None:
        """Leave it; the owner's segment loses its name, and goes when all have left."""
        if self._file < 0:
            return
        if self.is_owner:
            with suppress(FileNotFoundError):
                (FOLDER / self.name).unlink()
            _unlock(self._file, _OWNER)
        if self._guest >= 0:
            _unlock(self._file, _FIRST_GUEST + self._guest)
        os.close(self._file)
        self._file = -1
        # Where arrays still look at it, it is unmapped with the last of them.
        with suppress(BufferError):
            self.memory.close()

    def _create(self, size: int) -> int:
        try:
            flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            file = os.open(FOLDER / self.name, flags, 0o600)
        except OSError as err:
            raise TransportError(f'no shared memory in {FOLDER}: {err.strerror}') from err
        try:
            # Before it has a size: one without a lock is taken for a leftover.
            if not _lock(file, _OWNER) or not os.fstat(file).st_nlink:
                raise TransportError(f'{self.name} was removed while it was made; try again')
            # Not only named: memory that is missing would end the process when it is written.
            os.posix_fallocate(file, 0, size)
        except (OSError, TransportError) as err:
            with suppress(OSError):
                (FOLDER / self.name).unlink()
            os.close(file)
            if isinstance(err, TransportError):
                raise
            raise TransportError(
                f'{size / 1e6:.0f} MB of shared memory are not to be had ({err.strerror}); '
                f'give {FOLDER} more room, in Docker by --shm-size'
            ) from err
        return file

    def _enter(self) -> int:
        if not _NAME.fullmatch(self.name):
            raise TransportError(f'{self.name[:80]!r} is no name of a ring')
        try:
            flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW
            file = os.open(FOLDER / self.name, flags)
        except PermissionError as err:
            raise TransportError(
                f"{self.name} is another user's; run both nodes as the same user"
            ) from err
        except OSError as err:
            raise TransportError(f'{self.name} is not on this machine: {err.strerror}') from err
        facts = os.fstat(file)
        if not stat.S_ISREG(facts.st_mode) or facts.st_uid != os.geteuid():
            os.close(file)
            raise TransportError(f"{self.name} is another user's; run both nodes as the same user")
        return file

    def _is_locked(self, byte: int) -> bool:
        asked = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, byte, 1, 0)
        kind: int = _FLOCK.unpack(fcntl.fcntl(self._file, fcntl.F_OFD_GETLK, asked))[0]
        return kind != fcntl.F_UNLCK


def remove_leftovers() -> int:
    """Remove the segments of this user whose owners are gone; return how many there were."""
    removed = 0
    for path in FOLDER.glob(f'{PREFIX}*'):
        try:
            file = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError:
            continue  # another user's, or gone meanwhile
        try:
            if _lock(file, _OWNER):
                path.unlink()
                removed += 1
        except OSError:
            pass
        finally:
            os.close(file)
    return removed


def _lock(file: int, byte: int) -> bool:
    try:
        fcntl.fcntl(file, fcntl.F_OFD_SETLK, _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, byte, 1, 0))
    except (BlockingIOError, PermissionError):
        return False
    return True


def _unlock(file: int, byte: int) -> None:
    fcntl.fcntl(file, fcntl.F_OFD_SETLK, _FLOCK.pack(fcntl.F_UNLCK, os.SEEK_SET, byte, 1, 0))
