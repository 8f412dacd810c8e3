"""The Dockerfile does what the page about installing says, with packages that exist there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / 'docs/install.md').read_text()
# Preparations of the image and what tidies it up.
OWN_STEPS = ('apt-get update', 'apt-get install -y python3-pip', 'rm -rf /var/lib/apt/lists/*')


def instructions(name: str) -> list[str]:
    """Arguments of all instructions of this name, continued lines joined, comments left out."""
    lines = [line for line in (ROOT / 'Dockerfile').read_text().splitlines() if line[:1] != '#']
    text = re.sub(r'\\\n\s*', '', '\n'.join(lines))
    return re.findall(rf'^{name} (.*)$', text, re.MULTILINE)


def commands() -> list[str]:
    return [c.strip() for run in instructions('RUN') for c in run.split('&&')]


def steps_of_the_page() -> list[str]:
    section = PAGE.split('## With ROS 2')[1].split('\n## ')[0]
    (block,) = re.findall(r'^```\n(.*?)^```', section, re.DOTALL | re.MULTILINE)
    return [line.partition('  #')[0].strip() for line in block.splitlines()]


def test_its_steps_are_those_of_the_page_in_their_order() -> None:
    (distribution,) = re.findall(r'ros:(\w+)', *instructions('FROM'))
    assert f'source /opt/ros/{distribution}/setup.bash' in steps_of_the_page()
    exports = [f'export {variable}' for variable in instructions('ENV')]
    ours = [command for command in commands() if command not in OWN_STEPS]
    page = steps_of_the_page()
    assert exports + ours == page[: len(exports) + len(ours)]
    assert page[len(exports) + len(ours) :] == [
        'source install/setup.bash',
        'ros2 run mmedge_ros mmedge --version',
    ]


def test_what_it_copies_is_there_and_what_is_built_locally_is_not() -> None:
    copied = [line.split()[0] for line in instructions('COPY')]
    assert [name for name in copied if not (ROOT / name).exists()] == []
    ignored = (ROOT / '.dockerignore').read_text().split()
    assert {'.venv', '.venv-train', 'out'} <= set(ignored)
