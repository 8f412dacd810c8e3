"""The network of the gate, and its file."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hand_made_gates import gate, gate_features

from mmedge_ros.windows import SkippingError
from mmedge_ros.windows.gate import Gate, gate_bytes, read_gate
from mmedge_ros.windows.gate_features import FIELDS


def test_the_gate_is_two_layers() -> None:
    subject = gate()
    features = gate_features(lead=0.2, people=3.0)
    inputs = np.clip((features.vector() - subject.mean) * subject.scale, -4.0, 4.0)
    hidden = np.maximum(inputs @ subject.weights1 + subject.bias1, 0.0)
    logit = hidden @ subject.weights2 + subject.bias2
    assert subject.confidence(features) == pytest.approx(1.0 / (1.0 + np.exp(-logit)))
    many = np.stack([features.vector(), gate_features().vector()])
    assert subject.outputs(many)[0] == pytest.approx(logit)


@pytest.mark.parametrize('value', [1e300, -1e300, np.inf, -np.inf])
def test_what_was_never_seen_in_training_does_not_run_away(value: float) -> None:
    subject = replace(gate(), mean=np.zeros(len(FIELDS)), scale=np.ones(len(FIELDS)))
    edge = gate_features(lead=4.0 if value > 0 else -4.0)
    assert subject.confidence(gate_features(lead=value)) == pytest.approx(subject.confidence(edge))


def test_a_gate_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / 'gate.npz'
    written = gate()
    path.write_bytes(gate_bytes(written))
    read = read_gate(path)
    features = gate_features(lead=0.1, people=2.0)
    assert read.confidence(features) == written.confidence(features)


def changed(subject: Gate, **arrays: np.ndarray) -> bytes:
    with np.load(io.BytesIO(gate_bytes(subject))) as file:
        content = {name: file[name] for name in file.files}
    buffer = io.BytesIO()
    np.savez(buffer, **{n: a for n, a in {**content, **arrays}.items() if a is not None})
    return buffer.getvalue()


@pytest.mark.parametrize(
    ('arrays', 'words'),
    [
        ({'bias1': np.zeros(3, np.float32)}, 'weights1'),
        ({'fields': np.array(['speed', *FIELDS[1:]])}, 'other fields .*speed'),
        ({'mean': np.array([None] * len(FIELDS), object)}, 'is no gate'),
    ],
)
def test_a_file_that_is_no_gate_is_refused_in_words(
    tmp_path: Path, arrays: dict, words: str
) -> None:
    path = tmp_path / 'gate.npz'
    path.write_bytes(changed(gate(), **arrays))
    with pytest.raises(SkippingError, match=words):
        read_gate(path)
