"""A node whose security cannot be had says so in one sentence, and does not start without it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize(
    ('made', 'words'),
    [(False, "enclaves' does not exist"), (True, 'ROS_SECURITY_ENABLE is true, and the midd')],
)
def test_a_keystore_that_cannot_be_used_is_one_sentence(
    tmp_path: Path, made: bool, words: str
) -> None:
    if made:
        (tmp_path / 'enclaves').mkdir()
        for name in ('identity_ca.cert', 'permissions_ca.cert', 'cert', 'key'):
            (tmp_path / f'enclaves/{name}.pem').touch()
        for name in ('governance', 'permissions'):
            (tmp_path / f'enclaves/{name}.p7s').touch()
    security = {
        'ROS_SECURITY_ENABLE': 'true',
        'ROS_SECURITY_STRATEGY': 'Enforce',
        'ROS_SECURITY_KEYSTORE': str(tmp_path),
        'ROS_LOG_DIR': str(tmp_path),
    }
    done = subprocess.run(
        [sys.executable, '-m', 'mmedge_ros.ros.nodes.monitor'],
        env={**os.environ, **security},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert words in done.stderr
    assert 'Traceback' not in done.stderr
