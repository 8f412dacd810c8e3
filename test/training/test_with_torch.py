"""Runs what needs torch in the environment that has it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PYTHON = ROOT / '.venv-train/bin/python'


@pytest.mark.skipif(
    not (ROOT / '.venv-train/.stamp-train').is_file(),
    reason='torch is not installed: `./mmedge train --help` installs it into .venv-train',
)
@pytest.mark.timeout(600)
def test_what_needs_torch_passes_in_the_environment_for_training() -> None:
    done = subprocess.run(
        [
            PYTHON,
            *('-m', 'pytest', '-q', '-p', 'no:cacheprovider', '--timeout', '500'),
            'test/training/with_torch',
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
