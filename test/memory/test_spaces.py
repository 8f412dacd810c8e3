"""What the heads of a recogniser say is searched in words, in four bits a value as well."""

from __future__ import annotations

import numpy as np
import pytest

from mmedge_ros.encoding.classifier_description import ClassifierDescription
from mmedge_ros.encoding.crops import CropForm
from mmedge_ros.memory import FlightMemoryError
from mmedge_ros.memory.int4 import packed, unpacked
from mmedge_ros.memory.query import read_query
from mmedge_ros.memory.spaces import AttributeSpace

CLASSES = ('person red', 'person blue', 'car red', 'car blue')
SPACE = AttributeSpace(
    ClassifierDescription(
        CLASSES,
        CropForm((32, 48), (0.5, 0.5, 0.5), (0.25, 0.25, 0.25)),
        (),
        attributes={'bottom': ('red', 'blue'), 'backpack': ('no', 'yes')},
        labels=('person', 'car'),
    )
)
SURE = 6.0


def said(kind: str, bottom: str = 'red', backpack: str = 'no') -> np.ndarray:
    logits = np.zeros(8, np.float32)
    logits[CLASSES.index(kind)] = SURE
    logits[4 + ('red', 'blue').index(bottom)] = SURE
    logits[6 + ('no', 'yes').index(backpack)] = SURE
    return logits


VIEWS = np.stack(
    [
        said('person red', 'blue'),
        said('person red', 'red', 'yes'),
        said('person blue', 'red'),
        said('car red'),
        said('car blue'),
    ]
)


def best(text: str) -> int:
    vectors = SPACE.vectors(VIEWS)
    kept = unpacked(packed(vectors), SPACE.length)
    scores = SPACE.scores(read_query(text), vectors)
    assert SPACE.scores(read_query(text), kept).argmax() == scores.argmax()
    return int(scores.argmax())


@pytest.mark.parametrize(
    ('text', 'place'),
    [
        ('person in a red top and blue trousers', 0),
        ('person in a red top with a backpack', 1),
        ('person in a blue top', 2),
        ('a red car', 3),
        ('blue car', 4),
        ('somebody in blue trousers', 0),
    ],
)
def test_words_find_what_fits_them(text: str, place: int) -> None:
    assert best(text) == place


def test_a_view_without_a_vector_fits_worse_than_what_is_surely_something_else() -> None:
    vectors = np.concatenate([np.zeros((1, SPACE.length), np.float32), SPACE.vectors(VIEWS)])
    scores = SPACE.scores(read_query('something red'), vectors)
    assert scores[0] <= scores.min() + 1.5
    assert scores.argmax() != 0


@pytest.mark.parametrize('logits', [np.zeros((2, 7)), np.full((1, 8), np.nan), np.zeros(8)])
def test_what_is_no_answer_of_a_head_is_refused(logits: np.ndarray) -> None:
    with pytest.raises(FlightMemoryError):
        SPACE.vectors(logits)
