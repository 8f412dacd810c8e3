"""What embeds views and examples: the recogniser of a bundle, or a pair of networks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import cv2
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
from mmedge_ros.encoding.image_text_pair import ImageNetwork
from mmedge_ros.encoding.pair_description import SECTION, describe_pair
from mmedge_ros.encoding.tapped_classifier import TappedClassifier, open_classifier
from mmedge_ros.memory import FlightMemoryError
from mmedge_ros.memory.moment import MemoryItem, Vectors, ViewKind
from mmedge_ros.memory.spaces import AttributeSpace, PairSpace, bundle_of, spread
from mmedge_ros.memory.store_file import LONGEST_VECTOR, StoreHeader
from mmedge_ros.memory.views import MARGIN, picture_of
from mmedge_ros.sensing import SensingError
from mmedge_ros.sensing.camera.image import quick_format
from mmedge_ros.untrusted_files import read_bounded


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
        measured to find as much as the end does, sooner (docs/memory.md)
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


class PairEncoder:
    """Embeds objects and whole pictures with the image network of a pair.

    It has what `MemoryEncoder` has. Examples are compared by the same vectors as words.

    :raises EncodingError: if the folder has no pair, or its networks cannot be used or do not fit
        together
    """

    # It is never left early.
    exit = 1

    def __init__(self, folder: Path) -> None:
        description = describe_pair(folder)
        if description is None:
            raise EncodingError(
                f'{folder / MANIFEST} has no {SECTION}; write one (docs/memory.md)'
            )
        if description.form.margin != MARGIN:
            raise EncodingError(
                f'{folder / MANIFEST} has {SECTION}.input.margin {description.form.margin:g}, and '
                f'a memory keeps views with one of {MARGIN:g}; leave it out'
            )
        self._image, self.space = ImageNetwork(description), PairSpace(description)
        width, height = description.form.size
        length = len(self._image.of(np.zeros((height, width, 3), np.uint8)))
        of_words = len(self.space.vector_of(''))
        if length != of_words:
            raise EncodingError(
                f'{description.image.path} puts out {length} values and {description.text.path} '
                f'{of_words}; export both from one model, with its projections'
            )
        if length > LONGEST_VECTOR:
            raise EncodingError(
                f'{description.image.path} puts out {length} values, and a memory keeps '
                f'{LONGEST_VECTOR} at most; take a smaller model of its kind'
            )
        self.header = StoreHeader(sha256_of(folder / MANIFEST), length, length)

    def embedded(self, items: Sequence[MemoryItem]) -> list[MemoryItem]:
        """Return items with the embeddings of what their thumbnails show, key frames too.

        :raises EncodingError: if a thumbnail is none, or the network fails
        """
        return [replace(item, **self._embedding(item)) for item in items]

    def of_crops(self, crops: Sequence[Image]) -> Vectors:
        """Return the embeddings (N, D) of crops (H, W, 3) BGR of any size.

        :raises EncodingError: if a crop is none, or the network fails
        """
        vectors = [spread(self._image.of(crop)) for crop in crops]
        return np.stack(vectors) if vectors else np.zeros((0, self.header.length), np.float32)

    def taps_of(self, crops: Sequence[Image]) -> Vectors:
        """Return what examples are compared by: what `of_crops` does."""
        return self.of_crops(crops)

    def _embedding(self, item: MemoryItem) -> dict[str, Any]:
        picture = picture_of(item.thumbnail)
        if picture is None:
            raise EncodingError('the thumbnail of a view is no picture of ours')
        vector = self.of_crops([picture])[0]
        manifest = self.header.manifest
        return {'vector': vector, 'tap': vector, 'manifest': manifest, 'exit': self.exit}


AnyEncoder = MemoryEncoder | PairEncoder


def open_encoder(folder: Path) -> AnyEncoder:
    """Open what embeds: a pair, or the recogniser of a bundle.

    :raises EncodingError: if the folder has neither, or it cannot be used
    """
    is_pair = is_bundle(folder) and describe_pair(folder) is not None
    return PairEncoder(folder) if is_pair else MemoryEncoder(folder)


LARGEST_EXAMPLE = 20 << 20  # bytes
_REMEDY = 'name a jpg or png that shows the object and little else'
# Embeds a picture of one object: its tap (1, T).
Embed = Callable[[Image], Vectors]


def read_example(path: Path) -> bytes:
    """Return the bytes of a picture.

    :raises FlightMemoryError: if the file cannot be read, is empty, or is too large
    """
    content = read_bounded(path, LARGEST_EXAMPLE, FlightMemoryError, _REMEDY)
    if not content:
        raise FlightMemoryError(f'{path} holds no data; {_REMEDY}')
    return content


def example_picture(content: bytes) -> Image:
    """Return a JPEG or PNG as a picture (H, W, 3) BGR, turned as it is meant to be seen.

    :raises FlightMemoryError: if it is none, or too large
    """
    if len(content) > LARGEST_EXAMPLE:
        raise FlightMemoryError(
            f'the example has {len(content)} bytes, at most {LARGEST_EXAMPLE} are read; {_REMEDY}'
        )
    try:
        # Its size is known before anything is decoded.
        quick_format(SimpleNamespace(data=content, format=''))
        picture: Any = cv2.imdecode(np.frombuffer(content, np.uint8), cv2.IMREAD_COLOR)
    except (SensingError, cv2.error) as err:
        raise FlightMemoryError(
            f'the example is no picture that can be read ({err}); {_REMEDY}'
        ) from err
    if picture is None:
        raise FlightMemoryError(f'the example is no picture that can be read; {_REMEDY}')
    return np.asarray(picture, np.uint8)


def embedding_by(header: StoreHeader, bundles: Iterable[Path]) -> Embed:
    """Return what embeds a picture as a memory with this header was.

    It raises FlightMemoryError if the bundle is not among these, and EncodingError if that cannot
    be used.
    """
    return lambda picture: open_encoder(bundle_of(header, bundles)).taps_of([picture])
