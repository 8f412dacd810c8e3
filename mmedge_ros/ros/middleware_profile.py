"""The Fast DDS profile that lets pictures through shared memory; set wherever nodes start.

Without it a raw 640 x 480 picture does not fit the shared-memory segment, and most are lost.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from mmedge_ros.ros.graph import PACKAGE

_VARIABLE = 'FASTDDS_DEFAULT_PROFILES_FILE'
# The name up to Jazzy; it makes newer versions complain.
_OLD_VARIABLE = 'FASTRTPS_DEFAULT_PROFILES_FILE'
_OLD_DISTRIBUTIONS = ('humble', 'iron', 'jazzy')

_FILE = Path('config') / 'fastdds.xml'
_SOURCE = Path(__file__).resolve().parents[2]


def profile_environment(environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the variable that nodes need; nothing where the user has chosen a profile."""
    given = os.environ if environment is None else environment
    if _VARIABLE in given or _OLD_VARIABLE in given:
        return {}
    old = given.get('ROS_DISTRO', '') in _OLD_DISTRIBUTIONS
    prefixes = given.get('AMENT_PREFIX_PATH', '').split(os.pathsep)
    shares = [Path(prefix) / 'share' / PACKAGE for prefix in prefixes if prefix]
    for folder in (*shares, _SOURCE):
        if (folder / _FILE).is_file():
            return {_OLD_VARIABLE if old else _VARIABLE: str(folder / _FILE)}
    return {}
