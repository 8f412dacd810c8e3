"""By what a bundle under test and the software that judges it are known."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from mmedge_lab.judging import bundle_under_test


def test_both_packages_are_part_of_the_software_wherever_they_lie(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundle_under_test.software_digest.cache_clear()
    known = {bundle_under_test.software_digest()}
    for name in ('mmedge_ros', 'mmedge_lab'):
        code = tmp_path / name / name / 'room/module.py'
        code.parent.mkdir(parents=True)
        package = SimpleNamespace(__name__=name, __file__=str(code.parents[1] / '__init__.py'))
        monkeypatch.setattr(bundle_under_test, name, package)
        for text in ('', 'changed'):
            code.write_text(text)
            bundle_under_test.software_digest.cache_clear()
            known.add(bundle_under_test.software_digest())
    bundle_under_test.software_digest.cache_clear()
    assert len(known) == 5
