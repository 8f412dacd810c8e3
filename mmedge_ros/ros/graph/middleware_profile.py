"""The Fast DDS profile of the package; set wherever nodes start.

It lets pictures through shared memory: without it a raw 640 x 480 picture does not fit there,
and most are lost. It also keeps everything on this machine, unless the network is wanted. Settings
of the memory allocator go beside it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from mmedge_ros.ros.graph.description import PACKAGE

_VARIABLE = 'FASTDDS_DEFAULT_PROFILES_FILE'
# The name up to Jazzy; it makes newer versions complain.
_OLD_VARIABLE = 'FASTRTPS_DEFAULT_PROFILES_FILE'
_OLD_DISTRIBUTIONS = ('humble', 'iron', 'jazzy')

_RANGE = 'ROS_AUTOMATIC_DISCOVERY_RANGE'
_ONLY_HERE = 'LOCALHOST'
_LEFT_TO_THE_PROFILE = 'SYSTEM_DEFAULT'

# Of glibc: blocks as large as pictures come from the heap, which is kept. Without this each
# picture is memory mapped and cleared anew, more than half of what receiving one costs.
_ALLOCATOR = {
    'MALLOC_MMAP_THRESHOLD_': '33554432',
    'MALLOC_TRIM_THRESHOLD_': '268435456',
    'MALLOC_TOP_PAD_': '16777216',
}

_LOCAL = Path('config') / 'fastdds.xml'
_NETWORK = Path('config') / 'fastdds_network.xml'
_SOURCE = Path(__file__).resolve().parents[3]


def node_environment(
    environment: Mapping[str, str] | None = None, network: bool = False
) -> dict[str, str]:
    """Return the variables that nodes need, but for those that the user has set.

    :param network: let machines on the network take part
    """
    given = os.environ if environment is None else environment
    allocator = {name: value for name, value in _ALLOCATOR.items() if name not in given}
    return {**allocator, **profile_environment(given, network)}


def profile_environment(
    environment: Mapping[str, str] | None = None, network: bool = False
) -> dict[str, str]:
    """Return the variables that name the profile; none where the user has chosen one.

    :param network: let machines on the network take part
    """
    given = os.environ if environment is None else environment
    if _VARIABLE in given or _OLD_VARIABLE in given:
        return {}
    path = _installed(_NETWORK if network else _LOCAL, given.get('AMENT_PREFIX_PATH', ''))
    if path is None:
        return {}
    old = given.get('ROS_DISTRO', '') in _OLD_DISTRIBUTIONS
    variables = {_OLD_VARIABLE if old else _VARIABLE: str(path)}
    if not network and given.get(_RANGE) in (None, '', _ONLY_HERE):
        # For LOCALHOST rmw_fastrtps adds a transport with sockets on all interfaces; the profile
        # does the same on the loopback interface alone.
        variables[_RANGE] = _LEFT_TO_THE_PROFILE
    return variables


def set_profile(network: bool = False) -> None:
    """Choose profile and allocator of the processes that are started; the profile of this one.

    See `node_environment`; the allocator of a process that runs is not changed.
    """
    os.environ.update(node_environment(network=network))


def profile_in_use() -> str:
    """Return the profile of this process, as a variable is set: NAME=PATH; '' without one."""
    named = ((name, os.environ.get(name)) for name in (_VARIABLE, _OLD_VARIABLE))
    return next((f'{name}={path}' for name, path in named if path), '')


def _installed(file: Path, prefixes: str) -> Path | None:
    shares = [Path(prefix) / 'share' / PACKAGE for prefix in prefixes.split(os.pathsep) if prefix]
    candidates = (folder / file for folder in (*shares, _SOURCE))
    return next((path for path in candidates if path.is_file()), None)
