"""Where `mmedge` starts: Ctrl-C ends it quietly from here on, and old libraries are one sentence.

Both come before any library is imported.
"""

from __future__ import annotations

import signal
import sys

# As in pyproject.toml; what rosdep installs on Debian 12 and Ubuntu 24.04 is newer.
LEAST_VERSIONS = {'typer': (0, 7), 'matplotlib': (3, 6)}


def old_libraries() -> list[str]:
    """Name the libraries that are here but too old, with their versions."""
    import importlib.metadata
    import re

    versions = {name: importlib.metadata.version(name) for name in LEAST_VERSIONS}
    return [
        f'{name} {version}'
        for name, version in versions.items()
        if tuple(map(int, re.findall(r'\d+', version)[:2])) < LEAST_VERSIONS[name]
    ]


def _end(number: int, _: object) -> None:
    """End at once: nothing is at work yet, and libraries catch exceptions while they load."""
    import os

    os.write(2, b'stopped\n')
    os._exit(128 + number)


def main() -> None:
    """Run the command line where the libraries are new enough for it."""
    signal.signal(signal.SIGINT, _end)
    # ./mmedge has it blocked while the interpreter starts.
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    old = old_libraries()
    if old:
        sys.exit(f'mmedge: {" and ".join(old)}: too old; pip install -r requirements/ubuntu.txt')
    from mmedge_ros.commands.main import main as run

    run()


if __name__ == '__main__':
    main()
