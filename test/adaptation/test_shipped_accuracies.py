"""The tables of the bundles that ship, and what the optimiser makes of them."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from mmedge_lab.judging.bundle_cases import RATES
from mmedge_ros.adaptation.accuracy_predictor import (
    AccuracyTable,
    Indicators,
    assumed_accuracy,
    bundle_accuracy,
)
from mmedge_ros.adaptation.bundle_configurations import bundle_space, manifest_of
from mmedge_ros.adaptation.configuration_space import ConfigurationSpace
from mmedge_ros.adaptation.optimizer import Optimizer
from mmedge_ros.core.data_types import CAMERA, RADAR, ModalityConfiguration

MODELS = Path(__file__).resolve().parents[2] / 'models'
BUNDLES = sorted(path.parent.name for path in MODELS.glob('*/manifest.yaml'))


def shipped(name: str) -> tuple[ConfigurationSpace, AccuracyTable]:
    folder = MODELS / name
    space = bundle_space(folder, (CAMERA, RADAR), RATES)
    table = bundle_accuracy(manifest_of(folder), space)
    assert table is not None
    return space, table


def camera_at(space: ConfigurationSpace, rate: float, level: str) -> int:
    """The radar at its most."""
    radar = space.modalities[1]
    parts = (
        ModalityConfiguration(CAMERA, rate, level),
        ModalityConfiguration(RADAR, radar.rates[-1], radar.levels[-1]),
    )
    index = space.index_of(parts)
    assert index is not None
    return index


@pytest.mark.parametrize('name', BUNDLES)
def test_every_configuration_was_measured(name: str) -> None:
    _, table = shipped(name)
    values = table.predict(Indicators())
    assert table.is_measured
    assert np.isfinite(values).all()
    entry = manifest_of(MODELS / name)['accuracy']
    assert len(entry['flights']) >= 3
    assert math.isfinite(entry['seconds'])


@pytest.mark.parametrize('name', BUNDLES)
def test_a_few_pictures_seen_well_go_before_many_seen_badly_because_that_was_measured(
    name: str,
) -> None:
    space, table = shipped(name)
    many, few = camera_at(space, 30.0, 'small'), camera_at(space, 10.0, 'medium')
    either = np.zeros(len(space), bool)
    either[[many, few]] = True
    alike = np.full(len(space), 0.03)

    def chosen(accuracy: AccuracyTable) -> int:
        values = accuracy.predict(Indicators())
        return Optimizer(space.grid).choose(values, alike, 0.05, either).index

    assert chosen(table) == few
    # What would be assumed says the contrary, or this shows nothing.
    assert chosen(assumed_accuracy(space)) == many


@pytest.mark.parametrize('name', BUNDLES)
def test_a_higher_rate_or_level_of_the_camera_was_never_worse(name: str) -> None:
    space, table = shipped(name)
    values = table.predict(Indicators())
    by_camera = np.array(
        [
            [values[camera_at(space, rate, level)] for level in ('small', 'medium', 'large')]
            for rate in RATES[CAMERA]
        ]
    )
    assert (np.diff(by_camera, axis=0) > 0.0).all()
    assert (np.diff(by_camera, axis=1) > 0.0).all()
