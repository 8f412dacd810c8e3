from __future__ import annotations

from pathlib import Path

from machine_trees import orin_nano, write_files

from mmedge_ros.monitoring.machine_description import machine_description
from mmedge_ros.monitoring.system_files import SystemFiles


def test_processor_and_board_are_named(tmp_path: Path) -> None:
    root = write_files(
        tmp_path,
        {
            'proc/cpuinfo': 'processor : 0\nmodel name\t: Some CPU @ 2 GHz\nflags : x\n',
            'proc/device-tree/model': 'Some Board\0',
        },
    )
    told = machine_description(SystemFiles(root))
    assert (told['processor'], told['model']) == ('Some CPU @ 2 GHz', 'Some Board')


def test_what_is_not_known_is_left_empty(tmp_path: Path) -> None:
    told = machine_description(SystemFiles(orin_nano(tmp_path)))
    assert told['processor'] != ''
    assert isinstance(told['cores'], int)
