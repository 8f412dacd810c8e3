"""Folders with names that are short enough for sockets, wherever pytest keeps its own."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def short_folder() -> Iterator[Path]:
    """Make a folder, and remove it in the end."""
    folder = Path(tempfile.mkdtemp(prefix='m', dir='/tmp'))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
