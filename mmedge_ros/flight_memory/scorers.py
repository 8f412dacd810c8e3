"""What rates the vectors of a memory: the bundle that made them, if it is here."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from mmedge_ros.encoding import EncodingError
from mmedge_ros.encoding.bundle.manifest import MANIFEST
from mmedge_ros.encoding.bundle.weights import sha256_of
from mmedge_ros.encoding.classifier_description import describe_classifier
from mmedge_ros.flight_memory import FlightMemoryError
from mmedge_ros.flight_memory.attribute_space import AttributeSpace
from mmedge_ros.flight_memory.search import QueryScorer, ScorerFor
from mmedge_ros.flight_memory.store_file import StoreHeader


def scorer_for(bundles: Iterable[Path]) -> ScorerFor:
    """Return what finds the scorer of a memory among bundles."""
    spaces: dict[str, AttributeSpace] = {}
    for folder in bundles:
        try:
            description = describe_classifier(folder)
            if description is not None:
                spaces[sha256_of(folder / MANIFEST)] = AttributeSpace(description)
        except (EncodingError, OSError):
            continue  # of a damaged bundle `mmedge model list` says so

    def find(header: StoreHeader) -> QueryScorer:
        space = spaces.get(header.manifest)
        if space is None or space.length != header.length:
            raise FlightMemoryError(
                f'the bundle that made this memory (manifest {header.manifest[:12]}) is not here; '
                'name it with --detector, or build the memory again (mmedge memory build)'
            )
        return space

    return find
