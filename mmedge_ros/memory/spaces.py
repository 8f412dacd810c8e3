"""Spaces of embeddings, which rate how well views fit words."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmedge_ros.core.data_types import FloatArray
from mmedge_ros.encoding import EncodingError
from mmedge_ros.encoding.bundle.manifest import MANIFEST
from mmedge_ros.encoding.bundle.weights import sha256_of
from mmedge_ros.encoding.classifier_description import ClassifierDescription, describe_classifier
from mmedge_ros.encoding.image_text_pair import TextNetwork
from mmedge_ros.encoding.pair_description import PairDescription, describe_pair
from mmedge_ros.memory import FlightMemoryError
from mmedge_ros.memory.moment import Vectors
from mmedge_ros.memory.query import ParsedQuery
from mmedge_ros.memory.store import unit
from mmedge_ros.memory.store_file import StoreHeader

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
        """Return the parts of a vector as plain data, for a page that rates views itself."""
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
        """Return the vectors (N, D) of a head's logits (N, J + A) of classes and attributes.

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
        """Return the log-likelihoods (N,) that views (N, D) show what the words say.

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


class PairSpace:
    """The space of a pair; the text network is opened when words are first rated."""

    knows_all_words = True

    def __init__(self, description: PairDescription) -> None:
        self._description = description

    def vector_of(self, words: str) -> Vectors:
        """Return where words lie, (D,).

        :raises EncodingError: if the text network cannot be opened, or fails
        """
        return spread(self._text.of(words))

    def scores(self, query: ParsedQuery, vectors: Vectors) -> FloatArray:
        """Return the cosines (N,) between the words of the subject and views (N, D).

        :raises EncodingError: as `vector_of` does
        :raises FlightMemoryError: if the views have vectors of another length
        """
        words = self.vector_of(' '.join(query.subject.words))
        if vectors.shape[1] != len(words):
            raise FlightMemoryError(
                f'a memory of {vectors.shape[1]} values, and the text network puts out '
                f'{len(words)}; build the memory again (mmedge memory build)'
            )
        return np.asarray(unit(vectors) @ words, float)

    def places(self) -> dict[str, Any]:
        """Return nothing: a page cannot run the text network, and rates no words."""
        return {}

    @cached_property
    def _text(self) -> TextNetwork:
        return TextNetwork(self._description)


Space = AttributeSpace | PairSpace


def scorer_for(bundles: Iterable[Path]) -> Callable[[StoreHeader], Space]:
    """Return what finds the scorer of a memory among bundles and pairs; damaged ones are left out.

    It raises FlightMemoryError if what made the memory is not among these.
    """
    spaces: dict[str, Space] = {}
    for folder in bundles:
        try:
            description, pair = describe_classifier(folder), describe_pair(folder)
            if description is not None:
                spaces[sha256_of(folder / MANIFEST)] = AttributeSpace(description)
            elif pair is not None:
                spaces[sha256_of(folder / MANIFEST)] = PairSpace(pair)
        except (EncodingError, OSError):
            continue  # of a damaged bundle `mmedge model list` says so

    def find(header: StoreHeader) -> Space:
        space = spaces.get(header.manifest)
        # A pair is opened, and known, when it rates.
        is_other = isinstance(space, AttributeSpace) and space.length != header.length
        if space is None or is_other:
            raise _absent(header)
        return space

    return find


def bundle_of(header: StoreHeader, bundles: Iterable[Path]) -> Path:
    """Return the bundle that made the vectors of a memory.

    :raises FlightMemoryError: if it is not among them
    """
    for folder in bundles:
        try:
            if sha256_of(folder / MANIFEST) == header.manifest:
                return folder
        except EncodingError:
            continue  # it cannot be read
    raise _absent(header)


def _absent(header: StoreHeader) -> FlightMemoryError:
    return FlightMemoryError(
        f'the bundle that made this memory (manifest {header.manifest[:12]}) is not here; '
        'name it with --encoder, or build the memory again (mmedge memory build)'
    )


def spread(vector: Vectors) -> Vectors:
    """Return a vector (D,) rotated so that each value is spread over all of them.

    Lengths and angles stay. Networks may have a value that is large in every vector; four bits
    with one scale would keep that one and round the others, which tell vectors apart, to 0.
    """
    from scipy.fft import dct  # as late as the networks

    return np.asarray(dct(vector, norm='ortho'), np.float32)
