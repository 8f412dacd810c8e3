"""Which thresholds lose little enough, and how rarely one is called safe that does not."""

from __future__ import annotations

import math

import numpy as np

from mmedge_lab.training.certificate import FlightLoss, certify, fixed_sequence, p_value, total


def seeds(count: int, lost: float, missed: int = 0, early: int = 20) -> list[FlightLoss]:
    """Seeds of 1000 samples of people that lose about so much, not all alike."""
    return [
        FlightLoss(
            1000 + number, 1000 * (lost + 0.002 * (number % 3 - 1)), 500, missed, early, 2.0
        )
        for number in range(count)
    ]


def test_a_gate_that_loses_little_is_certified_by_many_seeds() -> None:
    assert p_value(seeds(24, 0.002), 0.01) < 0.01
    assert p_value(seeds(24, 0.012), 0.01) == 1.0


def test_both_losses_must_be_kept() -> None:
    assert p_value(seeds(24, 0.002, missed=4), 0.01) < 0.01
    assert p_value(seeds(24, 0.002, missed=6), 0.01) == 1.0


def test_each_start_goes_on_until_a_hypothesis_stands() -> None:
    assert fixed_sequence([0.01, 0.01, 0.5, 0.01], 0.1, starts=1) == 1
    # The second start has half of the error, and gets past where the first one stopped.
    assert fixed_sequence([0.01, 0.5, 0.01, 0.04], 0.1, starts=2) == 3
    assert fixed_sequence([0.01, 0.5, 0.01, 0.06], 0.1, starts=2) == 2
    assert fixed_sequence([0.5, 0.5], 0.1, starts=2) is None
    assert fixed_sequence([math.nan], 0.1) is None


def test_the_least_careful_safe_threshold_is_chosen() -> None:
    losses = [seeds(20, 0.0), seeds(20, 0.004), seeds(20, 0.03)]
    result = certify((0.95, 0.9, 0.5), losses, 0.01)
    assert result.threshold == 0.9
    assert result.seeds == 20
    assert result.total == total(losses[1])
    nothing = certify((0.95,), [seeds(20, 0.03)], 0.01)
    assert not nothing.holds
    assert nothing.threshold == math.inf


def test_a_broken_promise_is_rarely_certified() -> None:
    """Seeds differ much: most lose nothing and a few a lot.

    At the very border of the promise the error must not exceed 1 - confidence (with a margin
    for the drawing, and for Student's approximation).
    """
    random = np.random.default_rng(7)
    delta, drawings, wrong = 0.01, 400, 0
    for _ in range(drawings):
        lost = random.gamma(0.5, 2.0 * delta, 24)  # of mean delta
        people = random.integers(800, 1200, 24)
        drawn = [
            FlightLoss(int(n), float(n * share), 500, 0, 20, 2.0)
            for n, share in zip(people, lost, strict=True)
        ]
        wrong += p_value(drawn, delta) <= 0.1
    assert wrong / drawings <= 0.13
