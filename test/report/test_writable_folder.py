"""Whether a report can be written is found out before the work, and leaves nothing behind."""

from __future__ import annotations

from pathlib import Path

import pytest

from mmedge_ros.report import ReportError
from mmedge_ros.report.report_files import require_writable


def test_a_folder_that_is_not_used_after_all_is_not_left_behind(tmp_path: Path) -> None:
    require_writable(tmp_path / 'a/b/c')
    assert list(tmp_path.iterdir()) == []
    (tmp_path / 'there').mkdir()
    require_writable(tmp_path / 'there/new')
    require_writable(tmp_path / 'there')
    assert [path.name for path in tmp_path.rglob('*')] == ['there']


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / 'file').touch()
    with pytest.raises(ReportError, match='name another folder with --out'):
        require_writable(tmp_path / 'file/report')
    assert [path.name for path in tmp_path.iterdir()] == ['file']
