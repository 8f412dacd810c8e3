from __future__ import annotations

import numpy as np
import pytest

from mmedge_ros.configuration.probing import Probing, ProbingParameters

ACCURACY = np.array([0.80, 0.85, 0.90])
ANY = np.ones(3, bool)


def probing(**values: float) -> Probing:
    made = Probing(ProbingParameters(**values))
    made.advance(0.0)
    made.advance(10.0)
    return made


def propose(made: Probing, chances: list[float], chosen: int = 0) -> int | None:
    return made.propose(ACCURACY, np.array(chances), chosen, ANY)


def test_the_better_is_tried_when_it_probably_works() -> None:
    assert propose(probing(), [1.0, 0.9, 0.8]) == 2


def test_what_hardly_works_is_not_worth_a_late_decision() -> None:
    assert propose(probing(), [1.0, 0.1, 0.05]) is None


def test_what_is_no_better_is_not_tried() -> None:
    assert propose(probing(), [1.0, 1.0, 1.0], chosen=2) is None
    assert propose(probing(smallest_gain=0.2), [1.0, 1.0, 1.0]) is None


def test_what_may_not_be_chosen_is_not_tried() -> None:
    allowed = np.array([True, True, False])
    assert probing().propose(ACCURACY, np.array([1.0, 0.9, 0.9]), 0, allowed) == 1


def test_a_failure_is_paid_from_what_was_saved_and_followed_by_a_pause() -> None:
    made = probing(most=1.0, period=10.0, boldness=1.0, pause=1.0)
    assert propose(made, [1.0, 0.5, 0.6]) == 2
    made.failed()
    assert propose(made, [1.0, 1.0, 1.0]) is None
    made.advance(11.0)
    assert propose(made, [1.0, 1.0, 1.0]) == 2  # what is certain costs nothing
    assert propose(made, [1.0, 0.5, 0.6]) is None
    made.advance(15.0)
    assert propose(made, [1.0, 0.5, 0.6]) == 2


def test_after_a_step_to_the_worse_it_begins_to_save_anew() -> None:
    made = probing(period=5.0, boldness=1.0)
    made.restart()
    assert propose(made, [1.0, 0.5, 0.6]) is None
    made.advance(13.0)
    assert propose(made, [1.0, 0.5, 0.6]) == 2


def test_late_tries_are_as_frequent_as_allowed() -> None:
    made = Probing(ProbingParameters(period=2.0, pause=0.0))
    failures = 0
    for step in range(1000):
        made.advance(0.1 * step)
        if propose(made, [1.0, 0.6, 0.6]) is not None:
            made.failed()
            failures += 1
    assert failures == pytest.approx(50, abs=3)


def test_unknown_accuracies_are_not_tried() -> None:
    accuracy = np.array([-np.inf, -np.inf, 0.9])
    assert probing().propose(accuracy, np.ones(3), 0, ANY) is None


def test_what_cannot_prove_good_enough_is_not_tried() -> None:
    chances = np.array([1.0, 0.9, 0.9])
    for promises, expected in (
        ([1.0, 0.9, 0.1], 1),
        ([1.0, 0.0, 0.9], 2),
        ([1.0, 0.0, 0.0], None),
    ):
        assert probing().propose(ACCURACY, chances, 0, ANY, np.array(promises)) == expected


def test_without_promises_the_chances_to_keep_the_limit_stand_for_them() -> None:
    for chances in ([1.0, 0.9, 0.8], [1.0, 0.9, 0.1], [1.0, 0.1, 0.05]):
        same = np.array(chances)
        explicit = probing().propose(ACCURACY, same, 0, ANY, same)
        assert propose(probing(), chances) == explicit


@pytest.mark.parametrize('chosen', [0, 1, 2])
@pytest.mark.parametrize('hopeless', [0.0, 1.0, np.nan])
def test_what_is_unknown_is_left_alone_without_a_complaint(chosen: int, hopeless: float) -> None:
    accuracy = np.array([0.8, -np.inf, 0.9])
    chances = np.array([1.0, hopeless, hopeless])
    with np.errstate(all='raise'):
        found = probing().propose(accuracy, chances, chosen, ANY)
    assert found == (2 if chosen == 0 and hopeless == 1.0 else None)
