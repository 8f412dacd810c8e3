"""Keeps the memory of a process that runs for long as it is."""

from __future__ import annotations

import ctypes
import gc
from contextlib import suppress

# s between two looks for what is not needed any more.
PERIOD = 60.0

_M_ARENA_MAX = -8


def keep_one_heap() -> None:
    """Let all threads allocate from one heap.

    glibc gives each new thread one of up to eight heaps per core. Networks that are opened in one
    thread and released in another leave holes in all of them: an encoder took twice the memory
    after half an hour on a busy machine, where its level changed often.
    """
    with suppress(OSError, AttributeError):  # of glibc alone
        ctypes.CDLL('libc.so.6').mallopt(_M_ARENA_MAX, 1)


def settle() -> None:
    """Leave all that there is now, such as modules, out of every later look for garbage.

    A look at all of it stops every thread for 50 ms and more; one at what came since takes less
    than one.
    """
    gc.freeze()


def let_go() -> None:
    """Free what Python keeps for later.

    It keeps 2000 tuples of each length up to 20, and lets go of them in a full look for garbage
    alone, which it seldom takes by itself. One that is made of a generator is taken from those of
    one length and put to those of another: a process that reads a hundred messages a second grew
    by 1 to 2 MB an hour.
    """
    gc.collect()
