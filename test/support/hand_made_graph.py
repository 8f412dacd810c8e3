"""Graphs as they are seen from outside, made by hand."""

from __future__ import annotations

from typing import Any

from mmedge_ros.core.data_types import CAMERA, NS_PER_S, RADAR
from mmedge_ros.preflight.graph_view import (
    ODOMETRY,
    GraphView,
    NodeStatus,
    TopicArrival,
    TopicEndpoint,
    TopicView,
)

NOW_NS = 1_700_000_000 * NS_PER_S
TYPES = {
    CAMERA: ('/camera/image', 'sensor_msgs/msg/Image'),
    RADAR: ('/radar/points', 'sensor_msgs/msg/PointCloud2'),
    ODOMETRY: ('/odom', 'nav_msgs/msg/Odometry'),
}


def arrivals(rate: float, age: float, seconds: float = 2.0) -> tuple[TopicArrival, ...]:
    """Messages at a rate (Hz), stamped ``age`` s before they come."""
    instants = [NOW_NS + round(n * NS_PER_S / rate) for n in range(round(seconds * rate))]
    return tuple(TopicArrival(t, t - round(age * NS_PER_S)) for t in instants)


def view(name: str, *nodes: str, heard: tuple[TopicArrival, ...] = (), **fields: Any) -> TopicView:
    """An input that these nodes publish, in the type that is wanted, and our encoder takes."""
    topic, msgtype = TYPES[name]
    publishers = tuple(TopicEndpoint(node, msgtype) for node in nodes)
    subscribers = (TopicEndpoint(f'{name}_encoder', msgtype),) if name != ODOMETRY else ()
    return TopicView(topic, msgtype, publishers, subscribers, heard)._replace(**fields)


def good_graph(**views: TopicView) -> GraphView:
    """A graph in which everything is as it should be, but for these inputs."""
    inputs = {
        CAMERA: view(CAMERA, 'usb_cam', heard=arrivals(20.0, 0.03), frame_id='optical'),
        RADAR: view(RADAR, 'ti_radar', heard=arrivals(20.0, 0.05), frame_id='radar_link'),
        ODOMETRY: view(ODOMETRY, 'mavros', heard=arrivals(50.0, 0.01), frame_id='odom'),
    }
    statuses = (NodeStatus('fusion', 0, 'running'), NodeStatus('monitor: gpu', 0, 'unknown'))
    return GraphView(inputs | views, {'/rosout': 'rcl_interfaces/msg/Log'}, ('fusion',), statuses)
