"""A semantic memory comes back from its file, and no other file is taken for one."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from tiny_recogniser import tiny_centres

from mmedge_ros.recurrence import RecurrenceError
from mmedge_ros.recurrence.stored_centres import centres_as_bytes, read_centres


def arrays(content: bytes) -> dict[str, np.ndarray]:
    with np.load(io.BytesIO(content)) as file:
        return {name: file[name] for name in file.files}


def written(path: Path, content: dict[str, np.ndarray]) -> Path:
    np.savez(path, **content)
    return path


def test_centres_come_back_as_they_were_with_thresholds_that_recall_nothing(
    tmp_path: Path,
) -> None:
    centres = tiny_centres(float('inf'))
    path = tmp_path / 'memory.npz'
    path.write_bytes(centres_as_bytes(centres))
    back = read_centres(path)
    for one, other in zip(back, centres, strict=True):
        np.testing.assert_array_equal(one, other)


def test_what_is_missing_unknown_or_does_not_fit_is_refused(tmp_path: Path) -> None:
    whole = arrays(centres_as_bytes(tiny_centres()))
    path = tmp_path / 'memory.npz'
    for spoiled in (
        {name: value for name, value in whole.items() if name != 'origin_0'},
        {**whole, 'more': np.zeros(1)},
        {**whole, 'centres_0': np.zeros((2, 3))},
        {**whole, 'centres_0': np.full((3, 3), np.nan)},
        {**whole, 'thresholds': np.zeros(2)},
        {},
    ):
        with pytest.raises(RecurrenceError, match=r'memory\.npz'):
            read_centres(written(path, spoiled))


@pytest.mark.parametrize('content', [b'', b'PK\x03\x04', b'\x93NUMPY', b'anything'])
def test_a_file_that_is_none_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / 'memory.npz'
    path.write_bytes(content)
    with pytest.raises(RecurrenceError, match=r'memory\.npz'):
        read_centres(path)


def test_a_file_that_could_run_code_is_refused(tmp_path: Path) -> None:
    whole = arrays(centres_as_bytes(tiny_centres()))
    objects = np.array([{'a': 1}], dtype=object)
    with pytest.raises(RecurrenceError, match='cannot be read'):
        read_centres(written(tmp_path / 'memory.npz', {**whole, 'counts': objects}))
