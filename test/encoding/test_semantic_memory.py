"""Objects of hot classes are recognised early; what is not sure runs through."""

from __future__ import annotations

import io
import math
from pathlib import Path

import numpy as np
import pytest
from tiny_recogniser import tiny_centres

from mmedge_ros.core.data_types import FloatArray
from mmedge_ros.encoding import EncodingError
from mmedge_ros.encoding.semantic_memory import (
    Lookup,
    SemanticCentres,
    SemanticMemory,
    SemanticMemoryParameters,
    centres_as_bytes,
    read_centres,
)

CLASSES, LAYERS = 4, 3
SIZES = (6, 8, 5)


def centres(threshold: float = 0.3, **changes: object) -> SemanticCentres:
    """Class j is the j-th axis at each tap."""
    made = SemanticCentres(
        tuple(np.eye(CLASSES, size) for size in SIZES),
        np.full(CLASSES, 10.0),
        tuple(np.zeros(size) for size in SIZES),
        tuple(np.eye(size) for size in SIZES),
        np.full(LAYERS, threshold),
    )
    return made._replace(**changes)


def memory(hot: tuple[int, ...] = (0, 1), **changes: object) -> SemanticMemory:
    made = SemanticMemory(centres(**changes))
    for label in hot:
        made.hot.met(label)
    return made


def vector(layer: int, *weights: float) -> FloatArray:
    made = np.zeros(SIZES[layer])
    made[: len(weights)] = weights
    return made


def looked_up(subject: SemanticMemory, *weights: float, layers: int = LAYERS) -> Lookup:
    lookup = subject.lookup()
    for layer in range(layers):
        lookup.add(vector(layer, *weights))
    return lookup


def test_an_object_at_the_centre_of_a_hot_class_is_recalled_at_the_first_tap() -> None:
    lookup = memory().lookup()
    recall = lookup.add(vector(0, 2.0))
    assert recall is not None
    assert (recall.label, recall.layer, recall.is_audit) == (0, 0, False)
    assert recall.margin == pytest.approx(1.0)


def test_an_object_of_a_class_that_is_not_hot_is_not_recalled_however_near_it_is() -> None:
    assert looked_up(memory(hot=(0, 1)), 0.0, 0.0, 1.0).recall is None


def test_what_the_first_tap_leaves_open_a_later_one_may_decide() -> None:
    lookup = memory().lookup()
    assert lookup.add(vector(0, 1.0, 0.9)) is None
    recall = lookup.add(vector(1, 1.0))
    assert recall is not None
    assert (recall.label, recall.layer) == (0, 1)


def test_centres_follow_what_changes_slowly_and_remember_no_more_than_so_many() -> None:
    subject = memory(hot=(0,) * 20)
    for step in range(200):
        lookup = looked_up(subject, 1.0, 0.0, 0.0, 0.0, min(step / 50.0, 2.0), layers=1)
        if lookup.recall is None or lookup.recall.is_audit:
            subject.classified(lookup, 0, 0.95)
        else:
            assert subject.recalled(lookup) == 0
    assert subject.similarity(vector(0, 1.0, 0.0, 0.0, 0.0, 2.0), 0)[0] > 0.95


def test_a_doubtful_class_moves_no_centre() -> None:
    subject = memory()
    odd = vector(0, 0.0, 1.0, 1.0)
    before = subject.similarity(odd, 0)
    lookup = subject.lookup()
    lookup.add(odd)
    subject.classified(lookup, 2, 0.5)
    assert subject.similarity(odd, 0) == pytest.approx(before)
    subject.classified(lookup, 2, 0.95)
    assert subject.similarity(odd, 0)[2] > before[2]


def test_every_so_many_hits_one_is_checked_and_agreement_is_told() -> None:
    subject = SemanticMemory(centres(), parameters=SemanticMemoryParameters(audit_every=4))
    subject.hot.met(0)
    assert math.isnan(subject.agreement)
    audits = []
    for _ in range(8):
        lookup = looked_up(subject, 1.0, layers=1)
        assert lookup.recall is not None
        audits.append(lookup.recall.is_audit)
        if lookup.recall.is_audit:
            subject.classified(lookup, 0, 0.99)
        else:
            subject.recalled(lookup)
    assert audits == [False, False, False, True] * 2
    assert subject.agreement == 1.0


def test_a_memory_that_is_wrong_too_often_ends_up_recalling_nothing() -> None:
    subject = SemanticMemory(centres(), parameters=SemanticMemoryParameters(audit_every=1))
    for _ in range(100):
        subject.hot.met(0)
        lookup = looked_up(subject, 1.0)
        if lookup.recall is None:
            break
        subject.classified(lookup, 1, 0.5)
    assert lookup.recall is None
    assert subject.agreement == 0.0
    subject.reset()
    subject.hot.met(0)
    assert looked_up(subject, 1.0).recall is not None


@pytest.mark.parametrize('value', [math.nan, math.inf])
def test_what_is_no_number_recalls_nothing_and_is_not_learned(value: float) -> None:
    subject = memory()
    lookup = subject.lookup()
    lookup.add(np.full(SIZES[0], value))
    assert lookup.add(vector(1, 1.0)) is None
    subject.classified(lookup, 0, 0.99)
    assert np.isfinite(subject.similarity(vector(0, 1.0), 0)).all()


def test_vectors_of_another_classifier_are_refused() -> None:
    subject = memory()
    with pytest.raises(EncodingError, match=r'shape \(7,\) at tap 1, which has 6'):
        subject.lookup().add(np.zeros(7))
    lookup = looked_up(subject, 0.1, 0.1)
    with pytest.raises(EncodingError, match='after the last of 3 taps'):
        lookup.add(np.zeros(6))
    with pytest.raises(EncodingError, match='no class 4'):
        subject.classified(lookup, 4, 1.0)


@pytest.mark.parametrize(
    'changes',
    [
        {'centres': ()},
        {'thresholds': np.zeros(2)},
        {'counts': np.zeros(3)},
        {'origins': tuple(np.zeros(size + 1) for size in SIZES)},
        {'whitening': tuple(np.eye(size + 1) for size in SIZES)},
        {'centres': tuple(np.full((CLASSES, size), math.nan) for size in SIZES)},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_centres_that_do_not_fit_together_are_refused(changes: dict[str, object]) -> None:
    with pytest.raises(EncodingError, match='make the semantic memory anew'):
        SemanticMemory(centres(**changes))


def arrays(content: bytes) -> dict[str, np.ndarray]:
    with np.load(io.BytesIO(content)) as file:
        return {name: file[name] for name in file.files}


def written(path: Path, content: dict[str, np.ndarray]) -> Path:
    np.savez(path, **content)
    return path


def test_centres_come_back_as_they_were_with_thresholds_that_recall_nothing(
    tmp_path: Path,
) -> None:
    centres = tiny_centres(float('inf'))
    path = tmp_path / 'memory.npz'
    path.write_bytes(centres_as_bytes(centres))
    back = read_centres(path)
    for one, other in zip(back, centres, strict=True):
        np.testing.assert_array_equal(one, other)


def test_what_is_missing_unknown_or_does_not_fit_is_refused(tmp_path: Path) -> None:
    whole = arrays(centres_as_bytes(tiny_centres()))
    path = tmp_path / 'memory.npz'
    for spoiled in (
        {name: value for name, value in whole.items() if name != 'origin_0'},
        {**whole, 'centres_0': np.zeros((2, 3))},
        {**whole, 'centres_0': np.full((3, 3), np.nan)},
        {**whole, 'thresholds': np.zeros(2)},
        {**whole, 'counts': np.array(['a', 'b', 'c'])},
        {**whole, 'priors': np.zeros(1)},
        {},
    ):
        with pytest.raises(EncodingError, match=r'memory\.npz'):
            read_centres(written(path, spoiled))


def test_an_object_that_is_as_near_to_a_class_that_is_not_hot_runs_through() -> None:
    assert looked_up(memory(hot=(0,)), 1.0, 0.0, 0.95).recall is None


def test_a_tap_without_a_threshold_recalls_nothing() -> None:
    subject = memory(thresholds=np.array([math.inf, math.inf, 0.3]))
    lookup = looked_up(subject, 1.0)
    assert lookup.recall is not None
    assert lookup.recall.layer == 2


def test_a_hit_that_is_to_be_checked_is_not_taken_unchecked() -> None:
    subject = SemanticMemory(centres(), parameters=SemanticMemoryParameters(audit_every=1))
    subject.hot.met(0)
    with pytest.raises(EncodingError, match='run the whole classifier'):
        subject.recalled(looked_up(subject, 1.0))
    with pytest.raises(EncodingError, match='run the whole classifier'):
        subject.recalled(subject.lookup())
