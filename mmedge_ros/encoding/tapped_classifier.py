"""A classifier in stages with a tap after each, and the semantic memory that leaves it early.

It is the section ``recogniser`` of a bundle's manifest::

    recogniser:
      format: 1
      classes: [person black, person red, car white]
      labels: [person, car]
      input: {size: [32, 48], mean: [...], deviation: [...], rgb: true, margin: 0.1, square: false}
      stages:
        - {weights: recogniser_1.onnx, sha256: 5f70bf18a086...}
        - {weights: recogniser_2.onnx, sha256: 3e23e8160039...}
      memory: {weights: recogniser.npz, sha256: 2c624232cc60...}
      attributes: {bottom: [black, grey, white], backpack: [no, yes]}

Each stage but the last puts out first what its tap gives: the mean of its feature map (1, D), or
the map itself (1, D, h, w). The last one puts out ``logits`` (1, J) and, where there are
attributes, ``attributes`` (1, A). A stage with a tap may put out ``exit_<number>`` (1, J + A),
too, its number from 1: what a head of its own says there. ``labels``, ``memory`` and
``attributes`` are optional.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmedge_ros.data_types import FloatArray, LabelSource
from mmedge_ros.encoding import EncodingError
from mmedge_ros.encoding.bundle.manifest import BundleFile, Manifest
from mmedge_ros.encoding.crops import CropForm
from mmedge_ros.encoding.tapped_network import TappedNetwork, TapState
from mmedge_ros.recurrence import RecurrenceError
from mmedge_ros.recurrence.hot_classes import HotClasses, HotClassParameters
from mmedge_ros.recurrence.semantic_memory import (
    SemanticCentres,
    SemanticMemory,
    SemanticMemoryParameters,
)
from mmedge_ros.recurrence.stored_centres import read_centres

SECTION = 'recogniser'
FORMAT = 1
LOGITS, ATTRIBUTES, EXIT = 'logits', 'attributes', 'exit_{}'
_MOST_CLASSES = 10_000
_LARGEST_SIDE = 1024
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


@dataclass(frozen=True)
class ClassifierDescription:
    """What a manifest says of a classifier.

    ``attributes`` are the values of each, in order. A class whose name begins with one of
    ``labels`` is that label, and the rest of its name is one more attribute.
    """

    classes: tuple[str, ...]
    form: CropForm
    stages: tuple[BundleFile, ...]
    memory: BundleFile | None = None
    attributes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    labels: tuple[str, ...] = ()

    def attribute_values(self, logits: NDArray[np.float32]) -> dict[str, tuple[str, float]]:
        """Return the likeliest value of each attribute, and its probability.

        :param logits: (A,), or empty where an exit knows none
        """
        found: dict[str, tuple[str, float]] = {}
        begin = 0
        for name, values in self.attributes.items():
            part = logits[begin : begin + len(values)]
            begin += len(values)
            if len(part) == len(values) and np.isfinite(part).all():
                shares = softmax(part)
                best = int(shares.argmax())
                found[name] = (values[best], float(shares[best]))
        return found


class TappedClassifier:
    """Runs a classifier whole or stage by stage; belongs to one thread.

    :param stages: files of the stages, of which the last puts out ``logits``
    :raises EncodingError: if a file cannot be opened, or puts out something else
    """

    def __init__(
        self, classes: Sequence[str], stages: Sequence[Path], threads: int = 1, device: str = 'cpu'
    ) -> None:
        self.classes = tuple(classes)
        self.network = TappedNetwork(stages, threads, device)
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
        if logits.shape != (len(self.classes),) or not np.isfinite(logits).all():
            raise EncodingError(
                f'{self.network.place} puts out logits of shape {logits.shape} for '
                f'{len(self.classes)} classes, or what is no number; use weights and manifest of '
                'one and the same bundle'
            )
        return softmax(logits), _flat(tensors.get(ATTRIBUTES))

    def at_exit(self, state: TapState) -> NDArray[np.float32]:
        """Return what the head of the last stage that ran says (J + A,); empty without a head."""
        return _flat(state.made.get(EXIT.format(state.block)))

    def vectors(self, blob: NDArray[np.float32]) -> tuple[list[FloatArray], FloatArray]:
        """Run everything; return the vector (D_l,) of each tap, and the probabilities (J,)."""
        state = self.network.start(blob)
        taps = []
        for _ in range(self.taps):
            taps.append(np.asarray(state.pooled, float))
            state = self.network.advance(state)
        return taps, self.outcome(state)[0]


@dataclass
class LookCounts:
    """What became of the crops: how many left at each exit, and how many ran through.

    ``seconds`` is the processor's time; the share that was saved compares it with ``full_seconds``
    for each crop, the mean of those that ran through.
    """

    exits: list[int]
    full: int = 0
    checked: int = 0
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
    """A classifier that is left as soon as its semantic memory recalls the class; one thread's.

    :param memory: None runs every crop through
    :raises EncodingError: if memory and classifier do not fit together
    """

    def __init__(self, classifier: TappedClassifier, memory: SemanticMemory | None) -> None:
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
        self.counts = LookCounts([0] * classifier.taps)

    def look(self, blob: NDArray[np.float32]) -> Look:
        """Recognise one crop.

        :param blob: (1, 3, H, W)
        :raises EncodingError: if the network fails on it
        """
        begun = time.thread_time()
        found = self._look(blob)
        taken = time.thread_time() - begun
        counts = self.counts
        counts.seconds += taken
        if found.source is LabelSource.MEMORY:
            counts.exits[found.exit - 1] += 1
        else:
            counts.full += 1
            counts.full_seconds += taken
        return found

    def _look(self, blob: NDArray[np.float32]) -> Look:
        network, memory = self.classifier.network, self.memory
        state = network.start(blob)
        if memory is None:
            return self._full(state)
        try:
            lookup = memory.lookup()
            for layer in range(memory.layers):
                recall = lookup.add(np.asarray(state.pooled, float))
                if recall is not None and not recall.is_audit:
                    known = self.classifier.at_exit(state)[len(self.classifier.classes) :]
                    label = memory.recalled(lookup)
                    return Look(label, float('nan'), LabelSource.MEMORY, layer + 1, known)
                if layer + 1 < memory.layers:
                    state = network.advance(state)
            self.counts.checked += lookup.recall is not None
            found = self._full(state)
            memory.classified(lookup, found.label, found.certainty)
        except RecurrenceError as err:
            raise EncodingError(f'{network.place}: {err}') from err
        return found

    def _full(self, state: TapState) -> Look:
        probabilities, attributes = self.classifier.outcome(state)
        best = int(probabilities.argmax())
        certainty, blocks = float(probabilities[best]), self.classifier.network.blocks
        return Look(best, certainty, LabelSource.FULL, blocks, attributes, probabilities)


def describe_classifier(folder: Path) -> ClassifierDescription | None:
    """Return what a bundle says of its recogniser; None if it has none.

    :raises EncodingError: if the manifest, or this section of it, cannot be used
    """
    manifest = Manifest(folder)
    if not manifest.has(SECTION):
        return None
    section = manifest.section(SECTION)
    known = section.get('format')
    if known != FORMAT or isinstance(known, bool):
        raise EncodingError(
            f'{manifest.path} has {SECTION}.format {str(known)[:80]!r}, this version reads '
            f'{FORMAT}; make the recogniser with this version'
        )
    attributes = manifest.names_by_name(SECTION, 'attributes')
    memory = manifest.file(SECTION, 'memory') if section.get('memory') is not None else None
    labels = manifest.names(SECTION, 'labels', _MOST_CLASSES) if 'labels' in section else ()
    return ClassifierDescription(
        manifest.names(SECTION, 'classes', _MOST_CLASSES),
        _form(manifest),
        manifest.stages(SECTION),
        memory,
        attributes,
        labels,
    )


def open_classifier(
    description: ClassifierDescription,
    threads: int = 1,
    device: str = 'cpu',
    *,
    hot: HotClassParameters | None = None,
    memory: SemanticMemoryParameters | None = None,
    with_memory: bool = True,
) -> MemorisedClassifier:
    """Open a classifier with its semantic memory.

    :param with_memory: False runs every crop through, as where the bundle has no memory
    :raises EncodingError: if a file is not the manifest's, or the parts do not fit together
    """
    stages = [stage.verified() for stage in description.stages]
    classifier = TappedClassifier(description.classes, stages, threads, device)
    if description.memory is None or not with_memory:
        return MemorisedClassifier(classifier, None)
    try:
        centres: SemanticCentres = read_centres(description.memory.verified())
        remembered = SemanticMemory(centres, HotClasses(len(centres.counts), hot), memory)
    except RecurrenceError as err:
        raise EncodingError(str(err)) from err
    return MemorisedClassifier(classifier, remembered)


def softmax(logits: NDArray[np.floating]) -> FloatArray:
    """Return probabilities (J,) from logits (J,)."""
    powers = np.exp(np.asarray(logits, float) - np.max(logits))
    probabilities: FloatArray = powers / powers.sum()
    return probabilities


def _flat(values: Any) -> NDArray[np.float32]:
    return _NO_ATTRIBUTES if values is None else np.asarray(values, np.float32).reshape(-1)


def _form(manifest: Manifest) -> CropForm:
    """Return the form of the input, from the entry ``input``."""
    entry = manifest.section(SECTION).get('input')
    given = dict(entry) if isinstance(entry, Mapping) else {}
    try:
        width, height = (int(side) for side in given.pop('size'))
        triples = {
            name: tuple(float(value) for value in given.pop(name))
            for name in ('mean', 'deviation')
            if name in given
        }
        flags = {name: bool(given.pop(name)) for name in ('rgb', 'square') if name in given}
        margin = float(given.pop('margin', CropForm._field_defaults['margin']))
        form = CropForm((width, height), **triples, **flags, margin=margin)  # type: ignore[arg-type]
        usable = 1 <= width <= _LARGEST_SIDE and 1 <= height <= _LARGEST_SIDE and not given
        usable = usable and 0.0 <= margin <= 1.0 and len(form.mean) == len(form.deviation) == 3
        usable = usable and bool(np.isfinite(form.mean).all()) and min(form.deviation) > 0.0
    except (KeyError, TypeError, ValueError, OverflowError):
        usable = False
    if not usable:
        raise EncodingError(
            f'{manifest.path} has {SECTION}.input {str(entry)[:80]!r}; it must be like '
            '{size: [32, 48], mean: [0.5, 0.5, 0.5], deviation: [0.25, 0.25, 0.25], rgb: true, '
            'margin: 0.1, square: false}'
        )
    return form
