"""Outputs of a classifier of two stages and three classes, as they are kept for the bench."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from tiny_recogniser import tiny_centres

from mmedge_lab.rivals.smtm.subject import KeptOutputs
from mmedge_ros.encoding.semantic_memory import SemanticCentres

STAGE_SECONDS = np.array([0.001, 0.003])


def centres_of(threshold: float = 0.2) -> SemanticCentres:
    """Each of three classes lies on its axis."""
    return tiny_centres(threshold)


def outputs_of(labels: Sequence[int] | Any, vectors: Any = None, heads: Any = None) -> KeptOutputs:
    """The whole classifier is right and sure; by default so is its only tap."""
    axes = np.eye(3)[np.asarray(labels)]
    return KeptOutputs(
        (axes if vectors is None else np.asarray(vectors, float),),
        (None if heads is None else np.asarray(heads, float),),
        0.97 * axes + 0.01,
        STAGE_SECONDS,
        np.zeros(1),
    )
