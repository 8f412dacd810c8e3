"""The configurations that a model bundle allows, and their accuracies by its manifest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from mmedge_ros.configuration import ConfigurationError
from mmedge_ros.configuration.accuracy_predictor import (
    AccuracyPredictor,
    assumed_accuracy,
    bundle_accuracy,
)
from mmedge_ros.configuration.configuration_space import (
    LEVELS_FROM_CHEAPEST,
    ConfigurationSpace,
    ModalityOptions,
)
from mmedge_ros.configuration.learned_accuracy import LearnedAccuracy, bundle_surface
from mmedge_ros.data_types import CAMERA
from mmedge_ros.encoding.bundle.model_bundle import load_bundle, model_levels


def bundle_levels(model: Path, modality: str) -> tuple[str, ...]:
    """Return the levels a modality has, from the cheapest; ('',) where it has none of its own.

    Levels of other names than small, medium and large are as costly as the manifest lists them.

    :raises EncodingError: if a bundle's manifest cannot be read
    """
    if modality == CAMERA:
        levels = model_levels(model)[0]
    else:
        entry = manifest_of(model).get(modality)
        listed = entry.get('levels') if isinstance(entry, Mapping) else None
        levels = tuple(map(str, listed)) if isinstance(listed, Mapping) else ()
    if set(levels) <= set(LEVELS_FROM_CHEAPEST):
        levels = tuple(level for level in LEVELS_FROM_CHEAPEST if level in levels)
    return levels or ('',)


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


class BundlePredictor(NamedTuple):
    """``source`` names where accuracies come from, ``note`` what could not be used."""

    predictor: AccuracyPredictor
    source: str
    note: str = ''


def bundle_predictor(model: Path, space: ConfigurationSpace) -> BundlePredictor:
    """Return the learnt predictor of a bundle, else its table, else an assumed order.

    A learnt predictor that is damaged, missing or made for other configurations is replaced by
    the table, which is nearly as good, with a ``note``.

    :raises EncodingError: if the manifest cannot be read
    :raises ConfigurationError: for a table that cannot be read
    """
    content = manifest_of(model)
    table = bundle_accuracy(content, space)
    if table is None:
        return BundlePredictor(assumed_accuracy(space), 'assumed: every rate and level helps')
    plain = BundlePredictor(table, 'the table of the bundle')
    try:
        surface = bundle_surface(model, content)
        if surface is None:
            return plain
        learnt = LearnedAccuracy(table, surface, space)
    except ConfigurationError as err:
        return plain._replace(note=f'accuracies come from the table alone: {err}')
    return BundlePredictor(learnt, 'the table of the bundle, corrected by what is seen')
