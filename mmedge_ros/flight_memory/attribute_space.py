"""The space of embeddings that the heads of a recogniser span: what is likely of an object.

A vector holds a logarithm of probability for every class and every value of every attribute, so a
word is a place in it, and a query in words needs no training of its own. Every exit of the
recogniser has such a head, so all exits share the space.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmedge_ros.data_types import FloatArray
from mmedge_ros.encoding.classifier_description import ClassifierDescription
from mmedge_ros.flight_memory import FlightMemoryError
from mmedge_ros.flight_memory.moment import Vectors
from mmedge_ros.flight_memory.query import ParsedQuery

# Less likely than this (logarithm) is all the same. Values are kept around 0, so that four bits
# tell all of them apart.
_LEAST = -7.0
_MIDDLE = _LEAST / 2.0
# What the colour of a class is called in words; of a person it is that of the top.
_WHOLE = ('top', 'paint', '')


class AttributeSpace:
    """The classes and attributes of a recogniser as places in a vector of ``length`` values."""

    knows_all_words = False

    def __init__(self, description: ClassifierDescription) -> None:
        self._description = description
        names = description.classes
        labels = sorted(description.labels, key=len, reverse=True)
        self._labels = [
            next((one for one in labels if name.startswith(one)), '') for name in names
        ]
        self._colours = [
            name.removeprefix(label).strip()
            for name, label in zip(names, self._labels, strict=True)
        ]
        self._parts: dict[str, slice] = {}
        end = len(names)
        for part, values in description.attributes.items():
            self._parts[part] = slice(end, end + len(values))
            end += len(values)
        self.length = end

    def places(self) -> dict[str, Any]:
        """Return as plain data what `scores` goes by, for a page that rates views itself."""
        values = self._description.attributes
        return {
            'middle': _MIDDLE,
            'least': _LEAST,
            'whole': _WHOLE,
            'labels': self._labels,
            'colours': self._colours,
            'parts': {name: [part.start, values[name]] for name, part in self._parts.items()},
        }

    def vectors(self, logits: NDArray[np.floating]) -> Vectors:
        """Return the vectors (N, D) of what a head says (N, J + A): logits of classes, attributes.

        :raises FlightMemoryError: for another shape, or what is no number
        """
        if logits.ndim != 2 or logits.shape[1] != self.length or not np.isfinite(logits).all():
            raise FlightMemoryError(
                f'a head of shape {logits.shape} says nothing in a space of {self.length} values'
            )
        likely = np.empty(logits.shape)
        for part in (slice(0, len(self._labels)), *self._parts.values()):
            likely[:, part] = _log_shares(np.asarray(logits[:, part], float))
        return np.asarray(np.maximum(likely, _LEAST) - _MIDDLE, np.float32)

    def scores(self, query: ParsedQuery, vectors: Vectors) -> FloatArray:
        """Return the logarithms (N,) of how likely views (N, D) are what the words say.

        What no word says, and attributes that the recogniser does not know, change nothing.
        """
        likely = np.asarray(vectors, float) + _MIDDLE
        # A key frame has no vector, and fits no words.
        likely[~vectors.any(axis=1)] = _LEAST
        subject, scores = query.subject, np.zeros(len(vectors))
        colours = [value for part, value in subject.attributes if part in _WHOLE]
        fits = [
            (not subject.labels or label in subject.labels) and (not colours or colour in colours)
            for label, colour in zip(self._labels, self._colours, strict=True)
        ]
        if any(fits) and not all(fits):
            chosen = likely[:, : len(fits)][:, fits]
            scores += np.logaddexp.reduce(chosen, axis=1)
        for part, value in subject.attributes:
            values = self._description.attributes.get(part, ())
            if part not in _WHOLE and value in values:
                scores += likely[:, self._parts[part].start + values.index(value)]
        return scores


def _log_shares(logits: FloatArray) -> FloatArray:
    shifted = logits - logits.max(axis=1, keepdims=True)
    shares: FloatArray = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    return shares
