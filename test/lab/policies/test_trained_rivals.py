"""Trained rivals in a folder: what is written is what is read, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hand_made_rivals import plugins_for
from tiny_bundle import write_tiny_bundle

from mmedge_lab.judging import EvaluationError
from mmedge_lab.policies.imputation import TrainedImputer
from mmedge_lab.policies.policy_features import POLICY_FIELDS
from mmedge_lab.policies.steering import Plugins
from mmedge_lab.policies.trained_choosers import TrainedGate, TrainedSelector
from mmedge_lab.policies.trained_rivals import (
    INDEX,
    bundle_rivals,
    read_rivals,
    write_rivals,
)
from mmedge_ros.core.data_types import CAMERA


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    return write_tiny_bundle(tmp_path / 'tiny')


@pytest.fixture
def folder(tmp_path: Path, bundle: Path) -> Path:
    write_rivals(tmp_path / 'rivals', bundle, plugins_for(bundle), {'seed': 3})
    return tmp_path / 'rivals'


def change(folder: Path, rival: str, **entries: Any) -> None:
    index = json.loads((folder / INDEX).read_text())
    index['rivals'][rival] |= entries
    (folder / INDEX).write_text(json.dumps(index))


def test_what_is_written_is_read(folder: Path, bundle: Path) -> None:
    written, read = plugins_for(bundle), read_rivals(folder, bundle)
    gate, selector, imputer = (
        read.plugins.modality_gating,
        read.plugins.model_selection,
        read.plugins.imputation,
    )
    assert isinstance(gate, TrainedGate)
    assert isinstance(selector, TrainedSelector)
    assert isinstance(imputer, TrainedImputer)
    inputs = np.linspace(-2.0, 2.0, len(POLICY_FIELDS))
    assert isinstance(written.model_selection, TrainedSelector)
    expected = written.model_selection.network.outputs(inputs)
    assert selector.network.outputs(inputs) == pytest.approx(expected, abs=1e-6)
    assert (gate.threshold, selector.margin, imputer.least) == (0.5, 0.12, 0.5)
    assert selector.levels == ('small', 'large')
    assert gate.resting.of(CAMERA).rate == 10.0
    assert gate.needed.of(CAMERA).level == 'large'
    assert json.loads((folder / INDEX).read_text())['seed'] == 3
    assert read.digest != read_rivals_of_others(folder, bundle)


def read_rivals_of_others(folder: Path, bundle: Path) -> str:
    write_rivals(folder, bundle, plugins_for(bundle, rests=-1.0))
    return read_rivals(folder, bundle).digest


def test_a_bundle_brings_its_rivals_or_none(bundle: Path) -> None:
    assert bundle_rivals(bundle).plugins == Plugins()
    write_rivals(bundle / 'rivals', bundle, plugins_for(bundle))
    assert bundle_rivals(bundle).plugins.imputation is not None


def test_those_of_other_encoders_are_refused_and_the_rest_of_a_bundle_may_change(
    tmp_path: Path, folder: Path, bundle: Path
) -> None:
    manifest = bundle / 'manifest.yaml'
    manifest.write_text(manifest.read_text() + 'accuracy: {}\n')
    assert read_rivals(folder, bundle).plugins.imputation is not None
    other = write_tiny_bundle(tmp_path / 'other', {'small': 0.5, 'large': 0.6})
    with pytest.raises(EvaluationError, match="other encoders \\('tiny'\\) than those of other"):
        read_rivals(folder, other)


@pytest.mark.parametrize(
    ('rival', 'entries', 'words'),
    [
        ('modality_gating', {'threshold': 2.0}, 'modality_gating.threshold 2.0'),
        ('model_selection', {'margin': float('nan')}, 'model_selection.margin'),
        ('imputation', {'scale': [1.0, 1.0, 1.0, 'x']}, 'imputation.scale'),
        ('imputation', {'sha256': 'x'}, 'is not the file'),
    ],
)
def test_a_wrong_entry_is_named(
    folder: Path, bundle: Path, rival: str, entries: dict[str, Any], words: str
) -> None:
    change(folder, rival, **entries)
    with pytest.raises(EvaluationError, match=words):
        read_rivals(folder, bundle)


def test_the_shipped_rivals_are_those_of_the_shipped_encoders() -> None:
    bundle = Path(__file__).resolve().parents[3] / 'models' / 'fused_people'
    result = bundle_rivals(bundle).plugins
    assert isinstance(result.modality_gating, TrainedGate)
    assert isinstance(result.model_selection, TrainedSelector)
    assert isinstance(result.imputation, TrainedImputer)
    # They say how they do on flights they had not seen, and take next to no room.
    index = json.loads((bundle / 'rivals' / INDEX).read_text())
    assert index['validation']['flights'] >= 4
    assert sum(file.stat().st_size for file in (bundle / 'rivals').iterdir()) < 100_000
