"""Embeds crops of objects by what the heads of a recogniser say of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mmedge_ros.encoding import EncodingError
from mmedge_ros.encoding.bundle.default_model import bundle_folders
from mmedge_ros.encoding.bundle.manifest import MANIFEST
from mmedge_ros.encoding.bundle.model_bundle import is_bundle
from mmedge_ros.encoding.bundle.weights import sha256_of
from mmedge_ros.encoding.classifier_description import (
    EXIT,
    ClassifierDescription,
    describe_classifier,
)
from mmedge_ros.encoding.crops import as_input
from mmedge_ros.encoding.detector import Image
from mmedge_ros.encoding.tapped_classifier import TappedClassifier, open_classifier
from mmedge_ros.flight_memory.attribute_space import AttributeSpace
from mmedge_ros.flight_memory.moment import MemoryItem, Vectors, ViewKind
from mmedge_ros.flight_memory.store_file import StoreHeader
from mmedge_ros.flight_memory.thumbnail import picture_of


class _Look(NamedTuple):
    """The two vectors of a crop, named as those of an item."""

    vector: Vectors
    tap: Vectors


def bundle_that_embeds(detector: Path) -> Path:
    """Return the bundle whose recogniser embeds: the detector's, or the first that has one.

    :raises EncodingError: if there is none
    """
    own = [detector] if is_bundle(detector) else []
    for bundle in (*own, *bundle_folders()):
        if describe_classifier(bundle) is not None:
            return bundle
    raise EncodingError(
        f'{detector} has no recogniser, which a flight memory embeds with, nor has another bundle '
        'that is here; train one (`mmedge lab train recogniser`)'
    )


class MemoryEncoder:
    """Embeds objects by what the heads of a bundle's recogniser say of them.

    It keeps nothing between calls, and may be shared by threads.

    :param leave_at: how many of its stages run; None: as far as the last head of a tap, which was
        measured to find as much as the end does, sooner (docs/flight_memory.md)
    :raises EncodingError: if the bundle has no recogniser, it cannot be opened, or it has no head
        at this exit
    """

    def __init__(self, bundle: Path, leave_at: int | None = None) -> None:
        description = describe_classifier(bundle) if is_bundle(bundle) else None
        if description is None:
            raise EncodingError(
                f'{bundle} has no recogniser, which a flight memory embeds with; name a bundle '
                'with one (`mmedge lab train recogniser`)'
            )
        self._description: ClassifierDescription = description
        self._classifier: TappedClassifier = open_classifier(description).classifier
        self.space = AttributeSpace(description)
        self.stages = self._classifier.network.blocks
        self.exit = self._last_head() if leave_at is None else leave_at
        if self.exit != self.stages and self.exit not in self._heads():
            raise EncodingError(f'the recogniser of {bundle} has no head at exit {self.exit}')
        width, height = description.form.size
        tap = self._look(np.zeros((height, width, 3), np.uint8)).tap
        self.header = StoreHeader(sha256_of(bundle / MANIFEST), self.space.length, len(tap))

    def embedded(self, items: Sequence[MemoryItem]) -> list[MemoryItem]:
        """Return items with the embeddings of what their thumbnails show.

        A whole picture gets none: it says nothing in the space of objects, and is found by time,
        place and light.

        :raises EncodingError: if a thumbnail is none, or the network fails
        """
        return [replace(item, **self._embedding(item)) for item in items]

    def of_crops(self, crops: Sequence[Image]) -> Vectors:
        """Return the embeddings (N, D) of crops (H, W, 3) BGR of any size.

        :raises EncodingError: if a crop is none, or the network fails
        """
        vectors = [self._look(crop).vector for crop in crops]
        return np.stack(vectors) if vectors else np.zeros((0, self.header.length), np.float32)

    def taps_of(self, crops: Sequence[Image]) -> Vectors:
        """Return what examples are compared by, (N, T), of crops (H, W, 3) BGR of any size.

        :raises EncodingError: as `of_crops` does
        """
        taps = [self._look(crop).tap for crop in crops]
        return np.stack(taps) if taps else np.zeros((0, self.header.tap_length), np.float32)

    def _embedding(self, item: MemoryItem) -> dict[str, Any]:
        header = self.header
        if item.kind is ViewKind.KEY_FRAME:
            vector, tap = (np.zeros(n, np.float32) for n in (header.length, header.tap_length))
            return {'vector': vector, 'tap': tap, 'manifest': header.manifest}
        crop = picture_of(item.thumbnail)
        if crop is None:
            raise EncodingError('the thumbnail of a view is no picture of ours')
        look = self._look(crop)
        return {**look._asdict(), 'manifest': header.manifest, 'exit': self.exit}

    def _look(self, crop: Image) -> _Look:
        state = self._classifier.network.start(as_input(crop, self._description.form))
        while state.block < min(self.exit, self.stages - 1):
            state = self._classifier.network.advance(state)
        tap = state.pooled
        if self.exit == self.stages:
            shares, attributes = self._classifier.outcome(state)
            logits = np.concatenate([np.log(np.maximum(shares, 1e-12)), attributes])
        else:
            logits = self._classifier.at_exit(state)
        return _Look(self.space.vectors(logits[None])[0], tap)

    def _heads(self) -> list[int]:
        writes = self._classifier.network.writes
        return [
            number for number in range(1, self.stages) if EXIT.format(number) in writes[number - 1]
        ]

    def _last_head(self) -> int:
        return max(self._heads(), default=self.stages)
