"""The configurations that a model bundle allows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mmedge_ros.configuration.configuration_space import (
    LEVELS_FROM_CHEAPEST,
    ConfigurationSpace,
    ModalityOptions,
)
from mmedge_ros.data_types import CAMERA
from mmedge_ros.encoding.bundle.model_bundle import load_bundle, model_levels


def bundle_levels(model: Path, modality: str) -> tuple[str, ...]:
    """Return the levels a modality has, from the cheapest; ('',) where it has none of its own.

    Levels of other names than small, medium and large are as costly as the manifest lists them.

    :raises EncodingError: if a bundle's manifest cannot be read
    """
    if modality == CAMERA:
        found = model_levels(model)[0]
    else:
        entry = manifest_of(model).get(modality)
        levels = entry.get('levels') if isinstance(entry, Mapping) else None
        found = tuple(map(str, levels)) if isinstance(levels, Mapping) else ()
    if set(found) <= set(LEVELS_FROM_CHEAPEST):
        found = tuple(level for level in LEVELS_FROM_CHEAPEST if level in found)
    return found or ('',)


def bundle_space(
    model: Path, modalities: Sequence[str], rates: Mapping[str, Sequence[float]]
) -> ConfigurationSpace:
    """Return every rate with every level of each modality.

    Where a modality is encoded is left to its encoder: the device is empty.

    :param rates: Hz, ascending, by modality
    :raises EncodingError: if a bundle's manifest cannot be read
    :raises ConfigurationError: for rates that cannot be
    """
    return ConfigurationSpace(
        [
            ModalityOptions(
                modality, tuple(rates[modality]), bundle_levels(model, modality), device=''
            )
            for modality in modalities
        ]
    )


def manifest_of(model: Path) -> Mapping[str, Any]:
    """Return all of a bundle's manifest; nothing for a plain weight file.

    :raises EncodingError: if it cannot be read
    """
    return load_bundle(model).content if model.is_dir() else {}
