"""Embeds views, and words, with a pair of networks that a user brings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from mmedge_ros.data_types import FloatArray
from mmedge_ros.encoding import EncodingError
from mmedge_ros.encoding.bundle.manifest import MANIFEST
from mmedge_ros.encoding.bundle.model_bundle import is_bundle
from mmedge_ros.encoding.bundle.weights import sha256_of
from mmedge_ros.encoding.detector import Image
from mmedge_ros.encoding.image_text_pair import ImageNetwork, TextNetwork
from mmedge_ros.encoding.pair_description import SECTION, PairDescription, describe_pair
from mmedge_ros.flight_memory import FlightMemoryError
from mmedge_ros.flight_memory.item_table import unit
from mmedge_ros.flight_memory.memory_encoder import MemoryEncoder
from mmedge_ros.flight_memory.moment import MemoryItem, Vectors
from mmedge_ros.flight_memory.query import ParsedQuery
from mmedge_ros.flight_memory.store_file import LONGEST_VECTOR, StoreHeader
from mmedge_ros.flight_memory.thumbnail import MARGIN, picture_of


class PairSpace:
    """The space of a pair; the text network is opened when words are first rated."""

    knows_all_words = True

    def __init__(self, description: PairDescription) -> None:
        self._description = description

    def vector_of(self, words: str) -> Vectors:
        """Return where words lie, (D,).

        :raises EncodingError: if the text network cannot be opened, or fails
        """
        return _spread(self._text.of(words))

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
                f'{folder / MANIFEST} has no {SECTION}; write one (docs/flight_memory.md)'
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
        vectors = [_spread(self._image.of(crop)) for crop in crops]
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


def _spread(vector: Vectors) -> Vectors:
    """Return a vector (D,) turned so that what one value says is spread over all of them.

    Lengths and angles stay. Networks may have a value that is large in every vector; four bits
    with one scale would keep that one and round the others, which tell vectors apart, to 0.
    """
    from scipy.fft import dct  # as late as the networks

    return np.asarray(dct(vector, norm='ortho'), np.float32)
