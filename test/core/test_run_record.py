"""Which software made a result, and what failed in it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

import mmedge_ros
from mmedge_ros.core.run_record import count_failure, software_identity, unexpected


def test_a_result_names_version_revision_and_model() -> None:
    found = software_identity('some/folder/yolox_nano.onnx')
    assert found.keys() == {'version', 'git', 'bundle'}
    assert found['version'] == mmedge_ros.__version__
    assert found['bundle'] == 'yolox_nano.onnx'


def test_outside_a_checkout_there_is_no_revision(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(mmedge_ros, '__file__', str(tmp_path / 'mmedge_ros/__init__.py'))
    assert software_identity('')['git'] == ''


@pytest.mark.parametrize('script', ['#!/bin/sh\nexit 128\n', None])
def test_a_git_that_fails_or_is_missing_costs_nothing_but_the_revision(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, script: str | None
) -> None:
    (tmp_path / '.git').mkdir()
    monkeypatch.setattr(mmedge_ros, '__file__', str(tmp_path / 'mmedge_ros/__init__.py'))
    programs = tmp_path / 'bin'
    programs.mkdir()
    if script is not None:
        (programs / 'git').write_text(script)
        (programs / 'git').chmod(0o755)
    monkeypatch.setenv('PATH', str(programs))
    assert software_identity('')['git'] == ''


def test_the_first_of_a_reason_is_new_and_the_next_are_not() -> None:
    failures: Counter[str] = Counter()
    assert count_failure(failures, 'broken')
    assert not count_failure(failures, 'broken')
    assert count_failure(failures, 'missing')
    assert failures == {'broken': 2, 'missing': 1}


def test_of_ever_new_reasons_only_the_first_are_told_apart() -> None:
    failures: Counter[str] = Counter()
    new = [count_failure(failures, f'reason {n}') for n in range(10_000)]
    assert failures.total() == 10_000
    assert len(failures) < 100
    assert sum(new) == len(failures)
    assert not count_failure(failures, 'reason 0')
    assert failures['reason 0'] == 2


def test_an_error_nobody_foresaw_is_named_with_its_kind() -> None:
    assert unexpected(KeyError('x')) == "unexpected KeyError: 'x'"
