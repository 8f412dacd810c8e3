"""The network of the gate, and its file."""

from __future__ import annotations

import contextlib
import io
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hand_made_gates import gate, gate_features
from hypothesis import given, settings
from hypothesis import strategies as st

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
    assert subject.logits(many)[0] == pytest.approx(logit)


@pytest.mark.parametrize('value', [1e300, -1e300, np.inf, -np.inf])
def test_what_was_never_seen_in_training_does_not_run_away(value: float) -> None:
    subject = replace(gate(), mean=np.zeros(len(FIELDS)), scale=np.ones(len(FIELDS)))
    edge = gate_features(lead=4.0 if value > 0 else -4.0)
    assert subject.confidence(gate_features(lead=value)) == pytest.approx(subject.confidence(edge))


def test_a_sure_gate_says_one_and_an_unsure_one_zero() -> None:
    for offset, expected in ((1e6, 1.0), (-1e6, 0.0)):
        assert replace(gate(), bias2=offset).confidence(gate_features()) == pytest.approx(expected)


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
        ({'bias1': None}, 'bias1'),
        ({'bias1': np.zeros(3, np.float32)}, 'weights1'),
        ({'bias2': np.array([np.nan], np.float32)}, 'not finite'),
        ({'scale': np.zeros(len(FIELDS))}, 'float64'),
        ({'fields': np.array(['speed', *FIELDS[1:]])}, 'other fields .*speed'),
        ({'fields': np.array(FIELDS[::-1])}, 'another order'),
        ({'mean': np.array([None] * len(FIELDS), object)}, 'is no gate'),
        ({'weights2': np.zeros((1 << 20), np.float32)}, 'larger'),
    ],
)
def test_a_file_that_is_no_gate_is_refused_in_words(
    tmp_path: Path, arrays: dict, words: str
) -> None:
    path = tmp_path / 'gate.npz'
    path.write_bytes(changed(gate(), **arrays))
    with pytest.raises(SkippingError, match=words):
        read_gate(path)


def test_a_small_file_that_unpacks_to_a_large_one_is_refused(tmp_path: Path) -> None:
    path = tmp_path / 'gate.npz'
    with zipfile.ZipFile(path, 'w', zipfile.ZIP_DEFLATED) as archive:
        archive.writestr('mean.npy', bytes(50 << 20))
    assert path.stat().st_size < 1 << 20
    with pytest.raises(SkippingError, match='unpacks'):
        read_gate(path)


@pytest.fixture(scope='module')
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp('damaged')


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_no_damage_to_a_file_raises_anything_else(data: st.DataObject, folder: Path) -> None:
    whole = gate_bytes(gate())
    place = data.draw(st.integers(0, len(whole) - 1))
    damaged = data.draw(
        st.sampled_from(
            [
                whole[:place],
                whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :],
                data.draw(st.binary(max_size=200)),
            ]
        )
    )
    path = folder / 'gate.npz'
    path.write_bytes(damaged)
    with contextlib.suppress(SkippingError):
        read_gate(path)
