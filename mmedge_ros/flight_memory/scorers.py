"""What rates the vectors of a memory: the bundle or pair that made them, if it is here."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from mmedge_ros.encoding import EncodingError
from mmedge_ros.encoding.bundle.manifest import MANIFEST
from mmedge_ros.encoding.bundle.weights import sha256_of
from mmedge_ros.encoding.classifier_description import describe_classifier
from mmedge_ros.encoding.pair_description import describe_pair
from mmedge_ros.flight_memory import FlightMemoryError
from mmedge_ros.flight_memory.attribute_space import AttributeSpace
from mmedge_ros.flight_memory.pair_encoder import PairSpace
from mmedge_ros.flight_memory.store_file import StoreHeader

Space = AttributeSpace | PairSpace


def scorer_for(bundles: Iterable[Path]) -> Callable[[StoreHeader], Space]:
    """Return what finds the scorer of a memory among bundles and pairs."""
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
