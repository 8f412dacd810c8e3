"""Rivals have the same views as the memory, and differ in their vectors alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hand_made_memories import View, car, remembered
from hand_made_moments import key_frame, memory_of, view

from mmedge_lab.judging import EvaluationError
from mmedge_lab.judging.memory_cases import COLOUR, EXIT, PICTURE, TRUE_BOXES
from mmedge_lab.judging.memory_rivals import (
    HEADS,
    MEAN_COLOUR,
    ONE_VIEW,
    RANDOM,
    RATED_LABELS,
    RIDGE,
    rivals_of,
    space_of,
)

MODELS = Path(__file__).resolve().parents[3] / 'models'
LENGTH = space_of(MODELS / 'flight_people').length


@pytest.fixture
def flight(tmp_path: Path):
    made = remembered(tmp_path, 'flight', {1: car('red')}, [View(1, 1, np.ones(8))])
    items = [
        view(1, 1.0, size=20.0),
        view(1, 2.0, size=60.0),
        view(1, 3.0, size=40.0),
        view(2, 1.0, size=15.0),
        key_frame(1.5),
    ]
    with memory_of(tmp_path / 'other.memory', *items) as memory:
        table = memory.table()
    names = (EXIT.format(1), EXIT.format(3), EXIT.format(4), PICTURE, TRUE_BOXES)
    vectors = {
        name: np.full((5, LENGTH), place, np.float32) for place, name in enumerate(names, 1)
    }
    vectors[COLOUR] = np.full((5, 42), 0.25, np.float32)
    taps = {name: np.full((5, 3), -vectors[name][0, 0]) for name in names}
    return replace(made, table=table, vectors=vectors, taps=taps)


def test_each_rival_has_its_vectors_and_key_frames_have_none(flight) -> None:
    rivals = rivals_of([flight], MODELS / 'flight_people', 3, lambda colours: 2.0 * colours)
    tables = {rival.name: rival.memories['flight'].table() for rival in rivals}
    assert rivals[0].name == EXIT.format(3)
    lots = tables.pop(RANDOM).taps(np.ones(2, bool))
    assert len({tuple(vector) for vector in lots.tolist()}) == len(lots) == 2
    firsts = {name: float(table.vectors[0, 0]) for name, table in tables.items()}
    assert firsts == pytest.approx(
        {
            'exit_3': 2.0,
            'exit_1': 1.0,
            'exit_4': 3.0,
            'picture': 4.0,
            'true_boxes': 5.0,
            ONE_VIEW: 2.0,
            RATED_LABELS: 2.0,
            HEADS: 2.0,
            MEAN_COLOUR: 0.25,
            RIDGE: 0.5,
        }
    )
    compared = {name: table.taps(np.array([0]))[0] for name, table in tables.items()}
    assert compared['exit_1'].tolist() == pytest.approx([-1.0] * 3)
    assert compared[HEADS].tolist() == pytest.approx([2.0] * LENGTH)
    assert compared[MEAN_COLOUR].tolist() == pytest.approx([0.25] * 24)
    assert tables['exit_1'].vectors.shape == (5, LENGTH)
    assert tables[MEAN_COLOUR].vectors.shape == (5, 24)
    assert not tables['exit_1'].vectors[4].any()


def test_one_view_is_the_best_of_each_track(flight) -> None:
    rivals = {rival.name: rival for rival in rivals_of([flight], MODELS / 'flight_people', 3)}
    assert RIDGE not in rivals
    views = rivals[ONE_VIEW].memories['flight'].table()
    sizes = views.reals('size')[:, 0].tolist()
    assert sizes == [60.0, 15.0]
    assert len(views.vectors) == len(views.integers['id']) == len(views.texts['label']) == 2


def test_a_bundle_without_a_recogniser_is_refused() -> None:
    with pytest.raises(EvaluationError, match='has no recogniser'):
        space_of(MODELS / 'fused_people')
