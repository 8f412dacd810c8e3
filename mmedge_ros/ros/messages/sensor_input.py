"""From a received sensor message to a unit with the beginning of its latency trail."""

from __future__ import annotations

import time
from importlib import import_module
from typing import Any

from sensor_msgs.msg import CompressedImage, Image, PointCloud2

from mmedge_ros.core.data_types import CAMERA, RADAR, Unit
from mmedge_ros.encoding import EncodingError
from mmedge_ros.encoding.encoder_registry import encoder_kind
from mmedge_ros.pipeline.unit_intake import acquisition_trail
from mmedge_ros.ros.messages import names
from mmedge_ros.ros.messages.conversions import from_time
from mmedge_ros.ros.messages.installed import readable
from mmedge_ros.ros.ros_clock import RosClock


def received_unit(
    modality: str, sequence: int, message: Any, info: dict[str, Any], clock: RosClock
) -> Unit:
    """Make the unit of a message, available at the instant the middleware received it."""
    stamp_ns = from_time(message.header.stamp)
    sent_ns, received_ns = sent_and_received(info, clock)
    if clock.simulated:
        # /clock may be heard a little after a message that is stamped later.
        received_ns = max(received_ns, min(stamp_ns, clock.now_ns() + 10_000_000))
    return Unit(
        modality,
        sequence,
        stamp_ns,
        received_ns,
        message.header.frame_id,
        readable(message),
        acquisition_trail(stamp_ns, sent_ns, received_ns),
    )


def sent_and_received(info: dict[str, Any], clock: RosClock) -> tuple[int, int]:
    """Return when the middleware sent and received a message, in nanoseconds of the node's time.

    It stamps with the system's clock; where the graph runs on simulated time the instants are
    carried over by how long ago they were.
    """
    now_ns, system_ns = clock.now_ns(), time.time_ns()
    sent_ns = now_ns - _time_since(info.get('source_timestamp'), system_ns)
    return sent_ns, now_ns - _time_since(info.get('received_timestamp'), system_ns)


def input_topic(modality: str, image_transport: str) -> tuple[str, type]:
    """Return topic and message type of a sensor.

    :raises EncodingError: for a modality that is not registered, or a type that is not installed
    """
    if modality == RADAR:
        return names.RADAR_POINTS, PointCloud2
    if modality == CAMERA and image_transport == 'compressed':
        return names.CAMERA_IMAGE_COMPRESSED, CompressedImage
    if modality == CAMERA:
        return names.CAMERA_IMAGE, Image
    kind = encoder_kind(modality)
    package, _, name = kind.message_type.partition('/msg/')
    try:
        return kind.topic, getattr(import_module(f'{package}.msg'), name)
    except (ImportError, AttributeError, ValueError) as err:
        raise EncodingError(f'{modality}: no message type {kind.message_type}: {err}') from err


def doorbell_topic(image_topic: str) -> str:
    """Return the topic that says which slot of a ring a raw picture of an Image topic is in.

    It follows the Image topic, so that one remap moves both.
    """
    return f'{image_topic}/slot'


def _time_since(instant_ns: Any, system_ns: int) -> int:
    """Nanoseconds since a middleware time; none for one that is missing or absurd."""
    if not isinstance(instant_ns, int) or not 0 <= system_ns - instant_ns < 10_000_000_000:
        return 0
    return system_ns - instant_ns
