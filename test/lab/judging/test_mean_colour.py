"""Objects are found by their colours alone."""

from __future__ import annotations

import numpy as np
import pytest

from mmedge_lab.judging.mean_colour import MeanColourScorer, colour_vector
from mmedge_ros.memory.query import COLOURS, read_query

PAINT = {
    'black': (20, 20, 20),
    'grey': (128, 128, 128),
    'white': (235, 235, 235),
    'red': (30, 30, 200),
    'brown': (30, 60, 100),
    'yellow': (30, 200, 220),
    'green': (40, 160, 40),
    'blue': (200, 80, 30),
}


def person(top: str, bottom: str) -> np.ndarray:
    """A crop of somebody dressed so in front of a meadow."""
    crop = np.full((60, 30, 3), PAINT['green'], np.uint8)
    crop[9:30, 8:22] = PAINT[top]
    crop[30:52, 8:22] = PAINT[bottom]
    return crop


def best(text: str, *crops: np.ndarray) -> int:
    vectors = np.stack([colour_vector(crop) for crop in crops])
    return int(MeanColourScorer().scores(read_query(text), vectors).argmax())


@pytest.mark.parametrize('colour', COLOURS)
def test_each_colour_is_known_again(colour: str) -> None:
    others = [c for c in COLOURS if c != colour]
    crops = [person(colour, 'grey' if colour == 'black' else 'black')]
    crops += [person(other, 'grey' if colour == 'black' else 'black') for other in others]
    assert best(f'{colour} top', *crops) == 0


def test_top_and_bottom_are_told_apart() -> None:
    crops = person('red', 'white'), person('white', 'red')
    assert best('red top and white trousers', *crops) == 0
    assert best('white top and red trousers', *crops) == 1


def test_what_has_no_colour_rates_all_alike() -> None:
    vectors = np.stack([colour_vector(person('red', 'blue'))] * 2)
    scores = MeanColourScorer().scores(read_query('person with a backpack'), vectors)
    np.testing.assert_array_equal(scores, [0.0, 0.0])
