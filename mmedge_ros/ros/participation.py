"""How a process takes part in the graph: protected if that is asked for, its memory for its user.

Fast DDS lets every user of the machine read the shared memory that messages go through (mode
0644), whatever the umask; pictures may be among them.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import rclpy
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.node import Node

from mmedge_ros import MmedgeError
from mmedge_ros.core.parameter import ParameterError
from mmedge_ros.ros.graph.middleware_files import segments_of
from mmedge_ros.ros.graph.middleware_profile import set_profile

NodeT = TypeVar('NodeT', bound=Node)
_FOR_ITS_USER = 0o600
_HELP = 'docs/reliability.md says what it needs'


def take_part(args: list[str] | None = None, context: rclpy.Context | None = None) -> None:
    """Join the graph.

    :raises MmedgeError: if security is asked for that cannot be had, or for wrong ROS arguments
    """
    _require_keystore()
    set_profile()
    try:
        rclpy.init(args=args, context=context)
    except RuntimeError as err:
        raise ParameterError(str(err)) from err


def made_node(make: Callable[[], NodeT]) -> NodeT:
    """Make a node, and let no other user read what it sends.

    :raises MmedgeError: if security is asked for that the middleware cannot give
    """
    try:
        node = make()
    except rclpy_implementation.RCLError as err:
        if not _is_security_wanted():
            raise
        raise MmedgeError(
            f'ROS_SECURITY_ENABLE is true, and the middleware starts no node ({err}); {_HELP}'
        ) from err
    for path in segments_of(os.getpid()):
        with suppress(OSError):  # another user's, or gone meanwhile
            path.chmod(_FOR_ITS_USER)
    return node


def _is_security_wanted() -> bool:
    return os.environ.get('ROS_SECURITY_ENABLE') == 'true'


def _require_keystore() -> None:
    """Refuse what the middleware would refuse without a reason, or start unprotected."""
    if not _is_security_wanted():
        return
    keystore = os.environ.get('ROS_SECURITY_KEYSTORE', '')
    if not keystore:
        problem = 'ROS_SECURITY_KEYSTORE names no keystore'
    elif not (Path(keystore) / 'enclaves').is_dir():
        problem = f'{keystore} is no keystore: its folder enclaves is missing'
    else:
        return
    raise MmedgeError(f'ROS_SECURITY_ENABLE is true, and {problem}; {_HELP}')
