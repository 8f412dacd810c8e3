"""Which software made a result."""

from __future__ import annotations

import subprocess
from pathlib import Path

from mmedge_ros import __version__


def software_identity(bundle: Path | str) -> dict[str, str]:
    """Return version, git revision ('' outside a checkout) and the model's name."""
    return {'version': __version__, 'git': _git_revision(), 'bundle': Path(bundle).name}


def _git_revision() -> str:
    root = Path(__file__).resolve().parents[2]
    if not (root / '.git').exists():
        return ''
    try:
        found = subprocess.run(
            ['git', '-C', str(root), 'describe', '--always', '--dirty'],
            capture_output=True,
            text=True,
            timeout=5,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ''
    return found.stdout.strip()
