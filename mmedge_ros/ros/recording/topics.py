"""What a recording has to know of a topic: its type, its quality of service; static transforms."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile, ReliabilityPolicy
from rosbags.interfaces import (
    MessageDefinition,
    MessageDefinitionFormat,
    Qos,
    QosDurability,
    QosHistory,
    QosLiveliness,
    QosReliability,
)
from rosbags.interfaces import QosTime as Duration
from rosbags.typesys import Stores, TypesysError, get_types_from_msg, get_typestore

from mmedge_ros.geometry.transforms import parse_static_transform, quaternion_from_rotation
from mmedge_ros.replay import ReplayError

TF_MESSAGE = 'tf2_msgs/msg/TFMessage'
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


# Deep enough for a burst of small messages while the executor is busy with a picture.
_DEPTH = 200
# As rosbag2 writes what is unlimited: rmw's infinite duration.
_FOREVER = Duration(9_223_372_036, 854_775_807)


def matching(publishers: Sequence[Any]) -> QoSProfile:
    """Return the strongest profile that all publishers serve.

    :param publishers: rclpy's information on the endpoints of a topic, at least one
    """
    profiles = [publisher.qos_profile for publisher in publishers]
    reliable = all(p.reliability == ReliabilityPolicy.RELIABLE for p in profiles)
    latched = all(p.durability == DurabilityPolicy.TRANSIENT_LOCAL for p in profiles)
    return QoSProfile(
        history=HistoryPolicy.KEEP_LAST,
        depth=_DEPTH,
        reliability=ReliabilityPolicy.RELIABLE if reliable else ReliabilityPolicy.BEST_EFFORT,
        durability=(DurabilityPolicy.TRANSIENT_LOCAL if latched else DurabilityPolicy.VOLATILE),
    )


def recorded(publishers: Sequence[Any]) -> tuple[Qos, ...]:
    """Describe what the publishers offer, each kind once, for players of the recording."""
    offers: dict[Qos, None] = {}
    for publisher in publishers:
        profile = publisher.qos_profile
        offers[
            Qos(
                history=QosHistory.KEEP_LAST,
                # Not every middleware reports the depth of endpoints.
                depth=max(int(profile.depth), 1),
                reliability=(
                    QosReliability.RELIABLE
                    if profile.reliability == ReliabilityPolicy.RELIABLE
                    else QosReliability.BEST_EFFORT
                ),
                durability=(
                    QosDurability.TRANSIENT_LOCAL
                    if profile.durability == DurabilityPolicy.TRANSIENT_LOCAL
                    else QosDurability.VOLATILE
                ),
                deadline=_FOREVER,
                lifespan=_FOREVER,
                liveliness=QosLiveliness.AUTOMATIC,
                liveliness_lease_duration=_FOREVER,
                avoid_ros_namespace_conventions=False,
            )
        ] = None
    return tuple(offers)


def transforms_message(texts: Sequence[str]) -> bytes:
    """Serialise a TFMessage of transforms "parent child x y z qx qy qz qw"; empty for none.

    :raises GeometryError: for a text that is no transform
    """
    if not texts:
        return b''
    store = get_typestore(Stores.ROS2_KILTED)
    kinds = store.types
    time = kinds['builtin_interfaces/msg/Time'](sec=0, nanosec=0)
    edges = []
    for text in texts:
        edge = parse_static_transform(text)
        x, y, z = (float(v) for v in edge.translation)
        qx, qy, qz, qw = quaternion_from_rotation(edge.rotation)
        edges.append(
            kinds['geometry_msgs/msg/TransformStamped'](
                header=kinds['std_msgs/msg/Header'](stamp=time, frame_id=edge.parent),
                child_frame_id=edge.child,
                transform=kinds['geometry_msgs/msg/Transform'](
                    translation=kinds['geometry_msgs/msg/Vector3'](x=x, y=y, z=z),
                    rotation=kinds['geometry_msgs/msg/Quaternion'](x=qx, y=qy, z=qz, w=qw),
                ),
            )
        )
    message = kinds['tf2_msgs/msg/TFMessage'](transforms=edges)
    return np.asarray(store.serialize_cdr(message, 'tf2_msgs/msg/TFMessage')).tobytes()
