"""A node that can never work says why in one line, and ends with an error."""

from __future__ import annotations

from pathlib import Path

import pytest
from live_graph import run_node


@pytest.mark.parametrize(
    ('executable', 'argument', 'words'),
    [
        ('camera', 'source:=webcam', 'choose one of v4l2'),
        ('camera', 'calibration_file:=/no/such.yaml', '/no/such.yaml'),
        ('radar', 'configuration:=/no/such.cfg', '/no/such.cfg: No such file'),
        ('monitor', 'trace:=/no/such.log', '/no/such.log'),
        ('bag_player', 'bag:=/no/such/bag', '/no/such/bag'),
        ('bag_player', 'topics.camera:=/camra', "'/camra'; the nearest is"),
        ('bag_recorder', 'topics:=[a]', 'no folder to record to'),
        ('configuration_optimizer', 'camera_rates:=[30.0, 10.0]', 'list every rate once'),
        (
            'fusion',
            'pipeline.windows.strid:=0.1',
            "nearest valid one is 'pipeline.windows",
        ),
        ('viewer', 'port:=0', 'the limits are 1 to 65535'),
    ],
)
def test_what_cannot_work_is_one_line(
    little_bag: Path, executable: str, argument: str, words: str
) -> None:
    bag = [f'bag:={little_bag}'] if argument.startswith('topics.') else []
    given = [word for each in (*bag, argument) for word in ('-p', each)]
    done = run_node(executable, *given)
    assert (done.returncode, done.stdout) == (1, '')
    assert done.stderr.count('\n') == 1
    assert done.stderr.startswith(f'{executable}: ')
    assert words in done.stderr
