"""What rates the vectors of a memory: the bundle that made them, if it is here."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from mmedge_ros.encoding import EncodingError
from mmedge_ros.encoding.bundle.manifest import MANIFEST
from mmedge_ros.encoding.bundle.weights import sha256_of
from mmedge_ros.encoding.classifier_description import describe_classifier
from mmedge_ros.flight_memory import FlightMemoryError
from mmedge_ros.flight_memory.attribute_space import AttributeSpace
from mmedge_ros.flight_memory.store_file import StoreHeader


def scorer_for(bundles: Iterable[Path]) -> Callable[[StoreHeader], AttributeSpace]:
    """Return what finds the scorer of a memory among bundles."""
    spaces: dict[str, AttributeSpace] = {}
    for folder in bundles:
        try:
            description = describe_classifier(folder)
            if description is not None:
                spaces[sha256_of(folder / MANIFEST)] = AttributeSpace(description)
        except (EncodingError, OSError):
            continue  # of a damaged bundle `mmedge model list` says so

    def find(header: StoreHeader) -> AttributeSpace:
        space = spaces.get(header.manifest)
        if space is None or space.length != header.length:
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
        'name it with --detector, or build the memory again (mmedge memory build)'
    )
