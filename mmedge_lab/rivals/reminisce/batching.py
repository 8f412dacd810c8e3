"""In which order items run through the stages of an encoder that they leave at different exits.

A plan is a sequence of runs: a stage (from 0) and the items that it takes at once. Plans are made
of exits that are known; what deciding takes is measured with them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmedge_lab.rivals.reminisce.crop_encoder import BATCH, Blobs, CropEncoder, Exits


class StageRun(NamedTuple):
    """One run of a stage, by its number from 0."""

    stage: int
    items: Sequence[int]


def one_group(exits: Exits, size: int) -> Iterator[StageRun]:
    """Take items as they come, so many at a time; those that have left leave a gap."""
    for group in _divided(range(len(exits)), size):
        for stage in range(int(exits[group].max())):
            yield StageRun(stage, [item for item in group if exits[item] > stage])


def grouped(exits: Exits, size: int) -> Iterator[StageRun]:
    """Run the first stage of all, then the others of those that leave at one exit together."""
    for group in _divided(range(len(exits)), size):
        yield StageRun(0, group)
    for exit_ in np.unique(exits[exits > 1]):
        for group in _divided(np.flatnonzero(exits == exit_).tolist(), size):
            for stage in range(1, int(exit_)):
                yield StageRun(stage, group)


def refilled(exits: Exits, size: int) -> Iterator[StageRun]:
    """Run the deepest stage that so many items wait for, as Fluid batching does.

    Where none is full, new items are taken; when there are no more, the stages that still have
    some waiting run from the first on.
    """
    stages = int(exits.max())
    waiting: list[list[int]] = [[] for _ in range(stages)]
    waiting[0] = list(range(len(exits)))
    while any(waiting):
        full = [stage for stage in range(stages) if len(waiting[stage]) >= size]
        stage = full[-1] if full else next(s for s in range(stages) if waiting[s])
        items, waiting[stage] = waiting[stage][:size], waiting[stage][size:]
        yield StageRun(stage, items)
        if stage + 1 < stages:
            waiting[stage + 1] += [item for item in items if exits[item] > stage + 1]


# Called with the stage and what it has put out, where the time to decide is to count.
Decide = Callable[[int, Mapping[str, Any]], object]


class Way(NamedTuple):
    """Where items leave, the order they run in, and how that is decided."""

    name: str
    exits: Exits
    order: Callable[[Exits, int], Iterable[StageRun]] = one_group
    batch: int = BATCH
    decide: Decide = lambda _stage, _made: None

    def run(self, encoder: CropEncoder, blobs: Blobs) -> float:
        """Run inputs (N, 3, h, w) through the stages; return the processor's time in s.

        :raises EncodingError: if a stage fails
        """
        plan = list(self.order(self.exits[: len(blobs)], self.batch))
        held: dict[int, NDArray[np.float32]] = dict(enumerate(blobs))
        begun = time.thread_time()
        for stage, items in plan:
            made = encoder.step(stage, np.stack([held.pop(item) for item in items]))
            if stage + 1 < encoder.exits:
                self.decide(stage, made)
                held.update(zip(items, made[encoder.reads(stage + 1)], strict=True))
        return time.thread_time() - begun


def seconds_of(
    ways: Sequence[Way], encoder: CropEncoder, blobs: Blobs, rounds: int
) -> NDArray[np.float64]:
    """Time every way on the same inputs, in turn: processor time (rounds, ways) in s."""
    for way in ways:  # whatever is done first takes longer
        way.run(encoder, blobs[:BATCH])
    return np.array([[way.run(encoder, blobs) for way in ways] for _ in range(rounds)])


def _divided(items: Sequence[int], size: int) -> Iterator[list[int]]:
    for begin in range(0, len(items), size):
        yield list(items[begin : begin + size])
