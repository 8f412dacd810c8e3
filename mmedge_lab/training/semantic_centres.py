"""When a classifier is left early: centres, whitening and thresholds from labelled crops.

Of a semantic memory, and of the exit head of a tap (BranchyNet).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mmedge_ros.core.data_types import FloatArray
from mmedge_ros.encoding.classifier_description import odds
from mmedge_ros.encoding.semantic_memory import SemanticCentres, accumulated, whitened

# Share of the within-class covariance that is replaced by its mean variance: with fewer vectors
# than dimensions it has directions without any spread, in which noise would decide.
_SHRUNK = 0.2
_TINY = 1e-9
_DIGITS = 6
# Above any odds: a tap with this threshold is never left.
NEVER = 1e15
_SCALE = 1e4


def fit_semantic_centres(
    vectors: Sequence[FloatArray],
    labels: Sequence[int],
    held_out: Sequence[FloatArray],
    held_out_labels: Sequence[int],
    error: float = 0.02,
    whole: Sequence[int] | None = None,
    classes: int | None = None,
) -> SemanticCentres:
    """Fit centres and whitening on some vectors, and thresholds on others.

    A threshold is the least margin from which on, of the held-out objects that left at no earlier
    tap, at most a share ``error`` would be recalled wrongly: (wrong + 1) / (recalled + 2), so
    that few objects prove nothing. It is inf where there is no such margin. Thresholds hold for
    objects of all classes alike: what is hot has no weight.

    :param vectors: (N, D_l) for each tap
    :param labels: (N,), 0 to J - 1; each class must be there, unless ``classes`` are given
    :param held_out: (M, D_l) for each tap, of other objects
    :param held_out_labels: (M,)
    :param whole: (M,) what the whole classifier says of the held-out objects: then ``error`` is by
        how much the share of right ones may fall below its own, because running on would not
        help where it is wrong as well
    :param classes: J; those without a vector lie in the middle of the others, as near to one as
        to another, until the first of them is met
    """
    known = np.asarray(labels, int)
    counts = np.bincount(known, minlength=classes or 0).astype(float)
    there = counts > 0.0
    centres, origins, whitening = [], [], []
    for of_tap in vectors:
        means = np.zeros((len(counts), of_tap.shape[1]))
        means[there] = [of_tap[known == j].mean(axis=0) for j in np.flatnonzero(there)]
        origin = means[there].mean(axis=0)
        means[~there] = origin
        centres.append(means)
        origins.append(origin)
        whitening.append(_whitening(of_tap - means[known]))
    unsafe = np.full(len(centres), np.inf)
    fitted = SemanticCentres(tuple(centres), counts, tuple(origins), tuple(whitening), unsafe)
    return with_thresholds(fitted, held_out, held_out_labels, error, whole)


def with_thresholds(
    centres: SemanticCentres,
    held_out: Sequence[FloatArray],
    held_out_labels: Sequence[int],
    error: float,
    whole: Sequence[int] | None = None,
) -> SemanticCentres:
    """Return centres with thresholds of another ``error``; see `fit_semantic_centres`."""
    parts = zip(held_out, centres.centres, centres.origins, centres.whitening, strict=True)
    similarities = [
        whitened(held, origin, white) @ whitened(known, origin, white).T
        for held, known, origin, white in parts
    ]
    labels = np.asarray(held_out_labels, int)
    said = labels if whole is None else np.asarray(whole, int)
    return centres._replace(thresholds=_thresholds(similarities, labels, error, said))


def _whitening(apart: FloatArray) -> FloatArray:
    """Return the symmetric inverse root (D, D) of the shrunk covariance of vectors (N, D)."""
    covariance = apart.T @ apart / len(apart)
    size = len(covariance)
    mean = np.trace(covariance) / size
    shrunk = (1.0 - _SHRUNK) * covariance + (_SHRUNK * mean + _TINY) * np.eye(size)
    values, axes = np.linalg.eigh(shrunk)
    root: FloatArray = (axes / np.sqrt(values)) @ axes.T
    return root


def _thresholds(
    similarities: Sequence[FloatArray], labels: np.ndarray, error: float, whole: np.ndarray
) -> FloatArray:
    """Return the least safe margin at each tap, for what is left of the objects (M,) by then."""
    left = np.ones(len(labels), np.bool_)
    thresholds = np.full(len(similarities), np.inf)
    for layer in range(len(similarities)):
        scores = accumulated(similarities[: layer + 1])
        ordered = np.sort(scores, axis=1)
        margins = ordered[:, -1] - (ordered[:, -2] if scores.shape[1] > 1 else 0.0)
        wrong = (scores.argmax(axis=1) != labels).astype(int) - (whole != labels)
        thresholds[layer] = least_safe(margins[left], wrong[left], error)
        left &= margins < thresholds[layer]
    return thresholds


def least_safe(margins: FloatArray, wrong: np.ndarray, error: float) -> float:
    """Return the least margin from which on at most a share ``error`` of objects go wrong.

    Few objects prove nothing: one more is taken to go wrong, of two more.

    :param margins: (M,) of the objects
    :param wrong: (M,) 1 for those that leaving makes wrong, -1 for those it puts right, else 0
    :return: inf where there is no such margin
    """
    order = np.argsort(-margins, kind='stable')
    recalled = np.arange(1, len(order) + 1)
    safe = np.flatnonzero((np.cumsum(wrong[order]) + 1) / (recalled + 2) <= error)
    # Above no margin: nothing is told apart there.
    least = float(margins[order][safe[-1]]) if len(safe) else np.inf
    return round(least, _DIGITS) if least > 0.0 else np.inf


def fit_exits(
    heads: Sequence[FloatArray | None],
    whole: NDArray[np.integer],
    labels: NDArray[np.integer],
    error: float,
) -> tuple[float, ...]:
    """Return the least odds of each head, fitted as the thresholds of a semantic memory are.

    :param heads: logits (M, J) of each tap's head for held-out crops; None where it has none
    :param whole: (M,) what the whole classifier says of them
    :param labels: (M,) what they are
    :param error: by how much the share of right ones may fall below the whole classifier's
    :return: `NEVER` for a tap that is not safe to leave
    """
    left, thresholds = np.ones(len(labels), np.bool_), []
    whole_wrong = (whole != labels).astype(int)
    for logits in heads:
        if logits is None:
            thresholds.append(NEVER)
            continue
        said = logits.argmax(axis=1)
        sure = np.array([odds(row, best) for row, best in zip(logits, said, strict=True)])
        wrong = (said != labels).astype(int) - whole_wrong
        least = least_safe(sure[left], wrong[left], error)
        # Downwards, or those just at it would stay.
        thresholds.append(math.floor(least * _SCALE) / _SCALE if math.isfinite(least) else NEVER)
        left &= sure < thresholds[-1]
    return tuple(thresholds)
