"""A node whose security cannot be had says so in one sentence, and does not start without it."""

from __future__ import annotations

from pathlib import Path

import pytest
import rclpy
from typer.testing import CliRunner

from mmedge_ros import MmedgeError
from mmedge_ros.commands.main import app
from mmedge_ros.ros.participation import take_part

UNNAMED = 'ROS_SECURITY_KEYSTORE names no keystore'


@pytest.mark.parametrize(
    ('keystore', 'strategy', 'words'),
    [
        (None, 'Permissive', UNNAMED),
        ('', 'Enforce', UNNAMED),
        ('.', 'Permissive', '. is no keystore: its folder enclaves is missing'),
    ],
    ids=['none', 'empty name', 'empty folder'],
)
def test_without_a_keystore_nothing_starts_unprotected_and_one_sentence_says_so(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    keystore: str | None,
    strategy: str,
    words: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv('ROS_SECURITY_ENABLE', 'true')
    monkeypatch.setenv('ROS_SECURITY_STRATEGY', strategy)
    monkeypatch.delenv('ROS_SECURITY_KEYSTORE', raising=False)
    if keystore is not None:
        monkeypatch.setenv('ROS_SECURITY_KEYSTORE', keystore)
    sentence = f'ROS_SECURITY_ENABLE is true, and {words}; docs/reliability.md'
    context = rclpy.Context()
    with pytest.raises(MmedgeError) as caught:
        take_part([], context)
    assert str(caught.value).startswith(sentence)
    assert not context.ok()
    done = CliRunner().invoke(app, ['record', 'recording', '--seconds', '1'])
    assert (done.exit_code, (tmp_path / 'recording').exists()) == (1, False)
    assert sentence in ' '.join(done.stderr.split())
