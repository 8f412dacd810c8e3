"""Where `mmedge` starts: libraries that are too old are one sentence, before any is imported."""

from __future__ import annotations

import importlib.metadata
import re
import sys

# As in pyproject.toml; what rosdep installs on Debian 12 and Ubuntu 24.04 is newer.
LEAST_VERSIONS = {'typer': (0, 7), 'matplotlib': (3, 6)}


def old_libraries() -> list[str]:
    """Name the libraries that are here but too old, with their versions."""
    versions = {name: importlib.metadata.version(name) for name in LEAST_VERSIONS}
    return [
        f'{name} {version}'
        for name, version in versions.items()
        if tuple(map(int, re.findall(r'\d+', version)[:2])) < LEAST_VERSIONS[name]
    ]


def main() -> None:
    """Run the command line where the libraries are new enough for it."""
    old = old_libraries()
    if old:
        sys.exit(f'mmedge: {" and ".join(old)}: too old; pip install -r requirements/ubuntu.txt')
    from mmedge_ros.commands.main import main as run

    run()
