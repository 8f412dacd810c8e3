"""Which thresholds keep the promise, and how rarely one is called safe that does not."""

from __future__ import annotations

import math

import numpy as np
import pytest

from mmedge_ros.lab.gates.certificate import (
    HOEFFDING_BENTKUS,
    STUDENT,
    FlightOutcome,
    certify,
    fewest_flights,
    fixed_sequence,
    p_value,
)
from mmedge_ros.skipping import SkippingError


def flights(count: int, early: int, differing: int) -> list[FlightOutcome]:
    """Flights of 100 windows, differing a bit from each other."""
    return [
        FlightOutcome(100, early + number % 3, min(differing + number % 2, early))
        for number in range(count)
    ]


def test_a_gate_that_is_never_wrong_is_certified_by_many_flights() -> None:
    right = [FlightOutcome(100, 100, 0)] * 80
    assert p_value(right, 0.05, HOEFFDING_BENTKUS) < 0.05
    assert p_value(right, 0.05, STUDENT) < 0.05


def test_few_flights_cannot_prove_a_small_share_without_assumptions() -> None:
    need = fewest_flights(0.05, 0.9)
    assert need == 45
    right = [FlightOutcome(100, 100, 0)] * (need - 1)
    assert p_value(right, 0.05, HOEFFDING_BENTKUS) > 0.1


def test_a_gate_that_breaks_the_promise_is_not_certified() -> None:
    for method in (HOEFFDING_BENTKUS, STUDENT):
        assert p_value(flights(60, 50, 5), 0.05, method) == 1.0


def test_no_early_decision_proves_nothing() -> None:
    for method in (HOEFFDING_BENTKUS, STUDENT):
        assert p_value([FlightOutcome(100, 0, 0)] * 100, 0.05, method) == 1.0
        # Nor do a few.
        assert p_value([FlightOutcome(100, 1, 0)] * 30, 0.05, method) > 0.1


def test_flights_that_are_all_alike_are_not_taken_for_proof() -> None:
    assert p_value([FlightOutcome(100, 2, 0)] * 12, 0.05, STUDENT) == pytest.approx(0.95**24)


def test_flights_that_are_nearly_alike_prove_no_more_than_independent_decisions_would() -> None:
    # Student's p-value alone would be far below this: these flights hardly differ.
    right = [FlightOutcome(100, 2 + number % 2, 0) for number in range(12)]
    assert p_value(right, 0.05, STUDENT) == pytest.approx(0.95**30)
    rarely_wrong = [FlightOutcome(100, 4, int(number == 0)) for number in range(12)]
    independent = 0.95**48 + 48 * 0.05 * 0.95**47
    assert p_value(rarely_wrong, 0.05, STUDENT) >= independent * (1.0 - 1e-9)


def test_student_wants_ten_flights() -> None:
    assert p_value(flights(9, 50, 0), 0.05, STUDENT) == 1.0
    assert p_value(flights(12, 50, 0), 0.05, STUDENT) < 0.01


def test_each_start_goes_on_until_a_hypothesis_stands() -> None:
    assert fixed_sequence([0.01, 0.01, 0.5, 0.01], 0.1, starts=1) == 1
    # The second start has half of the error, and gets past where the first one stopped.
    assert fixed_sequence([0.01, 0.5, 0.01, 0.04], 0.1, starts=2) == 3
    assert fixed_sequence([0.01, 0.5, 0.01, 0.06], 0.1, starts=2) == 2
    assert fixed_sequence([0.5, 0.5], 0.1, starts=2) is None
    assert fixed_sequence([math.nan], 0.1) is None


def test_the_least_careful_safe_threshold_is_chosen() -> None:
    outcomes = [flights(40, 30, 0), flights(40, 60, 1), flights(40, 90, 20)]
    result = certify((0.99, 0.9, 0.5), outcomes, 0.05)
    assert result.threshold == 0.9
    assert result.flights == 40
    assert result.differing == sum(flight.differing for flight in outcomes[1])
    nothing = certify((0.99,), [flights(40, 90, 20)], 0.05)
    assert not nothing.holds
    assert nothing.threshold == math.inf


@pytest.mark.parametrize('method', [HOEFFDING_BENTKUS, STUDENT])
def test_a_broken_promise_is_rarely_certified(method: str) -> None:
    """Flights differ much: most are free of errors and a few are full of them.

    At the very border of the promise the error must not exceed 1 - confidence (with a margin
    for the drawing, and for Student's approximation).
    """
    random = np.random.default_rng(7)
    alpha, drawings, wrong = 0.1, 400, 0
    for _ in range(drawings):
        rates = random.beta(0.5, 4.5, 40)  # of mean alpha
        early = random.integers(20, 60, 40)
        differing = random.binomial(early, rates)
        outcome = [
            FlightOutcome(100, int(e), int(d)) for e, d in zip(early, differing, strict=True)
        ]
        wrong += p_value(outcome, alpha, method) <= 0.1
    assert wrong / drawings <= 0.13


@pytest.mark.parametrize(
    ('arguments', 'words'),
    [
        ({'alpha': 0.0}, 'alpha 0'),
        ({'confidence': 1.0}, 'confidence 1'),
        ({'method': 'guess'}, "'guess'"),
        ({'thresholds': (0.5, 0.9)}, 'most careful'),
        ({'outcomes': []}, 'one row'),
        ({'outcomes': [[FlightOutcome(10, 5, 6)]] * 2}, '6 differing of 5'),
        ({'outcomes': [[FlightOutcome(0, 0, 0)]] * 2}, 'without a window'),
        ({'outcomes': [flights(3, 5, 1), flights(4, 5, 1)]}, 'same flights'),
    ],
)
def test_nonsense_is_refused_in_words(arguments: dict, words: str) -> None:
    given = {
        'thresholds': (0.9, 0.5),
        'outcomes': [flights(12, 5, 0)] * 2,
        'alpha': 0.05,
        'confidence': 0.9,
    }
    with pytest.raises(SkippingError, match=words):
        certify(**{**given, **arguments})
