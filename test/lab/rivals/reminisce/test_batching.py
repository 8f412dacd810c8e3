"""In which order items run through stages, and that each comes to its exit."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from mmedge_lab.rivals.reminisce.batching import grouped, one_group, refilled

EXITS = np.array([1, 3, 1, 2, 3, 1, 1, 2, 3, 1, 3])


@pytest.mark.parametrize('order', [one_group, grouped, refilled])
@pytest.mark.parametrize('size', [1, 2, 4])
def test_every_item_runs_the_stages_up_to_its_exit_in_their_order(order, size: int) -> None:
    seen: dict[int, list[int]] = {}
    for stage, items in order(EXITS, size):
        assert 1 <= len(items) <= size
        for item in items:
            seen.setdefault(item, []).append(stage)
    assert seen == {item: list(range(exit_)) for item, exit_ in enumerate(EXITS)}


def test_refilled_batches_are_full_while_there_are_new_items() -> None:
    new = len(EXITS)
    for stage, items in refilled(EXITS, 2):
        assert len(items) == 2 or new < 2
        new -= len(items) if stage == 0 else 0


def test_refilled_batches_take_the_deepest_stage_that_is_full() -> None:
    runs = [(stage, list(items)) for stage, items in refilled(np.array([3, 3, 1, 3, 3]), 2)]
    assert runs == [
        (0, [0, 1]),
        (1, [0, 1]),
        (2, [0, 1]),
        (0, [2, 3]),
        (0, [4]),
        (1, [3, 4]),
        (2, [3, 4]),
    ]


def test_groups_are_of_one_exit_after_the_first_stage() -> None:
    for stage, items in grouped(EXITS, 4):
        assert stage == 0 or len({int(EXITS[item]) for item in items}) == 1


def test_items_as_they_come_leave_gaps_that_refilling_closes() -> None:
    def runs(order) -> int:
        return sum(Counter(stage for stage, _ in order(EXITS, 4)).values())

    assert runs(refilled) < runs(one_group)
