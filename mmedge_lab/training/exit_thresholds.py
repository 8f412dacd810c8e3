"""When the exit head of a tap is sure enough to leave a classifier there (BranchyNet)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mmedge_lab.training.semantic_centres import least_safe
from mmedge_ros.data_types import FloatArray
from mmedge_ros.encoding.classifier_description import odds

# Above any odds: a tap with this threshold is never left.
NEVER = 1e15
_SCALE = 1e4


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
