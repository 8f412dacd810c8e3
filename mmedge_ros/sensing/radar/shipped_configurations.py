"""The chirp configurations that ship with the package, by the board they are for."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from mmedge_ros.sensing import SensingError
from mmedge_ros.sensing.radar.chirp_configuration import ChirpConfiguration, read_configuration
from mmedge_ros.sensing.radar.handshake import BoardVersion

_FOLDER = Path('config') / 'radar'
_SOURCE = Path(__file__).resolve().parents[3]
# The fastest of each board: slower rates follow by leaving out frames.
_BY_BOARD = (
    ('xWR14', 2, 'iwr1443_sdk2_20hz.cfg'),
    ('xWR16', 2, 'iwr1642_sdk2_20hz.cfg'),
    ('xWR16', 3, 'iwr1642_sdk3_20hz.cfg'),
    ('xWR18', 3, 'iwr1843_sdk3_20hz.cfg'),
    ('xWR68', 3, 'iwr6843_sdk3_20hz.cfg'),
)


def configurations_folder() -> Path:
    """Return the folder with the shipped configurations.

    :raises SensingError: if the package is installed without it
    """
    prefixes = [*os.environ.get('AMENT_PREFIX_PATH', '').split(os.pathsep), sys.prefix]
    shares = [Path(prefix) / 'share' / 'mmedge_ros' for prefix in prefixes if prefix]
    for share in (_SOURCE, *shares):
        if (share / _FOLDER).is_dir():
            return share / _FOLDER
    raise SensingError(
        f'the package is installed without {_FOLDER}; name a .cfg file with the parameter '
        'configuration'
    )


def configuration_for(version: BoardVersion) -> ChirpConfiguration:
    """Return the shipped configuration for a board.

    :raises SensingError: if there is none
    """
    for platform, major, name in _BY_BOARD:
        if version.platform.startswith(platform) and version.sdk[:1] == (major,):
            return read_configuration(configurations_folder() / name)
    raise SensingError(
        f'no configuration ships for {version}; name a .cfg file with the parameter configuration'
    )
