"""Each method says what a crop is, how many stages that took, and what it cost besides."""

from __future__ import annotations

import numpy as np
from hand_made_outputs import centres_of, outputs_of

from mmedge_lab.rivals.smtm.methods import (
    ConstantHotClasses,
    ExitHeads,
    FullRuns,
    GuardedRecall,
    KeptLabels,
)

SURE, UNSURE = [9.0, 0.0, 0.0], [0.2, 0.1, 0.0]


def test_a_head_is_left_at_where_it_is_sure_and_passed_where_it_is_not() -> None:
    kept = outputs_of([0, 1], heads=[SURE, UNSURE])
    method = ExitHeads(kept, (2.0,))
    assert method.look(0, 0)[:2] == (0, 1)
    assert method.look(1, 0)[:2] == (1, 2)


def test_the_label_of_a_track_is_kept_for_so_many_looks() -> None:
    kept = outputs_of([0, 1, 2, 0, 1])
    method = KeptLabels(FullRuns(kept), 3)
    answers = [method.look(row, track=7) for row in range(4)]
    assert [answer.label for answer in answers] == [0, 0, 0, 0]
    assert [answer.stages for answer in answers] == [2, 0, 0, 2]
    assert method.look(1, track=8).label == 1


def test_the_guarded_memory_recalls_what_recurs_after_a_first_full_run() -> None:
    kept = outputs_of([0] * 10)
    method = GuardedRecall(kept, centres_of(), 0.02)
    assert [method.look(row, 0).stages for row in range(10)] == [2] + [1] * 9


def test_centres_that_do_not_learn_stay() -> None:
    drifting = outputs_of([0] * 80, vectors=[[1.0, 0.012 * n, 0.0] for n in range(80)])
    stages = {}
    for learns in (True, False):
        method = GuardedRecall(drifting, centres_of(threshold=0.25), 0.02, learns=learns)
        stages[learns] = sum(method.look(row, 0).stages for row in range(80))
    assert stages[True] < stages[False]


def test_a_constant_fast_memory_holds_so_many_classes_at_most() -> None:
    hot = ConstantHotClasses(6, 2)
    assert not hot.hot.any()
    for label in (1, 1, 1, 2, 2, 3):
        hot.met(label)
    assert np.flatnonzero(hot.hot).tolist() == [1, 2]
