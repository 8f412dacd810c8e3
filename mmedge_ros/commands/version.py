"""Which software this is."""

from __future__ import annotations

import importlib.metadata
import os
import platform

from mmedge_ros import __version__, git_revision


def version_line() -> str:
    """Say version, commit (in a checkout), Python and which ROS 2 there is."""
    revision = git_revision()
    commit = f' ({revision})' if revision else ''
    return f'mmedge {__version__}{commit}, Python {platform.python_version()}, {_ros()}'


def _ros() -> str:
    if os.environ.get('ROS_DISTRO'):
        return f'ROS 2 {os.environ["ROS_DISTRO"]}'
    try:
        return f'ROS 2 from PyPI (rclpy {importlib.metadata.version("ros-rclpy")})'
    except importlib.metadata.PackageNotFoundError:
        return 'no ROS 2'
