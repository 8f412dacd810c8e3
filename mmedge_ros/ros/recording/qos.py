"""Quality of service of a recorder: what every publisher of a topic can serve."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile, ReliabilityPolicy
from rosbags.interfaces import Qos, QosDurability, QosHistory, QosLiveliness, QosReliability
from rosbags.interfaces import QosTime as Duration

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
