"""Quality of service: what sensors send, what results need, what late joiners must know."""

from copy import copy
from typing import Any

from rclpy.qos import (
    DurabilityPolicy,
    HistoryPolicy,
    QoSProfile,
    ReliabilityPolicy,
)
from rclpy.qos_overriding_options import QoSOverridingOptions


def _newest(
    depth: int,
    reliability: ReliabilityPolicy,
    durability: DurabilityPolicy = DurabilityPolicy.VOLATILE,
) -> QoSProfile:
    return QoSProfile(
        history=HistoryPolicy.KEEP_LAST,
        depth=depth,
        reliability=reliability,
        durability=durability,
    )


SENSOR = _newest(5, ReliabilityPolicy.BEST_EFFORT)
# Deep enough that a burst of both modalities survives one slow callback.
RESULT = _newest(20, ReliabilityPolicy.RELIABLE)
# For what is taken when something else comes (`waited_entities.defer`).
FREQUENT_SENSOR = _newest(50, ReliabilityPolicy.BEST_EFFORT)
FREQUENT_RESULT = _newest(200, ReliabilityPolicy.RELIABLE)
# Reliable, so that viewers of either kind see it, and as shallow as a live picture may be.
PICTURE = _newest(2, ReliabilityPolicy.RELIABLE)
LATCHED = _newest(1, ReliabilityPolicy.RELIABLE, DurabilityPolicy.TRANSIENT_LOCAL)
STATIC_TRANSFORMS = _newest(100, ReliabilityPolicy.RELIABLE, DurabilityPolicy.TRANSIENT_LOCAL)
# For a listener that must not miss anything while it is busy with something else.
RECORD = _newest(1000, ReliabilityPolicy.RELIABLE)


def overridable(profile: QoSProfile) -> dict[str, Any]:
    """Return arguments for an end that parameters qos_overrides.TOPIC.* may change.

    The profile is copied, because rclpy writes what it is overridden with into the one it gets.
    """
    return {
        'qos_profile': copy(profile),
        'qos_overriding_options': QoSOverridingOptions.with_default_policies(),
    }
