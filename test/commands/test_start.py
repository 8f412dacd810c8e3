"""What is too old for the command line is said before anything of it is imported."""

from __future__ import annotations

from pathlib import Path

import pytest

from mmedge_ros.commands.start import LEAST_VERSIONS, main, old_libraries

ROOT = Path(__file__).resolve().parents[2]


def test_libraries_that_are_too_old_are_named_with_what_brings_newer_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert old_libraries() == []
    versions = {'typer': '0.4.0', 'matplotlib': '3.10rc1'}
    monkeypatch.setattr('importlib.metadata.version', versions.__getitem__)
    with pytest.raises(SystemExit, match=r'typer 0.4.0: too old; pip install -r requirements/ub'):
        main()


def test_the_bounds_are_those_of_the_package() -> None:
    text = (ROOT / 'pyproject.toml').read_text()
    for name, version in LEAST_VERSIONS.items():
        assert f"'{name}>={'.'.join(map(str, version))}'" in text
