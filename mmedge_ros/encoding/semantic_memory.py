"""Recognises what was just met from the first layers of a classifier (SMTM, arXiv 2112.02644).

A classifier with taps gives a vector after each block: the mean of its feature map. Every class
has a centre at every tap. An object is looked up tap by tap; where its accumulated similarity to
one class is far enough above that to every other, the rest of the classifier need not run.

The rule as printed compares hot classes with each other only: an object of another class still
leaves early, as one of them, and is learned as such. Here the best class must be hot, and the
runner-up is sought among all classes; vectors are whitened; each tap has a threshold of its own
from data held out; what is learned must be twice as sure as what is recalled; and every so often
a hit is checked by the whole classifier.
"""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mmedge_ros.core.data_types import FloatArray
from mmedge_ros.core.untrusted_files import read_bounded
from mmedge_ros.encoding import EncodingError
from mmedge_ros.encoding.bundle.number_file import unpacked
from mmedge_ros.encoding.hot_classes import HotClasses

_TINY = 1e-9
# Checked hits that agreement is taken over, and from how many on it counts.
_CHECKED, _FEWEST_CHECKED = 50, 10
# Where too many checked hits were wrong, thresholds rise by this factor each time.
_STRICTER = 1.25
_STRICTEST = 10.0
_MOST_LAYERS = 64
# A memory of 5 MB is large: 100 classes with 8 taps of 512 values take 3 MB.
_LARGEST_BYTES = 64 << 20
_REMEDY = 'fit the semantic memory of this classifier again'
_OF_LAYER, _OF_ALL = ('centres', 'origin', 'whitening'), ('counts', 'thresholds')


class SemanticCentres(NamedTuple):
    """What a semantic memory begins with: L taps, J classes, vectors of D_l values at tap l.

    ``centres`` are (J, D_l) for each tap, ``counts`` (J,) how many vectors each is the mean of.
    Vectors less the ``origins`` (D_l,) of their tap, times its ``whitening`` (D_l, R_l), lie apart
    equally far in all directions within a class. ``thresholds`` (L,) of the margin are inf where a
    tap must not recall.
    """

    centres: tuple[FloatArray, ...]
    counts: FloatArray
    origins: tuple[FloatArray, ...]
    whitening: tuple[FloatArray, ...]
    thresholds: FloatArray


@dataclass(frozen=True)
class SemanticMemoryParameters:
    """How careful a semantic memory is."""

    # So many hits until one is checked by the whole classifier.
    audit_every: int = 64
    # Share of wrong hits above which thresholds rise.
    error: float = 0.02
    # The classifier must be so sure of a class that its centres learn.
    sure: float = 0.9
    # Centres move as if they were the mean of at most so many vectors.
    most_counted: int = 50


class Recall(NamedTuple):
    """A class recalled after the tap ``layer``; ``is_audit``: run the rest, and tell."""

    label: int
    layer: int
    margin: float
    is_audit: bool


class Lookup:
    """One object on its way through the classifier; made by `SemanticMemory.lookup`."""

    def __init__(self, memory: SemanticMemory) -> None:
        self._memory = memory
        self.vectors: list[FloatArray] = []
        self.recall: Recall | None = None
        self._total: FloatArray | None = None

    def add(self, vector: FloatArray) -> Recall | None:
        """Take the vector (D_l,) of the next tap; return what is recalled, if anything is.

        A vector that is not finite recalls nothing, nor do those after it.

        :raises EncodingError: for a vector of another size, or one more than there are taps
        """
        layer = len(self.vectors)
        self.vectors.append(self._memory.checked(vector, layer))
        if self.recall is None:
            similarity = 2.0**layer * self._memory.similarity(self.vectors[-1], layer)
            self._total = similarity if self._total is None else self._total + similarity
            self.recall = self._memory.decided(self._total / (2.0 ** (layer + 1) - 1.0), layer)
        return self.recall


class SemanticMemory:
    """The guarded semantic memory of one classifier; belongs to one thread.

    ``agreement`` is the share of checked hits that the whole classifier confirmed, NaN before the
    first.

    :raises EncodingError: if the centres do not fit together
    """

    def __init__(
        self,
        centres: SemanticCentres,
        hot: HotClasses | None = None,
        parameters: SemanticMemoryParameters | None = None,
    ) -> None:
        require_fitting(centres)
        self._given = centres
        self._parameters = parameters or SemanticMemoryParameters()
        self.hot = hot or HotClasses(len(centres.centres[0]))
        self.reset()

    def reset(self) -> None:
        """Forget all that was met and learned in flight."""
        self.hot.reset()
        self._centres = [centres.copy() for centres in self._given.centres]
        self._counts = np.tile(self._given.counts.astype(float), (len(self._centres), 1))
        self._white = [self._whitened(c, layer) for layer, c in enumerate(self._centres)]
        self._hits = 0
        self._checked: list[bool] = []
        self._strictness = 1.0

    @property
    def layers(self) -> int:
        """How many taps there are."""
        return len(self._centres)

    @property
    def classes(self) -> int:
        """How many classes there are."""
        return len(self._centres[0])

    @property
    def agreement(self) -> float:
        return float(np.mean(self._checked)) if self._checked else float('nan')

    @property
    def bytes(self) -> int:
        """What the memory holds, in bytes."""
        arrays = (*self._centres, *self._white, *self._given.whitening, self._counts)
        return sum(array.nbytes for array in arrays)

    def lookup(self) -> Lookup:
        """Begin with an object."""
        return Lookup(self)

    def recalled(self, lookup: Lookup) -> int:
        """Enter a hit that is not checked; return its class.

        :raises EncodingError: if nothing was recalled, or the hit is to be checked
        """
        recall = lookup.recall
        if recall is None or recall.is_audit:
            raise EncodingError('no hit to enter: run the whole classifier, and tell its class')
        self._hits += 1
        if recall.margin >= 2.0 * self._threshold(recall.layer):
            self._learn(recall.label, lookup.vectors[: recall.layer + 1])
        self.hot.met(recall.label)
        return recall.label

    def classified(self, lookup: Lookup, label: int, certainty: float) -> None:
        """Enter what the whole classifier says, of a miss or of a hit that was checked.

        :param certainty: 0..1 of the class
        :raises EncodingError: for a class that there is not
        """
        if not 0 <= label < len(self._centres[0]):
            raise EncodingError(f'no class {label}: there are {len(self._centres[0])}')
        if lookup.recall is not None:
            self._hits += 1
            self._check(lookup.recall.label == label)
        if certainty >= self._parameters.sure:
            self._learn(label, lookup.vectors)
        self.hot.met(label)

    def checked(self, vector: FloatArray, layer: int) -> FloatArray:
        """Return a vector of a tap as floats.

        :raises EncodingError: if it does not fit
        """
        if layer >= self.layers:
            raise EncodingError(f'a vector after the last of {self.layers} taps')
        values = np.asarray(vector, float)
        if values.shape != self._centres[layer].shape[1:]:
            raise EncodingError(
                f'a vector of shape {values.shape} at tap {layer + 1}, which has '
                f'{self._centres[layer].shape[1]} values; classifier and memory must be of one '
                'bundle'
            )
        return values

    def similarity(self, vector: FloatArray, layer: int) -> FloatArray:
        """Return the cosines (J,) between a vector and the centres of a tap, whitened."""
        with np.errstate(invalid='ignore', over='ignore'):
            white = ((vector - self._given.origins[layer])[None] @ self._given.whitening[layer])[0]
            length = math.sqrt(np.add.reduce(white * white))
            similarity: FloatArray = self._white[layer] @ (white / max(length, _TINY))
        return similarity

    def decided(self, similarity: FloatArray, layer: int) -> Recall | None:
        """Return what similarities (J,) accumulated up to a tap recall."""
        threshold = self._threshold(layer)
        if not np.isfinite(threshold) or not np.isfinite(similarity).all():
            return None
        scores = similarity.copy()
        best = int(scores.argmax())
        if not self.hot.hot[best]:
            return None
        highest, scores[best] = float(scores[best]), -np.inf
        margin = highest - float(scores.max()) if len(scores) > 1 else 0.0
        if margin < threshold:
            return None
        is_audit = (self._hits + 1) % self._parameters.audit_every == 0
        return Recall(best, layer, margin, is_audit)

    def _whitened(self, vectors: FloatArray, layer: int) -> FloatArray:
        return whitened(vectors, self._given.origins[layer], self._given.whitening[layer])

    def _threshold(self, layer: int) -> float:
        if self._strictness > _STRICTEST:
            return float('inf')
        return float(self._given.thresholds[layer]) * self._strictness

    def _check(self, is_right: bool) -> None:
        self._checked = [*self._checked[-_CHECKED + 1 :], is_right]
        enough = len(self._checked) >= _FEWEST_CHECKED
        if enough and not is_right and 1.0 - self.agreement > self._parameters.error:
            self._strictness *= _STRICTER

    def _learn(self, label: int, vectors: Sequence[FloatArray]) -> None:
        """Move the centres of a class towards the vectors of the taps that were passed."""
        for layer, vector in enumerate(vectors):
            if not np.isfinite(vector).all():
                return
            count = min(self._counts[layer, label], self._parameters.most_counted)
            centre = self._centres[layer][label]
            centre += (vector - centre) / (count + 1.0)
            self._counts[layer, label] = count + 1.0
            self._white[layer][label] = self._whitened(centre[None], layer)[0]


def whitened(vectors: FloatArray, origin: FloatArray, whitening: FloatArray) -> FloatArray:
    """Return vectors (N, D) whitened (N, R), of length 1; those without a length stay without."""
    white = (vectors - origin) @ whitening
    lengths = np.linalg.norm(white, axis=1, keepdims=True)
    unit: FloatArray = white / np.maximum(lengths, _TINY)
    return unit


def accumulated(similarities: Sequence[FloatArray]) -> FloatArray:
    """Return similarities to classes over the taps so far, deeper ones twice as heavy each.

    :param similarities: cosines of one shape (..., J), for each tap so far
    """
    total: FloatArray = sum(
        (2.0**layer * similarity for layer, similarity in enumerate(similarities)),
        np.zeros_like(similarities[0]),
    )
    return total / (2.0 ** len(similarities) - 1.0)


def require_fitting(centres: SemanticCentres) -> None:
    """Make sure that the parts fit together.

    :raises EncodingError: if they do not, or hold what is no number
    """
    layers = len(centres.centres)
    parts = (centres.origins, centres.whitening, centres.thresholds)
    sizes = tuple(len(part) for part in parts)
    if not layers or set(sizes) != {layers}:
        raise EncodingError(
            f'{layers} taps with centres, and {sizes} origins, whitenings and thresholds; '
            'make the semantic memory anew'
        )
    classes = len(centres.counts)
    for layer, (known, origin, white) in enumerate(
        zip(centres.centres, centres.origins, centres.whitening, strict=True)
    ):
        fits = white.ndim == 2 and known.shape == (classes, len(white))
        fits = fits and origin.shape == (len(white),)
        if not fits or not all(np.isfinite(part).all() for part in (known, origin, white)):
            raise EncodingError(
                f'tap {layer + 1}: centres {known.shape} of {classes} classes, origin '
                f'{origin.shape} and whitening {white.shape} do not fit, or hold what is no '
                'number; make the semantic memory anew'
            )


def centres_as_bytes(centres: SemanticCentres) -> bytes:
    """Return a file that `read_centres` reads; values are kept as float32."""
    arrays: dict[str, FloatArray] = {'counts': centres.counts, 'thresholds': centres.thresholds}
    for layer in range(len(centres.centres)):
        arrays[f'centres_{layer}'] = centres.centres[layer]
        arrays[f'origin_{layer}'] = centres.origins[layer]
        arrays[f'whitening_{layer}'] = centres.whitening[layer]
    file = io.BytesIO()
    kept: dict[str, Any] = {name: array.astype(np.float32) for name, array in arrays.items()}
    np.savez(file, **kept)
    return file.getvalue()


def read_centres(path: Path) -> SemanticCentres:
    """Read semantic centres.

    :raises EncodingError: if the file cannot be read, or its parts do not fit together
    """
    content = read_bounded(path, _LARGEST_BYTES, EncodingError, _REMEDY)
    try:
        arrays = {n: a.astype(float) for n, a in unpacked(content, _LARGEST_BYTES).items()}
    except (ValueError, TypeError) as err:
        raise EncodingError(f'{path} cannot be read ({err}); {_REMEDY}') from err
    layers = sum(name.startswith('centres_') for name in arrays)
    expected = {f'{part}_{layer}' for part in _OF_LAYER for layer in range(layers)} | {*_OF_ALL}
    if not 1 <= layers <= _MOST_LAYERS or expected != set(arrays):
        names = ', '.join(sorted(arrays))[:200]
        raise EncodingError(f'{path} holds {names}, which is no semantic memory; {_REMEDY}')
    known, origins, white = (
        tuple(arrays[f'{part}_{layer}'] for layer in range(layers)) for part in _OF_LAYER
    )
    centres = SemanticCentres(known, arrays['counts'], origins, white, arrays['thresholds'])
    try:
        require_fitting(centres)
    except EncodingError as err:
        raise EncodingError(f'{path}: {err}') from err
    return centres
