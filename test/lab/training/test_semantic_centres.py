"""Centres and thresholds of a semantic memory, from vectors whose classes are known."""

from __future__ import annotations

import numpy as np

from mmedge_lab.training.semantic_centres import NEVER, fit_exits, fit_semantic_centres
from mmedge_ros.core.data_types import FloatArray
from mmedge_ros.encoding.hot_classes import HotClasses
from mmedge_ros.encoding.semantic_memory import SemanticMemory

CLASSES, SIZE = 4, 12


def objects(
    number: int, seed: int, apart: tuple[float, ...] = (1.0, 3.0), common: float = 0.0
) -> tuple[list[FloatArray], FloatArray]:
    """Vectors of two taps, the second telling classes better; ``common`` spreads all of them."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(CLASSES, size=number)
    labels[:CLASSES] = np.arange(CLASSES)
    one = rng.normal(size=(number, SIZE))
    one[:, -1] *= 1.0 + common
    vectors = [a * np.eye(CLASSES, SIZE)[labels] + 0.4 * one + 5.0 for a in apart]
    return vectors, labels


def fitted(error: float = 0.05, **more: object) -> SemanticMemory:
    known, held = objects(600, 1, **more), objects(800, 2, **more)
    return SemanticMemory(fit_semantic_centres(*known, *held, error))


def outcome(memory: SemanticMemory, **more: object) -> tuple[float, float]:
    """Share of new objects that are recalled, and of those the share that is right."""
    memory.hot = HotClasses(CLASSES)
    for label in range(CLASSES):
        memory.hot.met(label)
    vectors, labels = objects(1000, 3, **more)
    right = []
    for row, label in enumerate(labels):
        lookup = memory.lookup()
        for of_tap in vectors:
            lookup.add(of_tap[row])
        if lookup.recall is not None:
            right.append(lookup.recall.label == label)
    return len(right) / len(labels), float(np.mean(right)) if right else 1.0


def test_no_more_of_new_objects_are_recalled_wrongly_than_was_asked() -> None:
    recalled, right = outcome(fitted(0.05))
    assert recalled > 0.8
    assert right > 0.93


def test_who_asks_for_fewer_errors_gets_fewer_recalls() -> None:
    shares = [outcome(fitted(error), apart=(0.6, 0.9)) for error in (0.01, 0.1)]
    assert shares[0][0] < shares[1][0]
    assert shares[0][1] >= shares[1][1]


OF_THREE = np.arange(300) % 3


def logits(wrong: np.ndarray, sure: np.ndarray) -> np.ndarray:
    """Logits that name the class, or the next one where wrong, by so much."""
    said = (OF_THREE + wrong) % 3
    return np.eye(3)[said] * sure[:, None]


def test_a_head_that_is_always_right_is_always_left() -> None:
    sure = np.linspace(0.5, 8.0, 300)
    (least,) = fit_exits([logits(np.zeros(300, int), sure)], OF_THREE, OF_THREE, 0.02)
    assert least < 1.0


def test_a_head_that_is_wrong_where_it_is_unsure_is_left_where_it_is_sure() -> None:
    sure = np.linspace(0.5, 8.0, 300)
    (least,) = fit_exits([logits((sure < 3.0).astype(int), sure)], OF_THREE, OF_THREE, 0.02)
    # The odds where it begins to be right: e to the 3rd against two others.
    assert 0.3 * np.exp(3.0) < least < np.exp(3.2)


def test_a_head_that_is_wrong_where_it_is_sure_is_never_left() -> None:
    wrong = np.ones(300, int)
    assert fit_exits([logits(wrong, np.full(300, 9.0))], OF_THREE, OF_THREE, 0.02) == (NEVER,)


def test_being_wrong_where_the_whole_classifier_is_wrong_as_well_costs_nothing() -> None:
    wrong, sure = np.ones(300, int), np.full(300, 4.0)
    (least,) = fit_exits([logits(wrong, sure)], (OF_THREE + 1) % 3, OF_THREE, 0.02)
    assert least < NEVER
