"""Asking and scrubbing are compared by how much is looked at."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hand_made_memories import View, car, looking, remembered, rival_of

from mmedge_lab.judging.memory_scrubbing import (
    GIVES_UP,
    Sought,
    scrubbing_figures,
    sought,
)


def test_thumbnails_are_counted_in_the_order_of_the_answer(tmp_path: Path) -> None:
    looks = {1: car('red'), 2: car('blue'), 3: car('green')}
    flight = remembered(
        tmp_path,
        'flight',
        looks,
        [
            View(1, 1, looking('red')),
            View(2, 2, looking('blue', 0.5)),
            View(3, 1, looking('blue')),  # red, but taken for blue
        ],
    )
    seconds = {1: 40, 2: 7, 3: 0}
    flight = replace(
        flight, objects=tuple(one._replace(scrubbed=seconds[one.id]) for one in flight.objects)
    )
    found = sought([flight], rival_of(flight))
    assert found == [
        Sought('flight', 'blue car', 2, 7),
        Sought('flight', 'red car', 1, 40),
    ], 'what no picture at a whole second shows is not asked for'


def test_who_does_not_find_it_among_the_thumbnails_scrubs_after_all() -> None:
    lost, found = Sought('flight', 'red car', 0, 30), Sought('flight', 'blue car', 3, 100)
    assert (lost.asked, found.asked) == (GIVES_UP + 30, 3)
    figures = scrubbing_figures([lost, found, found])
    assert figures['found_among_thumbnails'] == 2
    assert figures['asking']['median'] == 3
    assert figures['asking']['mean'] == pytest.approx((GIVES_UP + 36) / 3)
    assert figures['scrubbing']['mean'] == pytest.approx(230 / 3)
