"""Embeds crops of objects by what the heads of a recogniser say of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mmedge_ros.data_types import Box
from mmedge_ros.encoding import EncodingError
from mmedge_ros.encoding.bundle.manifest import MANIFEST
from mmedge_ros.encoding.bundle.model_bundle import is_bundle
from mmedge_ros.encoding.bundle.weights import sha256_of
from mmedge_ros.encoding.classifier_description import (
    EXIT,
    ClassifierDescription,
    describe_classifier,
)
from mmedge_ros.encoding.crops import as_input, crop_input
from mmedge_ros.encoding.detector import Image
from mmedge_ros.encoding.tapped_classifier import TappedClassifier, open_classifier
from mmedge_ros.flight_memory.attribute_space import AttributeSpace
from mmedge_ros.flight_memory.moment import Vectors
from mmedge_ros.flight_memory.store_file import StoreHeader


class MemoryEncoder:
    """Embeds objects by what the heads of a bundle's recogniser say of them; one thread's.

    :param leave_at: how many of its stages run; None: as far as the last head of a tap, which was
        measured to find more than the end does (docs/flight_memory.md)
    :raises EncodingError: if the bundle has no recogniser, it cannot be opened, or it has no head
        at this exit
    """

    def __init__(self, bundle: Path, leave_at: int | None = None) -> None:
        description = describe_classifier(bundle) if is_bundle(bundle) else None
        if description is None:
            raise EncodingError(
                f'{bundle} has no recogniser, which a flight memory embeds with; name a bundle '
                'with one (`mmedge train recogniser`)'
            )
        self._description: ClassifierDescription = description
        self._classifier: TappedClassifier = open_classifier(description).classifier
        self.space = AttributeSpace(description)
        self.header = StoreHeader(sha256_of(bundle / MANIFEST), self.space.length)
        self.stages = self._classifier.network.blocks
        self.exit = self._last_head() if leave_at is None else leave_at
        if self.exit != self.stages and self.exit not in self._heads():
            raise EncodingError(f'the recogniser of {bundle} has no head at exit {self.exit}')

    def vector(self, picture: Image, box: Box) -> NDArray[np.float32]:
        """Return the embedding (D,) of an object in a picture (H, W, 3) BGR.

        :raises EncodingError: if nothing of the box lies in the picture, or the network fails
        """
        vector: NDArray[np.float32] = self._vectors(
            crop_input(picture, box, self._description.form)
        )[0]
        return vector

    def of_crops(self, crops: Sequence[Image]) -> Vectors:
        """Return the embeddings (N, D) of crops (H, W, 3) BGR of any size.

        :raises EncodingError: if a crop is none, or the network fails
        """
        if not crops:
            return np.zeros((0, self.space.length), np.float32)
        return np.concatenate(
            [self._vectors(as_input(crop, self._description.form)) for crop in crops]
        )

    def _vectors(self, blob: NDArray[np.float32]) -> Vectors:
        state = self._classifier.network.start(blob)
        while state.block < min(self.exit, self.stages - 1):
            state = self._classifier.network.advance(state)
        if self.exit == self.stages:
            shares, attributes = self._classifier.outcome(state)
            logits = np.concatenate([np.log(np.maximum(shares, 1e-12)), attributes])
        else:
            logits = self._classifier.at_exit(state)
        return self.space.vectors(logits[None])

    def _heads(self) -> list[int]:
        writes = self._classifier.network.writes
        return [
            number for number in range(1, self.stages) if EXIT.format(number) in writes[number - 1]
        ]

    def _last_head(self) -> int:
        return max(self._heads(), default=self.stages)
