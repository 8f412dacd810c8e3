"""A tap is left where leaving costs no more than it may."""

from __future__ import annotations

import numpy as np

from mmedge_lab.training.exit_thresholds import NEVER, fit_exits
from mmedge_ros.encoding.classifier_description import odds

LABELS = np.arange(300) % 3


def logits(wrong: np.ndarray, sure: np.ndarray) -> np.ndarray:
    """Logits that name the class, or the next one where wrong, by so much."""
    said = (LABELS + wrong) % 3
    return np.eye(3)[said] * sure[:, None]


def test_a_head_that_is_always_right_is_always_left() -> None:
    sure = np.linspace(0.5, 8.0, 300)
    (least,) = fit_exits([logits(np.zeros(300, int), sure)], LABELS, LABELS, 0.02)
    assert least < 1.0


def test_a_head_that_is_wrong_where_it_is_unsure_is_left_where_it_is_sure() -> None:
    sure = np.linspace(0.5, 8.0, 300)
    (least,) = fit_exits([logits((sure < 3.0).astype(int), sure)], LABELS, LABELS, 0.02)
    # The odds where it begins to be right: e to the 3rd against two others.
    assert 0.3 * np.exp(3.0) < least < np.exp(3.2)


def test_a_head_that_is_wrong_where_it_is_sure_is_never_left() -> None:
    wrong = np.ones(300, int)
    assert fit_exits([logits(wrong, np.full(300, 9.0))], LABELS, LABELS, 0.02) == (NEVER,)


def test_being_wrong_where_the_whole_classifier_is_wrong_as_well_costs_nothing() -> None:
    wrong, sure = np.ones(300, int), np.full(300, 4.0)
    (least,) = fit_exits([logits(wrong, sure)], (LABELS + 1) % 3, LABELS, 0.02)
    assert least < NEVER


def test_a_tap_without_a_head_is_never_left() -> None:
    assert fit_exits([None], LABELS, LABELS, 0.02) == (NEVER,)


def test_odds_tell_sure_ones_apart_whose_softmax_is_one() -> None:
    assert odds(np.array([25.0, 0.0]), 0) > odds(np.array([20.0, 0.0]), 0) > 1e8
    assert odds(np.zeros(3), 1) == 0.5
