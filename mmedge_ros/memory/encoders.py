"""Encoders of views and examples: the recogniser of a bundle, or a pair of networks.

Encoders keep nothing between calls, and may be shared by threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import cv2
import numpy as np

from mmedge_ros.core.untrusted_files import read_bounded
from mmedge_ros.encoding import EncodingError
from mmedge_ros.encoding.bundle.default_model import bundle_folders
from mmedge_ros.encoding.bundle.manifest import MANIFEST
from mmedge_ros.encoding.bundle.model_bundle import is_bundle
from mmedge_ros.encoding.bundle.weights import sha256_of
from mmedge_ros.encoding.classifier_description import EXIT, describe_classifier
from mmedge_ros.encoding.crops import as_input
from mmedge_ros.encoding.detector import Image
from mmedge_ros.encoding.image_text_pair import ImageNetwork
from mmedge_ros.encoding.pair_description import SECTION, describe_pair
from mmedge_ros.encoding.tapped_classifier import open_classifier
from mmedge_ros.memory import FlightMemoryError
from mmedge_ros.memory.moment import MemoryItem, Vectors, ViewKind
from mmedge_ros.memory.spaces import AttributeSpace, PairSpace, Space, bundle_of, spread
from mmedge_ros.memory.store_file import LONGEST_VECTOR, StoreHeader
from mmedge_ros.memory.views import MARGIN, picture_of
from mmedge_ros.sensing import SensingError
from mmedge_ros.sensing.camera.image import quick_format

LARGEST_EXAMPLE = 20 << 20  # bytes
_REMEDY = 'name a jpg or png that shows the object and little else'
_TINY = 1e-12
# Embeds a picture of one object, (1, T).
Embed = Callable[[Image], Vectors]


class ViewLook(NamedTuple):
    """The two vectors of a crop, named as those of an item: (D,) and (T,)."""

    vector: Vectors
    tap: Vectors


class ViewEncoder:
    """An encoder of views; ``exit`` says how many of its parts run."""

    header: StoreHeader
    space: Space
    exit: int
    embeds_key_frames: bool

    def look(self, crop: Image) -> ViewLook:
        """Return the embedding of a crop (H, W, 3) BGR of any size.

        :raises EncodingError: if the crop is none, or the network fails
        """
        raise NotImplementedError

    def example(self, crop: Image) -> Vectors:
        """Return the vector of an example, (1, T); see `look`."""
        return self.look(crop).tap[None]

    def embedded(self, items: Sequence[MemoryItem]) -> list[MemoryItem]:
        """Return items with the embeddings of what their thumbnails show.

        :raises EncodingError: if a thumbnail is none, or the network fails
        """
        return [replace(item, **self._embedding(item)) for item in items]

    def _embedding(self, item: MemoryItem) -> dict[str, Any]:
        header = self.header
        if item.kind is ViewKind.KEY_FRAME and not self.embeds_key_frames:
            vector, tap = (np.zeros(n, np.float32) for n in (header.length, header.tap_length))
            return {'vector': vector, 'tap': tap, 'manifest': header.manifest}
        crop = picture_of(item.thumbnail)
        if crop is None:
            raise EncodingError('the thumbnail of a view is no picture of ours')
        return {**self.look(crop)._asdict(), 'manifest': header.manifest, 'exit': self.exit}


class MemoryEncoder(ViewEncoder):
    """Embeds objects by the outputs of the heads of a bundle's recogniser.

    A whole picture has no place in the space of objects; it is found by time, place and light.

    :param leave_at: how many of its stages run; None: as far as the last head of a tap, which was
        measured to find as much as the end does, sooner (docs/results/memory.md)
    :raises EncodingError: if the bundle has no recogniser, it cannot be opened, or it has no head
        at this exit
    """

    space: AttributeSpace
    embeds_key_frames = False

    def __init__(self, bundle: Path, leave_at: int | None = None) -> None:
        description = describe_classifier(bundle) if is_bundle(bundle) else None
        if description is None:
            raise EncodingError(
                f'{bundle} has no recogniser, which a flight memory embeds with; name a bundle '
                'with one (`mmedge lab train recogniser`)'
            )
        self._form = description.form
        self._classifier = open_classifier(description).classifier
        self.space = AttributeSpace(description)
        self.stages = self._classifier.network.blocks
        writes = self._classifier.network.writes
        heads = [n for n in range(1, self.stages) if EXIT.format(n) in writes[n - 1]]
        self.exit = max(heads, default=self.stages) if leave_at is None else leave_at
        if self.exit not in (*heads, self.stages):
            raise EncodingError(f'the recogniser of {bundle} has no head at exit {self.exit}')
        width, height = self._form.size
        tap = self.look(np.zeros((height, width, 3), np.uint8)).tap
        self.header = StoreHeader(sha256_of(bundle / MANIFEST), self.space.length, len(tap))

    def look(self, crop: Image) -> ViewLook:
        state = self._classifier.network.start(as_input(crop, self._form))
        while state.block < min(self.exit, self.stages - 1):
            state = self._classifier.network.advance(state)
        tap = state.pooled
        if self.exit == self.stages:
            shares, attributes = self._classifier.outcome(state)
            logits = np.concatenate([np.log(np.maximum(shares, _TINY)), attributes])
        else:
            logits = self._classifier.at_exit(state)
        return ViewLook(self.space.vectors(logits[None])[0], tap)


class PairEncoder(ViewEncoder):
    """Embeds objects and whole pictures with the image network of a pair that a user brings.

    Examples are compared by the same vectors as words.

    :raises EncodingError: if the folder has no pair, or its networks cannot be used or do not fit
        together
    """

    # It is never left early.
    exit = 1
    embeds_key_frames = True

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

    def look(self, crop: Image) -> ViewLook:
        vector = spread(self._image.of(crop))
        return ViewLook(vector, vector)


def open_encoder(folder: Path) -> ViewEncoder:
    """Open an encoder: a pair, or the recogniser of a bundle.

    :raises EncodingError: if the folder has neither, or it cannot be used
    """
    is_pair = is_bundle(folder) and describe_pair(folder) is not None
    return PairEncoder(folder) if is_pair else MemoryEncoder(folder)


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


def embedding_by(header: StoreHeader, bundles: Iterable[Path]) -> Embed:
    """Return an encoder of pictures, the one that a memory with this header was made with.

    It raises FlightMemoryError if the bundle is not among these, and EncodingError if that cannot
    be used.
    """
    return lambda picture: open_encoder(bundle_of(header, bundles)).example(picture)


def read_example(path: Path) -> bytes:
    """Return the bytes of a picture to search by: "more like this one".

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
    picture: Any = None
    reason = ''
    try:
        # Its size is known before anything is decoded.
        quick_format(SimpleNamespace(data=content, format=''))
        picture = cv2.imdecode(np.frombuffer(content, np.uint8), cv2.IMREAD_COLOR)
    except (SensingError, cv2.error) as err:
        reason = f' ({err})'
    if picture is None:
        raise FlightMemoryError(f'the example is no picture that can be read{reason}; {_REMEDY}')
    return np.asarray(picture, np.uint8)
