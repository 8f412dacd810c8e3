"""Message types for a recording: their definitions for the file, their classes for ROS."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from rosbags.interfaces import MessageDefinition, MessageDefinitionFormat
from rosbags.typesys import Stores, TypesysError, get_types_from_msg, get_typestore

from mmedge_ros.replay import ReplayError

_SOURCE = Path(__file__).resolve().parents[3]


def message_folders() -> list[Path]:
    """Return the share folders of the ROS installation."""
    prefixes = os.environ.get('AMENT_PREFIX_PATH', '').split(os.pathsep)
    shares = [Path(prefix) / 'share' for prefix in (*prefixes, sys.prefix) if prefix]
    return [share for share in shares if share.is_dir()]


class MessageTypes:
    """Definitions of message types by name, such as ``sensor_msgs/msg/Image``.

    Types that rosbags does not bring are read from the .msg files of their packages.
    """

    def __init__(self, folders: list[Path] | None = None) -> None:
        self._folders = message_folders() if folders is None else folders
        self._store = get_typestore(Stores.ROS2_KILTED)

    def definition(self, msgtype: str) -> tuple[MessageDefinition, str]:
        """Return the definition, those of nested types included, and its RIHS01 digest.

        :raises ReplayError: if the type is not installed
        """
        self._learn(msgtype)
        text, _ = self._store.generate_msgdef(msgtype, ros_version=2)
        digest = self._store.hash_rihs01(msgtype)
        return MessageDefinition(MessageDefinitionFormat.MSG, text), digest

    def _learn(self, msgtype: str) -> None:
        """Register a type and those it is made of."""
        if msgtype in self._store.fielddefs:
            return
        try:
            definitions = get_types_from_msg(self._text(msgtype), msgtype)
        except TypesysError as error:
            raise ReplayError(f'the definition of {msgtype} cannot be read: {error}') from error
        for nested in _named_in(definitions, msgtype):
            self._learn(nested)
        self._store.register(definitions)

    def _text(self, msgtype: str) -> str:
        package, _, name = msgtype.partition('/msg/')
        candidates = [folder / package / 'msg' / f'{name}.msg' for folder in self._folders]
        if package == 'mmedge_ros':
            candidates.append(_SOURCE / 'msg' / f'{name}.msg')
        for path in candidates:
            if path.is_file():
                return path.read_text()
        raise ReplayError(f'{msgtype} is not installed: no {package}/msg/{name}.msg; install it')


def message_class(msgtype: str) -> Any:
    """Return the class of a message type.

    :raises ReplayError: if its package is not installed
    """
    package, _, name = msgtype.partition('/msg/')
    try:
        return getattr(import_module(f'{package}.msg'), name)
    except (ImportError, AttributeError, ValueError, TypeError) as error:
        raise ReplayError(f'{msgtype} cannot be recorded: its package is not installed') from error


def _named_in(definitions: Any, msgtype: str) -> set[str]:
    """Return the names of message types that the fields of a definition refer to."""
    names: set[str] = set()
    _, fields = definitions[msgtype]
    pending = [kind for _, kind in fields]
    while pending:
        kind = pending.pop()
        for part in kind if isinstance(kind, tuple) else ():
            if isinstance(part, tuple):
                pending.append(part)
            elif isinstance(part, str) and '/msg/' in part:
                names.add(part)
    return names
