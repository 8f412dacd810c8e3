"""A classifier in stages with a tap after each, and the semantic memory that leaves it early."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmedge_ros.core.data_types import FloatArray, LabelSource
from mmedge_ros.encoding import EncodingError
from mmedge_ros.encoding.classifier_description import (
    ATTRIBUTES,
    EXIT,
    LOGITS,
    ClassifierDescription,
    odds,
    softmax,
)
from mmedge_ros.encoding.semantic_memory import SemanticMemory, read_centres
from mmedge_ros.encoding.tapped_network import TappedNetwork, TapState

_NO_ATTRIBUTES, _NO_SHARES = np.zeros(0, np.float32), np.zeros(0)


class Look(NamedTuple):
    """What a classifier says of one crop.

    ``label`` is the number of the class, ``certainty`` 0..1 (NaN of one that was recalled);
    ``exit`` counts the stages that ran. ``attributes`` (A,) are logits, empty where there are
    none; ``shares`` (J,) are the probabilities of all classes, empty of one that was recalled.
    """

    label: int
    certainty: float
    source: LabelSource
    exit: int
    attributes: NDArray[np.float32] = _NO_ATTRIBUTES
    shares: FloatArray = _NO_SHARES


class TappedClassifier:
    """Runs a classifier whole or stage by stage; belongs to one thread.

    :param stages: files of the stages, of which the last puts out ``logits``
    :raises EncodingError: if a file cannot be opened, or puts out something else
    """

    def __init__(self, classes: Sequence[str], stages: Sequence[Path], threads: int = 1) -> None:
        self.classes = tuple(classes)
        self.network = TappedNetwork(stages, threads)
        if LOGITS not in self.network.outputs:
            raise EncodingError(
                f'{self.network.place} puts out {", ".join(self.network.outputs)}; the last stage '
                f'of a classifier must put out {LOGITS}'
            )

    @property
    def taps(self) -> int:
        """How many stages can be left: all but the last."""
        return self.network.blocks - 1

    def classify(self, blob: NDArray[np.float32]) -> tuple[FloatArray, NDArray[np.float32]]:
        """Run everything; return the probabilities (J,) and the logits of attributes (A,).

        :param blob: (1, 3, H, W)
        :raises EncodingError: if the network fails, or does not put out a number for each class
        """
        return self.outcome(self.network.start(blob))

    def outcome(self, state: TapState) -> tuple[FloatArray, NDArray[np.float32]]:
        """Run what is left; return what `classify` does."""
        tensors = self.network.finish(state)
        logits = np.asarray(tensors[LOGITS], float).reshape(-1)
        if logits.shape != (len(self.classes),):
            raise EncodingError(
                f'{self.network.place} puts out logits of shape {logits.shape} for '
                f'{len(self.classes)} classes; use weights and manifest of one and the same bundle'
            )
        if not np.isfinite(logits).all():
            raise EncodingError(
                f'{self.network.place} put out logits that are not finite; the crop is not '
                'recognised. If it happens often, look at mean and deviation of its input'
            )
        return softmax(logits), _flat(tensors.get(ATTRIBUTES))

    def at_exit(self, state: TapState) -> NDArray[np.float32]:
        """Return what the head of the last stage that ran says (J + A,); empty without a head."""
        return _flat(state.made.get(EXIT.format(state.block)))


@dataclass
class LookCounts:
    """What became of the crops: how many left at each exit, and how many ran through.

    ``seconds`` is the processor's time, lookups included; the share that was saved compares it
    with the mean time of the whole classifier alone, ``full_seconds`` for those that ran through.
    """

    exits: list[int]
    full: int = 0
    seconds: float = 0.0
    full_seconds: float = 0.0

    @property
    def looks(self) -> int:
        return sum(self.exits) + self.full

    @property
    def saved(self) -> float:
        """Share of the time that was saved; NaN before the first crop that ran through."""
        if not self.full or not self.full_seconds:
            return float('nan')
        return 1.0 - self.seconds / (self.looks * self.full_seconds / self.full)


class MemorisedClassifier:
    """A classifier that is left as soon as it is known what a crop shows; one thread's.

    Its semantic memory may recall the class, or the head of a tap may be sure of it.

    :param memory: None asks the heads
    :param exits: the least odds at which the head of each tap is believed; () runs every crop
        through
    :raises EncodingError: if memory and classifier do not fit together
    """

    def __init__(
        self,
        classifier: TappedClassifier,
        memory: SemanticMemory | None,
        exits: Sequence[float] = (),
    ) -> None:
        if memory is not None and memory.layers > classifier.taps:
            raise EncodingError(
                f'a semantic memory of {memory.layers} taps for {classifier.network.place}, which '
                f'has {classifier.taps}; use parts of one and the same bundle'
            )
        if memory is not None and memory.classes != len(classifier.classes):
            raise EncodingError(
                f'a semantic memory of {memory.classes} classes for a classifier of '
                f'{len(classifier.classes)}; use parts of one and the same bundle'
            )
        self.classifier = classifier
        self.memory = memory
        self.exits = tuple(exits)
        self.counts = LookCounts([0] * classifier.taps)
        self._lookup_seconds = 0.0

    def look(self, blob: NDArray[np.float32]) -> Look:
        """Recognise one crop.

        :param blob: (1, 3, H, W)
        :raises EncodingError: if the network fails on it
        """
        begun = time.thread_time()
        self._lookup_seconds = 0.0
        found = self._look(blob)
        taken = time.thread_time() - begun
        counts = self.counts
        counts.seconds += taken
        if found.exit < self.classifier.network.blocks:
            counts.exits[found.exit - 1] += 1
        else:
            counts.full += 1
            counts.full_seconds += taken - self._lookup_seconds
        return found

    def _look(self, blob: NDArray[np.float32]) -> Look:
        network, memory = self.classifier.network, self.memory
        state = network.start(blob)
        if memory is None:
            return self._by_heads(state)
        lookup = memory.lookup()
        for layer in range(memory.layers):
            begun = time.thread_time()
            recall = lookup.add(np.asarray(state.pooled, float))
            self._lookup_seconds += time.thread_time() - begun
            if recall is not None and not recall.is_audit:
                known = self.classifier.at_exit(state)[len(self.classifier.classes) :]
                label = memory.recalled(lookup)
                return Look(label, float('nan'), LabelSource.MEMORY, layer + 1, known)
            if layer + 1 < memory.layers:
                state = network.advance(state)
        found = self._full(state)
        begun = time.thread_time()
        memory.classified(lookup, found.label, found.certainty)
        self._lookup_seconds += time.thread_time() - begun
        return found

    def _by_heads(self, state: TapState) -> Look:
        """Leave where the head of a tap is sure enough."""
        classes = len(self.classifier.classes)
        for tap, least in enumerate(self.exits, start=1):
            said = self.classifier.at_exit(state) if math.isfinite(least) else _NO_ATTRIBUTES
            if len(said) >= classes and np.isfinite(said[:classes]).all():
                logits = said[:classes]
                best = int(logits.argmax())
                if odds(logits, best) >= least:
                    shares = softmax(logits)
                    certainty, known = float(shares[best]), said[classes:]
                    return Look(best, certainty, LabelSource.FULL, tap, known, shares)
            if tap < len(self.exits):
                state = self.classifier.network.advance(state)
        return self._full(state)

    def _full(self, state: TapState) -> Look:
        probabilities, attributes = self.classifier.outcome(state)
        best = int(probabilities.argmax())
        certainty, blocks = float(probabilities[best]), self.classifier.network.blocks
        return Look(best, certainty, LabelSource.FULL, blocks, attributes, probabilities)


def open_classifier(
    description: ClassifierDescription, threads: int = 1, *, with_memory: bool = True
) -> MemorisedClassifier:
    """Open a classifier with its semantic memory.

    :param with_memory: False asks the exit heads, where the bundle has any
    :raises EncodingError: if a file is not the manifest's, or the parts do not fit together
    """
    stages = [stage.verified() for stage in description.stages]
    classifier = TappedClassifier(description.classes, stages, threads)
    if description.memory is None or not with_memory:
        return MemorisedClassifier(classifier, None, description.exits)
    memory = SemanticMemory(read_centres(description.memory.verified()))
    return MemorisedClassifier(classifier, memory)


def _flat(values: Any) -> NDArray[np.float32]:
    return _NO_ATTRIBUTES if values is None else np.asarray(values, np.float32).reshape(-1)
