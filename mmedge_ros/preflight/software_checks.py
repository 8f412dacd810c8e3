"""Python, its packages, and the ROS 2 that is in the environment."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from mmedge_ros.preflight.finding import Finding, note, ok, wrong

# By the names under which they are imported, with those of their distributions.
PACKAGES = {
    'numpy': 'numpy',
    'scipy': 'scipy',
    'cv2': 'opencv-python-headless',
    'onnxruntime': 'onnxruntime',
    'yaml': 'PyYAML',
    'psutil': 'psutil',
    'serial': 'pyserial',
    'rosbags': 'rosbags',
    'mcap': 'mcap',
}
_OLDEST_PYTHON, _NEWEST_PYTHON = (3, 10), (3, 13)
_INSTALLED_ROS = re.compile(r'/opt/ros/(\w+)')
_NUMBER = re.compile('[0-9]{0,9}')
_PATHS = ('AMENT_PREFIX_PATH', 'PYTHONPATH', 'LD_LIBRARY_PATH')
_FAST_DDS = ('', 'rmw_fastrtps_cpp', 'rmw_fastrtps_dynamic_cpp')
_PROFILES = ('FASTDDS_DEFAULT_PROFILES_FILE', 'FASTRTPS_DEFAULT_PROFILES_FILE')
_RANGE = 'ROS_AUTOMATIC_DISCOVERY_RANGE'
# Ports of DDS: above the first they collide with those that Linux gives to other programs,
# beyond the second there are none.
_LAST_SAFE_DOMAIN, _LAST_DOMAIN = 101, 232


def check_python(
    version: tuple[int, int], executable: str, version_of: Callable[[str, str], str | None]
) -> list[Finding]:
    """Judge interpreter and packages.

    :param version_of: returns the version of a package by import name and distribution, '' where
        it does not say, None if it is not installed
    """
    words = f'{version[0]}.{version[1]}, {executable}'
    if _OLDEST_PYTHON <= version <= _NEWEST_PYTHON:
        findings = [ok('Python', words)]
    else:
        findings = [note('Python', f'{words}: 3.10 to 3.13 are tested', 'use one of those')]
    versions = {name: version_of(name, of) for name, of in PACKAGES.items()}
    missing = [PACKAGES[name] for name, number in versions.items() if number is None]
    if missing:
        remedy = 'rosdep install, or pip install them; ./mmedge brings them all'
        findings.append(wrong('packages', f'not installed: {", ".join(missing)}', remedy))
    there = ', '.join(f'{name} {number}'.strip() for name, number in versions.items() if number)
    return [*findings, ok('packages', there)] if there else findings


def check_ros(
    environment: Mapping[str, str], rclpy_path: str | None, stale: Sequence[Path]
) -> list[Finding]:
    """Judge the environment of ROS 2, with the package's own middleware profile set in it.

    :param rclpy_path: file of rclpy, None where it is not installed
    :param stale: shared memory of the middleware that no process uses
    """
    if rclpy_path is None:
        return [
            wrong(
                'ROS 2',
                'rclpy is not installed for this Python: no live graph, but offline replay works',
                'source /opt/ros/DISTRIBUTION/setup.bash and the workspace, or use ./mmedge, '
                'which brings ROS 2 along',
            )
        ]
    return [
        *_installation(environment, rclpy_path),
        *_domain(environment),
        *_discovery(environment),
        *_middleware(environment),
        *_stale_memory(stale),
    ]


def _installation(environment: Mapping[str, str], rclpy_path: str) -> Iterator[Finding]:
    own = _INSTALLED_ROS.findall(rclpy_path)
    sourced = {
        name for path in _PATHS for name in _INSTALLED_ROS.findall(environment.get(path, ''))
    }
    words = f'{own[0]} in /opt/ros' if own else f'from the packages of Python, {rclpy_path}'
    others = sorted(sourced - set(own))
    if others:
        yield wrong(
            'ROS 2',
            f'{words}; but {" and ".join(others)} of /opt/ros is in the environment as well',
            'open a shell that sources one ROS 2 alone',
        )
    else:
        yield ok('ROS 2', words)


def _domain(environment: Mapping[str, str]) -> Iterator[Finding]:
    text = environment.get('ROS_DOMAIN_ID', '')
    remedy = f'export a ROS_DOMAIN_ID from 0 to {_LAST_SAFE_DOMAIN}, the same everywhere'
    domain = int(text or 0) if _NUMBER.fullmatch(text) else _LAST_DOMAIN + 1
    if domain > _LAST_DOMAIN:
        yield wrong('domain', f'ROS_DOMAIN_ID is {text[:40]!r}, which is no domain', remedy)
    elif domain > _LAST_SAFE_DOMAIN:
        yield note('domain', f'{domain}: its ports may be taken by other programs', remedy)
    else:
        yield ok('domain', f'{domain}' if text else '0, as ROS_DOMAIN_ID is not set')


def _discovery(environment: Mapping[str, str]) -> Iterator[Finding]:
    reach = environment.get(_RANGE, '')
    if reach == 'OFF':
        yield wrong('discovery', f'{_RANGE} is OFF: nodes find nothing', f'unset {_RANGE}')
    elif environment.get('ROS_LOCALHOST_ONLY', '') not in ('', '0'):
        remedy = f'unset it; {_RANGE} took its place'
        yield note('discovery', 'ROS_LOCALHOST_ONLY is set, which is deprecated', remedy)
    else:
        yield ok('discovery', f'{reach or "not restricted"}')


def _middleware(environment: Mapping[str, str]) -> Iterator[Finding]:
    middleware = environment.get('RMW_IMPLEMENTATION', '')
    if middleware not in _FAST_DDS:
        yield note(
            'middleware',
            f"{middleware[:60]}: the package's Fast DDS profile has no effect",
            'large pictures may be lost: see its own documentation, or unset RMW_IMPLEMENTATION',
        )
        return
    profile = next((environment[name] for name in _PROFILES if environment.get(name)), '')
    if not profile:
        remedy = 'start with `mmedge up` or the launch files, or export ' + _PROFILES[0]
        yield note('middleware', 'Fast DDS without a profile: most pictures get lost', remedy)
    elif not Path(profile).is_file():
        remedy = f'unset {_PROFILES[0]}, and the profile of the package is taken'
        yield wrong('middleware', f'Fast DDS by {profile}, which is no file', remedy)
    else:
        yield ok('middleware', f'Fast DDS by {profile}')


def _stale_memory(stale: Sequence[Path]) -> Iterator[Finding]:
    if stale:
        words = f'{len(stale)} files of killed processes in {stale[0].parent}'
        yield note('stale memory', words, '`mmedge up` removes what is yours as it starts')
