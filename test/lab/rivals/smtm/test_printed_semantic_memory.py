"""The printed rule recalls fast, and locks in when the scene changes; the guarded one does not."""

from __future__ import annotations

import numpy as np

from mmedge_lab.rivals.smtm.printed_semantic_memory import PrintedSemanticMemory
from mmedge_lab.training.semantic_centres import fit_semantic_centres
from mmedge_ros.core.data_types import FloatArray
from mmedge_ros.encoding.hot_classes import HotClasses
from mmedge_ros.encoding.semantic_memory import SemanticMemory

CLASSES, SIZE, APART = 6, 16, (2.0, 3.0)


def objects(labels: FloatArray, seed: int) -> list[FloatArray]:
    rng = np.random.default_rng(seed)
    one = rng.normal(size=(len(labels), SIZE))
    return [a * np.eye(CLASSES, SIZE)[labels] + 0.4 * one for a in APART]


def scene(classes: tuple[int, ...], looks: int, seed: int) -> FloatArray:
    return np.random.default_rng(seed).choice(classes, looks)


def centres() -> tuple[list[FloatArray], FloatArray]:
    labels = np.tile(np.arange(CLASSES), 100)
    vectors = objects(labels, 0)
    means = [np.stack([v[labels == j].mean(axis=0) for j in range(CLASSES)]) for v in vectors]
    return means, np.full(CLASSES, 100.0)


def printed(stream: FloatArray, seed: int) -> tuple[float, FloatArray]:
    """Return the share that left early, and which looks were answered right."""
    memory = PrintedSemanticMemory(*centres(), HotClasses(CLASSES), tau=0.5)
    vectors, right, early = objects(stream, seed), [], 0
    for row, label in enumerate(stream):
        found = memory.look([v[row] for v in vectors])
        if found is None:
            memory.classified(int(label))
        early += found is not None
        right.append(found is None or found[0] == label)
    return early / len(stream), np.array(right)


def guarded(stream: FloatArray, seed: int) -> tuple[float, FloatArray]:
    labels = np.tile(np.arange(CLASSES), 100)
    held = np.tile(np.arange(CLASSES), 150)
    fitted = fit_semantic_centres(objects(labels, 0), labels, objects(held, 1), held)
    memory = SemanticMemory(fitted)
    vectors, right, early = objects(stream, seed), [], 0
    for row, label in enumerate(stream):
        lookup = memory.lookup()
        for of_tap in vectors:
            lookup.add(of_tap[row])
        recall = lookup.recall
        if recall is None or recall.is_audit:
            memory.classified(lookup, int(label), 0.99)
            right.append(True)
            continue
        early += 1
        right.append(memory.recalled(lookup) == label)
    return early / len(stream), np.array(right)


def test_while_the_scene_stays_both_recall_most_looks_and_are_right() -> None:
    stream = scene((0, 1, 2), 400, 2)
    for early, right in (printed(stream, 3), guarded(stream, 3)):
        assert early > 0.7
        assert right.mean() > 0.95


def test_the_printed_memory_takes_new_classes_for_old_ones_and_the_guarded_one_does_not() -> None:
    stream = np.concatenate([scene((0, 1), 200, 4), scene((3, 4, 5), 200, 5)])
    _, right = printed(stream, 6)
    assert right[200:].mean() < 0.5
    early, right = guarded(stream, 6)
    assert right[200:].mean() > 0.95
    assert early > 0.5
