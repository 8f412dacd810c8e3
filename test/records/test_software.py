"""Which software made a result."""

from __future__ import annotations

from pathlib import Path

import pytest

import mmedge_ros
from mmedge_ros.records import software


def test_a_result_names_version_revision_and_model() -> None:
    found = software.software_identity('some/folder/yolox_nano.onnx')
    assert found.keys() == {'version', 'git', 'bundle'}
    assert found['version'] == mmedge_ros.__version__
    assert found['bundle'] == 'yolox_nano.onnx'


def test_outside_a_checkout_there_is_no_revision(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(
        software, '__file__', str(tmp_path / 'mmedge_ros' / 'records' / 'software.py')
    )
    assert software.software_identity('')['git'] == ''


@pytest.mark.parametrize('script', ['#!/bin/sh\nexit 128\n', None])
def test_a_git_that_fails_or_is_missing_costs_nothing_but_the_revision(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, script: str | None
) -> None:
    (tmp_path / '.git').mkdir()
    monkeypatch.setattr(
        software, '__file__', str(tmp_path / 'mmedge_ros' / 'records' / 'software.py')
    )
    programs = tmp_path / 'bin'
    programs.mkdir()
    if script is not None:
        (programs / 'git').write_text(script)
        (programs / 'git').chmod(0o755)
    monkeypatch.setenv('PATH', str(programs))
    assert software.software_identity('')['git'] == ''
