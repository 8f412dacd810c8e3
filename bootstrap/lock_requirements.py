"""Write requirements/locked/: what `./mmedge` may install, each file by its SHA-256.

As a program without arguments, in an environment that has `packaging`; needs uv on the path. Run
it after a change of requirements/: versions come from constraints.txt, hashes from the package
index that uv is set up for, file names and addresses are not kept. Only wheels for Linux on x86-64
and aarch64 are listed, and the source of what has no wheel at all.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import tomllib
from packaging.markers import Marker

REQUIREMENTS = Path(__file__).resolve().parent.parent / 'requirements'
# torch is not locked: which of its builds a machine needs depends on the machine.
DEPENDENCIES = {
    'flight': True,
    'ros': True,
    'test': True,
    'rivals': True,
    'rivals_alone': False,
    'train_alone': False,
}
PYTHONS = ('3.11', '3.12', '3.13')
_WHEEL = re.compile(
    r'-(py2\.py3|py3|cp3\d+(?:\.cp3\d+)*)-(none|abi3|cp3\d+)-'
    r'(any|[^-]*manylinux[^-]*_(?:x86_64|aarch64))\.whl$'
)


def main() -> None:
    """Write one locked file for each group of requirements."""
    for name, dependencies in DEPENDENCIES.items():
        locked = sorted(_lines(_resolve(name, dependencies)))
        (REQUIREMENTS / f'locked/{name}.txt').write_text(
            f'# Made of requirements/{name}.txt by bootstrap/lock_requirements.py\n'
            + ''.join(locked)
        )


def _resolve(name: str, dependencies: bool) -> list[dict[str, Any]]:
    command = ['uv', 'pip', 'compile', '--universal', '--python-version', PYTHONS[0], '--quiet']
    command += ['--format', 'pylock.toml', f'{name}.txt']
    command += [] if dependencies else ['--no-deps']
    done = subprocess.run(
        command, cwd=REQUIREMENTS, stdout=subprocess.PIPE, text=True, check=False
    )
    if done.returncode:
        sys.exit(f'uv could not resolve requirements/{name}.txt')
    packages: list[dict[str, Any]] = tomllib.loads(done.stdout)['packages']
    return packages


def _lines(packages: list[dict[str, Any]]) -> list[str]:
    lines = []
    for package in packages:
        marker = package.get('marker')
        wanted = [marker is None or Marker(marker).evaluate(_linux(at)) for at in PYTHONS]
        if not any(wanted):
            continue
        condition = '' if all(wanted) else f' ; {marker}'
        hashes = ''.join(f' \\\n  --hash=sha256:{value}' for value in _hashes(package))
        lines.append(f'{package["name"]}=={package["version"]}{condition}{hashes}\n')
    return lines


def _linux(python: str) -> dict[str, str]:
    return {
        'sys_platform': 'linux',
        'platform_system': 'Linux',
        'os_name': 'posix',
        'python_version': python,
        'python_full_version': f'{python}.0',
    }


def _hashes(package: dict[str, Any]) -> list[str]:
    wheels = [wheel for wheel in package.get('wheels', []) if _suits(wheel)]
    files = wheels or [package['sdist']]
    return sorted(file['hashes']['sha256'] for file in files)


def _suits(wheel: dict[str, Any]) -> bool:
    found = _WHEEL.search(wheel['url'])
    if found is None:
        return False
    tags = {f'cp{python.replace(".", "")}' for python in PYTHONS}
    return found[2] in {'none', 'abi3'} or bool(tags & {*found[1].split('.')})


if __name__ == '__main__':
    main()
