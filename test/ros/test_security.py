"""A node whose security cannot be had says so in one sentence, and does not start without it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

MONITOR = ('mmedge_ros.ros.nodes.monitor',)
RECORD = ('mmedge_ros.commands.main', 'record', 'recording', '--seconds', '1')


def run(folder: Path, *command: str, strategy: str, **keystore: str) -> str:
    """Return what a program says that asks for security and is to end for want of it."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith('ROS_SECURITY')}
    security = {
        'ROS_SECURITY_ENABLE': 'true',
        'ROS_SECURITY_STRATEGY': strategy,
        'ROS_LOG_DIR': str(folder),
    }
    done = subprocess.run(
        [sys.executable, '-m', *command],
        env={**environment, **security, **keystore},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert 'Traceback' not in done.stderr
    assert not (folder / 'recording').exists()
    return done.stderr


@pytest.mark.parametrize('command', [MONITOR, RECORD], ids=['node', 'session'])
@pytest.mark.parametrize(
    ('keystore', 'strategy', 'words'),
    [
        ({}, 'Permissive', 'ROS_SECURITY_KEYSTORE names no keystore'),
        ({'ROS_SECURITY_KEYSTORE': ''}, 'Enforce', 'ROS_SECURITY_KEYSTORE names no keystore'),
        (
            {'ROS_SECURITY_KEYSTORE': '.'},
            'Permissive',
            '. is no keystore: its folder enclaves is missing',
        ),
    ],
    ids=['none', 'empty name', 'empty folder'],
)
def test_without_a_keystore_nothing_starts_unprotected_and_one_sentence_says_so(
    tmp_path: Path, keystore: dict[str, str], command: tuple[str, ...], strategy: str, words: str
) -> None:
    said = run(tmp_path, *command, strategy=strategy, **keystore)
    assert f'ROS_SECURITY_ENABLE is true, and {words}; docs/reliability.md' in ' '.join(
        said.split()
    )
