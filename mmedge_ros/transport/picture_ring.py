"""A token-aware ring of slots in shared memory: one process writes, several read.

The buffer of Nanomind (token-aware buffer manager): a slot goes FREE -> WRITING -> READY ->
READING -> FREE. A slot has one state byte of its writer (FREE, WRITING, READY) and one for each
reader (READY, READING, FREE), so that each byte has one owner at a time: the writer's while the
slot is FREE or WRITING, and each reader's from READY on. Readers do not wait for each other; a
slot is free again when every reader is done with it.

Why this is correct: every change of a state is made under a lock of the kernel that is held for
microseconds and released with its process (`SharedSegment.exclusive`). So a reader that claims
a slot and a writer that wants it cannot both succeed, on any processor. Pixels are written and
read outside the lock, by whom the state names. A claim has a lease: when it is over, or its reader
is gone, the writer takes the slot back and counts it; a reader that was only slow sees at the end,
by the sequence number, that its slot was overwritten, and gives up what it read (``torn``).
Reading is in order: a reader that claims a slot is done with all older ones.

A writer that finds no free slot drops the oldest unread one (live), or waits first (replay).
Slots whose tokens would exceed the budget count as not free: embeddings are admitted by tokens.
"""

from __future__ import annotations

import array
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mmedge_ros.transport import TransportError
from mmedge_ros.transport.ring_layout import (
    MOST_READERS,
    MOST_SLOTS,
    Bytes,
    RingMemory,
    SlotContent,
    SlotHeader,
    SlotState,
    ring_size,
)
from mmedge_ros.transport.shared_segment import SharedSegment, remove_leftovers

# As deep as the queue of the topic that announces pictures.
SLOTS = 5
# Reading takes milliseconds; a brick may take longer and then says so.
LEASE = 1.0

_LOOK = 0.0005


class Written(NamedTuple):
    """Where a reader finds what was written."""

    slot: int
    sequence: int


@dataclass
class WriterCounts:
    """``dropped`` unread, ``reclaimed`` from the dead or late, ``overrun``: no slot to write."""

    written: int = 0
    dropped: int = 0
    reclaimed: int = 0
    overrun: int = 0


@dataclass
class ReaderCounts:
    """``missed``: never seen; ``torn``: overwritten while it was read."""

    read: int = 0
    missed: int = 0
    torn: int = 0
    reclaimed: int = 0


class RingWriter:
    """Makes a ring and writes to it; one thread, one slot at a time.

    :param token_budget: most tokens that lie in slots unread; 0 for no limit
    :param counts: of the ring before this one, to count on
    :raises TransportError: if there is not enough shared memory
    """

    def __init__(
        self,
        slot_bytes: int,
        slots: int = SLOTS,
        token_budget: int = 0,
        counts: WriterCounts | None = None,
    ) -> None:
        if slot_bytes < 1 or not 2 <= slots <= MOST_SLOTS:
            raise TransportError(f'no ring of {slots} slots of {slot_bytes} bytes; 2 to 64 slots')
        self.counts = counts or WriterCounts()
        self.slot_bytes = slot_bytes
        remove_leftovers()
        self._token_budget = token_budget
        self._newest = 0
        self._segment = SharedSegment(size=ring_size(slots, slot_bytes))
        self._memory = RingMemory.made(self._segment, slots, slot_bytes, token_budget, os.getpid())

    @property
    def name(self) -> str:
        return self._segment.name

    def write(self, data: Bytes, header: SlotHeader, patience: float = 0.0) -> Written | None:
        """Copy bytes into a slot; None if every slot is being read.

        :param patience: how long to wait for a free slot before an unread one is dropped, s
        """
        slot = self.claim(data.size, header.tokens, patience)
        if slot is None:
            return None
        np.copyto(self.view(slot, data.size), data)
        return self.publish(slot, header, data.size)

    def claim(self, size: int, tokens: int = 0, patience: float = 0.0) -> int | None:
        """Return a slot to write in (`view`, `publish`); None if every slot is being read.

        :raises TransportError: for what never fits a slot or the budget
        """
        if not 0 < size <= self.slot_bytes or (self._token_budget and tokens > self._token_budget):
            raise TransportError(
                f'{size} bytes with {tokens} tokens do not fit a ring for '
                f'{self.slot_bytes} bytes and {self._token_budget} tokens'
            )
        deadline = time.monotonic() + patience
        while True:
            with self._segment.exclusive():
                self._reclaim()
                slot = self._free_slot(tokens)
                is_over = time.monotonic() >= deadline
                if slot is None and is_over:
                    slot = self._overwritten_slot(tokens)
                if slot is not None:
                    self._memory.states[slot] = SlotState.WRITING
                    return slot
            if is_over:
                self.counts.overrun += 1
                return None
            time.sleep(_LOOK)

    def view(self, slot: int, size: int) -> Bytes:
        """Return the bytes of a claimed slot, to write to in place."""
        return self._memory.bytes_of(slot, size)

    def publish(self, slot: int, header: SlotHeader, size: int) -> Written:
        """Hand a claimed slot to the readers."""
        memory = self._memory
        memory.describe(slot, header, size)
        with self._segment.exclusive():
            # Counted here: what lies in shared memory, another process may have changed.
            self._newest += 1
            memory.newest[0] = memory.sequences[slot] = sequence = self._newest
            memory.readers[slot] = SlotState.READY
            memory.states[slot] = SlotState.READY
        self.counts.written += 1
        return Written(slot, sequence)

    def close(self) -> None:
        """End the ring; readers keep what they are reading."""
        self._segment.close()

    def _reclaim(self) -> None:
        """Take back slots whose owners are gone or late."""
        memory, now_ns = self._memory, time.monotonic_ns()
        for slot, state in enumerate(memory.states.tolist()):
            if state == SlotState.WRITING:  # our own, given up by an error
                memory.states[slot] = SlotState.FREE
                self.counts.reclaimed += 1
        readers = memory.readers.tolist()
        for number in self._attached():
            is_gone = not self._segment.has_guest(number)
            for slot, states in enumerate(readers):
                is_over = is_gone or memory.leases[slot, number] < now_ns
                if states[number] == SlotState.READING and is_over:
                    memory.readers[slot, number] = SlotState.FREE
                    self.counts.reclaimed += 1
            if is_gone:
                memory.attached[number] = 0

    def _attached(self) -> list[int]:
        return [number for number, pid in enumerate(self._memory.attached.tolist()) if pid]

    def _unread(self) -> list[int]:
        """Slots that some reader has not finished, the oldest first; without readers all."""
        attached, readers = self._attached(), self._memory.readers.tolist()
        slots = [
            slot
            for slot, state in enumerate(self._memory.states.tolist())
            if state == SlotState.READY
            and (not attached or any(readers[slot][number] for number in attached))
        ]
        return sorted(slots, key=self._memory.sequences.tolist().__getitem__)

    def _free_slot(self, tokens: int) -> int | None:
        unread = self._unread()
        if self._token_budget:
            held = sum(int(self._memory.tokens[slot]) for slot in unread)
            if held + tokens > self._token_budget:
                return None
        sequences, newest = self._memory.sequences.tolist(), self._newest
        free = [slot for slot in range(len(sequences)) if slot not in unread]
        # One that was used just now is still in the cache of the processor; the newest stays,
        # for a reader that comes late.
        return min(
            free, key=lambda slot: (sequences[slot] == newest, -sequences[slot]), default=None
        )

    def _overwritten_slot(self, tokens: int) -> int | None:
        attached, memory = self._attached(), self._memory
        for slot in self._unread():
            if any(memory.readers[slot, number] == SlotState.READING for number in attached):
                continue
            memory.states[slot] = SlotState.FREE
            self.counts.dropped += 1
            found = self._free_slot(tokens)
            if found is not None:
                return found
        return None


class RingReader:
    """Enters a ring and reads slots that a message has named; one thread, one slot at a time.

    :raises TransportError: if there is no such ring on this machine, it is another user's, it is
        none of this version, or it has too many readers
    :param counts: of the ring before this one, to count on
    """

    def __init__(self, name: str, counts: ReaderCounts | None = None) -> None:
        self.counts = counts or ReaderCounts()
        self.name = name
        self._last = 0
        self._segment = SharedSegment(name)
        try:
            self._memory = memory = RingMemory.entered(self._segment)
            with self._segment.exclusive():
                self._number = self._segment.become_guest(MOST_READERS)
                states = memory.readers[:, self._number]
                # Of a predecessor that was killed.
                if memory.attached[self._number]:
                    self.counts.reclaimed += int((states == SlotState.READING).sum())
                is_newest = memory.sequences == memory.newest[0]
                states[:] = np.where(is_newest, SlotState.READY, SlotState.FREE)
                memory.attached[self._number] = os.getpid()
        except TransportError:
            self._segment.close()
            raise

    @property
    def is_alive(self) -> bool:
        """Whether somebody may still write."""
        return self._segment.has_owner()

    @contextmanager
    def bind(self, slot: int, sequence: int, lease: float = LEASE) -> Iterator[SlotContent | None]:
        """Claim a slot while its bytes are used in place; None if it has something newer.

        :param lease: after which the writer may take the slot back, s
        :raises TransportError: if the slot does not hold what its header says, or, at the end, if
            it was overwritten: what was read is worth nothing then
        """
        claimed = self._claim(slot, sequence, lease)
        if claimed is None:
            yield None
            return
        header, size = claimed
        try:
            yield SlotContent(header, self._memory.bytes_of(slot, size))
        finally:
            is_intact = self._release(slot, sequence)
        if not is_intact:
            self.counts.torn += 1
            raise TransportError(
                f'{self.name}: slot {slot} was overwritten after its lease of {lease:g} s'
            )
        self.counts.read += 1

    def copy(self, slot: int, sequence: int) -> tuple[SlotHeader, array.array[int]] | None:
        """Return what a slot holds, in memory of our own; None if it has something newer."""
        data = array.array('B')
        with self.bind(slot, sequence) as content:
            if content is None:
                return None
            data.frombytes(content.data.data)
        return content.header, data

    def close(self) -> None:
        """Leave the ring."""
        self._segment.close()

    def _claim(self, slot: int, sequence: int, lease: float) -> tuple[SlotHeader, int] | None:
        memory = self._memory
        if not 0 <= slot < len(memory.states):
            raise TransportError(f'{self.name} has no slot {slot}')
        with self._segment.exclusive():
            if not self._holds(slot, sequence):
                return None
            claimed = memory.header_of(slot)
            number = self._number
            for other, of_other in enumerate(memory.sequences.tolist()):
                if of_other < sequence:
                    memory.readers[other, number] = SlotState.FREE
            memory.readers[slot, number] = SlotState.READING
            memory.leases[slot, number] = time.monotonic_ns() + int(lease * 1e9)
        if self._last:
            self.counts.missed += max(sequence - self._last - 1, 0)
        self._last = sequence
        return claimed

    def _release(self, slot: int, sequence: int) -> bool:
        with self._segment.exclusive():
            is_intact = self._holds(slot, sequence)
            if is_intact:
                self._memory.readers[slot, self._number] = SlotState.FREE
        return is_intact

    def _holds(self, slot: int, sequence: int) -> bool:
        is_ready = self._memory.states[slot] == SlotState.READY
        return bool(is_ready and self._memory.sequences[slot] == sequence)
