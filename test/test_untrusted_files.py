from __future__ import annotations

from pathlib import Path

import pytest

from mmedge_ros.untrusted_files import read_bounded


class RefusedError(Exception):
    """What the caller wants raised."""


def test_a_file_of_just_the_size_is_read(tmp_path: Path) -> None:
    path = tmp_path / 'file'
    path.write_bytes(b'12345')
    assert read_bounded(path, 5, RefusedError) == b'12345'
    with pytest.raises(RefusedError, match=rf'^{path}: larger than 4 bytes; give less$'):
        read_bounded(path, 4, RefusedError, 'give less')


def test_a_device_that_never_ends_is_refused() -> None:
    with pytest.raises(RefusedError, match=r'^/dev/zero: larger than 1000 bytes$'):
        read_bounded('/dev/zero', 1000, RefusedError)


@pytest.mark.parametrize(
    ('name', 'words'),
    [
        ('missing', 'No such file or directory; look again'),
        ('', 'Is a directory'),
        ('nu\0ll', 'null'),
        ('x' * 5000, 'File name too long'),
    ],
)
def test_what_cannot_be_read_is_said_with_its_path(tmp_path: Path, name: str, words: str) -> None:
    with pytest.raises(RefusedError, match=words) as refused:
        read_bounded(tmp_path / name, 5, RefusedError, 'look again')
    assert str(tmp_path) in str(refused.value)
