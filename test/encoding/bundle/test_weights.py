"""Weight files before they are opened."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from mmedge_ros.encoding import EncodingError
from mmedge_ros.encoding.bundle.weights import cache_folder, require_weights, sha256_of


@pytest.mark.parametrize(
    ('name', 'words'),
    [
        ('missing.onnx', r'missing\.onnx do not exist; check the path'),
        ('', 'are a folder'),
        ('pipe.onnx', 'not a regular file'),
        ('empty.onnx', 'are empty'),
        ('a.engine', r"end in '\.engine'; accepted are \.onnx and \.pt"),
        ('a' * 5000 + '.onnx', 'weights'),
        ('a\0b.onnx', 'weights'),
    ],
)
def test_what_holds_no_weights_is_refused_and_not_read(
    tmp_path: Path, name: str, words: str
) -> None:
    os.mkfifo(tmp_path / 'pipe.onnx')
    (tmp_path / 'empty.onnx').touch()
    (tmp_path / 'a.engine').write_bytes(b'x')
    with pytest.raises(EncodingError, match=words):
        require_weights(tmp_path / name)


def test_the_hash_is_that_of_the_content(tmp_path: Path) -> None:
    content = bytes(range(256)) * 9000  # more than one chunk
    path = tmp_path / 'a.ONNX'
    path.write_bytes(content)
    assert sha256_of(require_weights(path)) == hashlib.sha256(content).hexdigest()


def test_the_cache_follows_the_xdg_specification(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv('HOME', '/home/someone')
    monkeypatch.setenv('XDG_CACHE_HOME', '/big/disk')
    assert cache_folder() == Path('/big/disk/mmedge_ros')
    monkeypatch.setenv('XDG_CACHE_HOME', 'relative/is/ignored')
    assert cache_folder() == Path('/home/someone/.cache/mmedge_ros')
