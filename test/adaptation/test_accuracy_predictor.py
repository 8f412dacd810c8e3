from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mmedge_ros.adaptation import ConfigurationError
from mmedge_ros.adaptation.accuracy_predictor import (
    Indicators,
    assumed_accuracy,
    bundle_accuracy,
)
from mmedge_ros.adaptation.configuration_space import ConfigurationSpace, ModalityOptions

SPACE = ConfigurationSpace(
    [
        ModalityOptions('camera', (10.0, 30.0), ('small', 'large'), ''),
        ModalityOptions('radar', (5.0, 20.0), ('',), ''),
    ]
)


def test_every_rate_and_every_level_is_assumed_to_help() -> None:
    values = assumed_accuracy(SPACE).predict(Indicators()).reshape(SPACE.grid.shape)
    for axis, size in enumerate(values.shape):
        if size > 1:
            assert (np.diff(values, axis=axis) > 0.0).all()
    assert 0.0 <= values.min() < values.max() <= 1.0
    assert not assumed_accuracy(SPACE).is_measured


def row(camera: list[Any], radar: list[Any], value: Any) -> dict[str, Any]:
    return {'camera': camera, 'radar': radar, 'value': value}


def test_a_bundle_tells_what_its_configurations_reach() -> None:
    listed = [row([30, 'large'], [20], 0.6), row([10, 'small'], [5], 0.4)]
    table = bundle_accuracy({'accuracy': {'configurations': listed}}, SPACE)
    assert table is not None
    assert table.is_measured
    values = table.predict(Indicators())
    assert (values[0], values[-1]) == (0.4, 0.6)
    assert np.isnan(values[1:-1]).all()


REUSING = ConfigurationSpace(
    [
        ModalityOptions('camera', (30.0,), ('small', 'large'), '', (6, 2, 1)),
        ModalityOptions('radar', (5.0, 20.0), ('',), ''),
    ]
)


def test_what_reuse_costs_is_as_measured_else_as_expected() -> None:
    listed = [
        row([30, 'large'], [20], 0.6),
        row([30, 'large'], [5], 0.5),
        row([30, 'small'], [20], 0.4),
        row([30, 'large', 2], [20], 0.58),
    ]
    table = bundle_accuracy({'accuracy': {'configurations': listed}}, REUSING)
    assert table is not None
    levels_reuse_rates = (2, 3, 2)
    values = table.predict(Indicators()).reshape(levels_reuse_rates)
    assert values[1, :, 1].tolist() == pytest.approx([0.565, 0.58, 0.6])
    assert values[1, :, 0].tolist() == pytest.approx([0.465, 0.48, 0.5])
    assert values[0, :, 1].tolist() == pytest.approx([0.365, 0.39, 0.4])
    assert np.isnan(values[0, :, 0]).all()


def test_reuse_is_assumed_to_cost_a_little() -> None:
    values = assumed_accuracy(REUSING).predict(Indicators()).reshape(REUSING.grid.shape)
    assert (np.diff(values, axis=2) > 0.0).all()
    assert np.abs(np.diff(values, axis=2)).max() < 0.05


def test_a_bundle_without_accuracies_has_none() -> None:
    assert bundle_accuracy({'name': 'x'}, SPACE) is None


def test_what_cannot_be_chosen_is_left_out() -> None:
    listed = [row([25, 'large'], [20], 0.9), row([10, 'small'], [5], 0.4)]
    table = bundle_accuracy({'accuracy': {'configurations': listed}}, SPACE)
    assert table is not None
    assert np.nanmax(table.predict(Indicators())) == 0.4


@pytest.mark.parametrize(
    ('entry', 'words'),
    [
        (0.5, 'must be a list'),
        ({'configurations': []}, 'must be a list'),
        ({'configurations': [3]}, 'the value must be in 0..1'),
        ({'configurations': [row([10, 'small'], [5], 1.5)]}, 'the value must be in 0..1'),
        ({'configurations': [row([10, 'small'], [5], math.nan)]}, 'the value must be in 0..1'),
        ({'configurations': [row('10', [5], 0.5)]}, r'camera must be \[rate, level\]'),  # type: ignore[arg-type]
        ({'configurations': [row(['x'], [5], 0.5)]}, "'x' is no rate"),
        ({'configurations': [row([10, 'small', 'x'], [5], 0.5)]}, "'x' is no reuse"),
        ({'configurations': [row([25, 'small'], [5], 0.5)]}, 'none of the configurations'),
    ],
)
def test_an_entry_that_cannot_be_read_is_named(entry: Any, words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        bundle_accuracy({'accuracy': entry}, SPACE)


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(['configurations', 'camera', 'radar', 'value']), inner, max_size=4
            )
        ),
        max_leaves=12,
    )
)
def test_whatever_a_manifest_holds_it_is_read_or_refused(entry: Any) -> None:
    try:
        table = bundle_accuracy({'accuracy': entry}, SPACE)
    except ConfigurationError:
        return
    assert table is not None
