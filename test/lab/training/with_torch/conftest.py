"""These tests need torch, which is in .venv-train; see ../../torch_environment.py."""

from __future__ import annotations

import importlib.util
import resource
import signal
from collections.abc import Iterator

import pytest

if importlib.util.find_spec('torch') is None:
    collect_ignore_glob = ['test_*.py']


@pytest.fixture
def little_room() -> Iterator[None]:
    """Files may grow to 100 kB only, as on a disk that is nearly full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)
    signal.signal(signal.SIGXFSZ, ignored)
