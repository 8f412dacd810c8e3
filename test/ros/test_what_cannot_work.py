"""A node that can never work says why in one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from mmedge_ros.ros.node_main import USER_ERRORS
from mmedge_ros.ros.nodes import single_process
from mmedge_ros.ros.nodes.single_process import make_node


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
        ('fusion', 'pipeline.windows.strid:=0.1', "nearest valid one is 'pipeline.windows"),
        ('fusion', 'broken', 'broken'),
        ('viewer', 'port:=0', 'the limits are 1 to 65535'),
        ('fly', 'port:=1', "no node 'fly'; there are bag_player, bag_recorder, "),
    ],
)
def test_what_cannot_work_is_one_line(
    ros: None, little_bag: Path, executable: str, argument: str, words: str
) -> None:
    bag = [f'bag:={little_bag}'] if argument.startswith('topics.') else []
    given = [word for each in (*bag, argument) for word in ('-p', each)]
    with pytest.raises(USER_ERRORS) as caught:
        make_node(executable, ['--ros-args', *given])
    assert words in ' '.join(str(caught.value).split())


@pytest.mark.parametrize('description', ['[[', '{}x', '["fusion"]', '3'])
def test_one_process_refuses_what_describes_no_nodes(description: str) -> None:
    with pytest.raises(SystemExit, match='single_process: not a description of nodes'):
        single_process.main([description])
