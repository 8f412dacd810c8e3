"""The gate in a bundle."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import yaml
from hand_made_gates import gate, gate_features
from tiny_bundle import write_tiny_bundle

from mmedge_lab.training.certificate import Certificate, FlightLoss
from mmedge_lab.training.gate_training import write_bundle_gate
from mmedge_ros.encoding.bundle.model_bundle import load_bundle
from mmedge_ros.windows import SkippingError
from mmedge_ros.windows.bundle_gate import bundle_gate


def certificate(delta: float, threshold: float) -> Certificate:
    loss = FlightLoss(10_000, 20.0, 4_000, 3, 500, 50.0)
    return Certificate(delta, 0.9, threshold, 30, loss)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_tiny_bundle(tmp_path / 'tiny')


def written(folder: Path) -> Path:
    write_bundle_gate(
        folder,
        gate(),
        'decision',
        ['camera'],
        [certificate(0.02, 0.8), certificate(0.01, 0.9), certificate(0.005, math.inf)],
        {'software': {'mmedge_ros': '0'}},
    )
    return folder


def changed(folder: Path, **entries: Any) -> Path:
    path = folder / 'manifest.yaml'
    content = yaml.safe_load(path.read_text())
    content['gate'].update(entries)
    path.write_text(yaml.safe_dump(content))
    return folder


def test_a_gate_is_found_as_it_was_written(folder: Path) -> None:
    result = bundle_gate(written(folder))
    assert result is not None
    assert result.gate.confidence(gate_features(lead=0.1)) == gate().confidence(
        gate_features(lead=0.1)
    )
    assert (result.strategy, result.slow) == ('decision', ('camera',))
    # What was not certified is not listed, and writing it again replaces it.
    assert result.thresholds == ((0.01, 0.9, 0.1), (0.02, 0.8, 0.1))
    assert bundle_gate(written(folder)) is not None
    named = [file.path.name for file in load_bundle(folder).files()]
    assert named.count('gate.npz') == 1
    assert all(file.verified() == file.path for file in load_bundle(folder).files())


def test_a_promise_that_is_not_listed_is_kept_by_the_next_smaller_one(folder: Path) -> None:
    result = bundle_gate(written(folder))
    assert result is not None
    found = {delta: result.certified(delta) for delta in (0.001, 0.01, 0.015, 0.02, 0.3)}
    assert {delta: known and known.threshold for delta, known in found.items()} == {
        0.001: None,
        0.01: 0.9,
        0.015: 0.9,
        0.02: 0.8,
        0.3: 0.8,
    }


@pytest.mark.parametrize(
    ('entries', 'words'),
    [
        ({'slow': []}, 'gate.slow'),
        ({'slow': 'camera'}, 'gate.slow'),
        ({'strategy': 3}, 'gate.strategy'),
        ({'thresholds': 0.9}, 'gate.thresholds'),
        ({'thresholds': [0.9]}, r'thresholds\[0\]'),
        ({'thresholds': [{'delta': 0.05, 'threshold': float('nan')}]}, 'threshold'),
        ({'thresholds': [{'delta': 0.05, 'threshold': 0.0}]}, 'threshold'),
        ({'thresholds': [{'delta': True, 'threshold': 0.5}]}, 'delta'),
        ({'thresholds': [{'delta': 0.05, 'threshold': 0.5}]}, 'early_loss'),
    ],
)
def test_a_wrong_section_is_refused_in_words(folder: Path, entries: dict, words: str) -> None:
    with pytest.raises(SkippingError, match=words):
        bundle_gate(changed(written(folder), **entries))
