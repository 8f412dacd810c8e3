"""What a bundle says of how accurate its configurations are: the best it has that can be used."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from mmedge_ros.configuration import ConfigurationError
from mmedge_ros.configuration.accuracy_predictor import (
    AccuracyPredictor,
    assumed_accuracy,
    bundle_accuracy,
)
from mmedge_ros.configuration.bundle_space import manifest_of
from mmedge_ros.configuration.configuration_space import ConfigurationSpace
from mmedge_ros.configuration.learned_accuracy import LearnedAccuracy, bundle_surface


class BundlePredictor(NamedTuple):
    """``source`` says in words what accuracies come from, ``note`` what could not be used."""

    predictor: AccuracyPredictor
    source: str
    note: str = ''


def bundle_predictor(model: Path, space: ConfigurationSpace) -> BundlePredictor:
    """Return the learnt predictor of a bundle, else its table, else an assumed order.

    A learnt predictor that is damaged, missing or made for other configurations is none, and
    ``note`` says so: the table is nearly as good.

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
