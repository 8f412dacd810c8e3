"""Configurations, leases and scans for a live graph, published by a test."""

from __future__ import annotations

import time

import bag_fixtures as flight
from live_graph import Bystander
from sensor_msgs.msg import PointCloud2, PointField

from mmedge_ros import msg
from mmedge_ros.core.data_types import Configuration, ModalityConfiguration
from mmedge_ros.ros.messages import conversions, names, qos

SECOND = 1_000_000_000
FRESH_ID = 7


class Commander:
    """Publishes what optimiser and gate will publish one day."""

    def __init__(self, bystander: Bystander) -> None:
        node = bystander.node
        self._leases = node.create_publisher(msg.SkipDecision, names.SKIP_DECISION, qos.RESULT)
        self._configurations = node.create_publisher(
            msg.Configuration, names.CONFIGURATION, qos.LATCHED
        )

    @property
    def is_heard(self) -> int:
        """By how many nodes."""
        return min(
            self._leases.get_subscription_count(), self._configurations.get_subscription_count()
        )

    def configure(self, modality: str, rate: float, effective_ns: int) -> None:
        configuration = Configuration(
            FRESH_ID, effective_ns, (ModalityConfiguration(modality, rate, 'small'),)
        )
        self._configurations.publish(conversions.to_configuration(configuration, time.time_ns()))

    def skip(self, modality: str, seconds: float) -> int:
        """Lease from now on; returns its end."""
        now_ns = time.time_ns()
        end_ns = now_ns + round(seconds * SECOND)
        self._leases.publish(
            msg.SkipDecision(
                header=conversions.header(now_ns),
                modality=modality,
                skip_until=conversions.to_time(end_ns),
            )
        )
        return end_ns


def scan(stamp_ns: int) -> PointCloud2:
    """Four returns, as a driver would publish them."""
    recorded = flight.point_cloud(0, stamp_ns)
    return PointCloud2(
        header=conversions.header(stamp_ns, 'radar_link'),
        height=1,
        width=recorded.width,
        fields=[
            PointField(name=f.name, offset=f.offset, datatype=f.datatype, count=1)
            for f in recorded.fields
        ],
        point_step=recorded.point_step,
        row_step=recorded.row_step,
        data=recorded.data.tobytes(),
        is_dense=True,
    )
