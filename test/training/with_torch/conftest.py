"""These tests need torch, which is in .venv-train; ../test_with_torch.py runs them there."""

from __future__ import annotations

import importlib.util

if importlib.util.find_spec('torch') is None:
    collect_ignore_glob = ['test_*.py']
