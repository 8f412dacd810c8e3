"""Weight files before they are opened."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from mmedge_ros.encoding import EncodingError
from mmedge_ros.encoding.bundle.weights import cache_folder, require_weights, sha256_of


def test_a_file_with_content_is_accepted(tmp_path: Path) -> None:
    path = tmp_path / 'a.ONNX'
    path.write_bytes(b'x')
    assert require_weights(path) == path


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(EncodingError, match=r'a\.onnx do not exist; check the path'):
        require_weights(tmp_path / 'a.onnx')


def test_a_folder_is_no_weight_file(tmp_path: Path) -> None:
    with pytest.raises(EncodingError, match='are a folder'):
        require_weights(tmp_path)


def test_a_pipe_is_refused_and_not_read(tmp_path: Path) -> None:
    pipe = tmp_path / 'a.onnx'
    os.mkfifo(pipe)
    with pytest.raises(EncodingError, match='not a regular file'):
        require_weights(pipe)


def test_an_empty_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / 'a.onnx'
    path.touch()
    with pytest.raises(EncodingError, match='are empty'):
        require_weights(path)


def test_another_kind_of_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / 'a.engine'
    path.write_bytes(b'x')
    with pytest.raises(EncodingError, match=r"end in '\.engine'; accepted are \.onnx and \.pt"):
        require_weights(path)


@pytest.mark.parametrize('name', ['a' * 5000 + '.onnx', 'a\0b.onnx'])
def test_a_name_no_file_can_have_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(EncodingError, match='weights'):
        require_weights(tmp_path / name)


def test_the_hash_is_that_of_the_content(tmp_path: Path) -> None:
    content = bytes(range(256)) * 9000  # more than one chunk
    path = tmp_path / 'a.onnx'
    path.write_bytes(content)
    assert sha256_of(path) == hashlib.sha256(content).hexdigest()


def test_a_file_that_cannot_be_read_has_no_hash(tmp_path: Path) -> None:
    with pytest.raises(EncodingError, match='cannot be read'):
        sha256_of(tmp_path)


def test_the_cache_follows_the_xdg_specification(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv('HOME', '/home/someone')
    monkeypatch.setenv('XDG_CACHE_HOME', '/big/disk')
    assert cache_folder() == Path('/big/disk/mmedge_ros')
    monkeypatch.setenv('XDG_CACHE_HOME', 'relative/is/ignored')
    assert cache_folder() == Path('/home/someone/.cache/mmedge_ros')
    monkeypatch.delenv('XDG_CACHE_HOME')
    assert cache_folder() == Path('/home/someone/.cache/mmedge_ros')
