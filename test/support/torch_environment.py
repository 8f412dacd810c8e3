"""Runs tests in the environment that has torch."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDER = 'test/lab/training/with_torch'
# Half of the work; a module of its own runs it beside the rest.
DETECTORS = tuple(
    f'{FOLDER}/{name}'
    for name in ('test_camera_level.py', 'test_level_bundle.py', 'test_tiny_training.py')
)

needs_torch = pytest.mark.skipif(
    not (ROOT / '.venv-train/.stamp-train').is_file(),
    reason='torch is not installed: `./mmedge lab train --help` installs it into .venv-train',
)


def run_with_torch(*arguments: str) -> None:
    """Run tests where torch is; none of them may fail or be skipped."""
    done = subprocess.run(
        [
            ROOT / '.venv-train/bin/python',
            *('-m', 'pytest', '-q', '-p', 'no:cacheprovider', '--timeout', '500'),
            *arguments,
        ],
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if name != 'PYTEST_ADDOPTS'},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=550,
        check=False,
    )
    print(done.stdout, file=sys.stderr)
    assert done.returncode == 0, done.stdout[-3000:]
    assert ' skipped' not in done.stdout.splitlines()[-1]
