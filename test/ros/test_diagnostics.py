"""Statuses say which node of which drone they are about."""

from __future__ import annotations

import pytest
import rclpy

from mmedge_ros.ros.diagnostics import status_name


@pytest.mark.parametrize(
    ('namespace', 'name'), [('', 'mmedge_ros: fusion'), ('drone1', 'mmedge_ros: drone1/fusion')]
)
def test_two_drones_that_share_diagnostics_are_told_apart(
    ros: None, namespace: str, name: str
) -> None:
    node = rclpy.create_node('fusion', namespace=namespace)
    assert status_name(node) == name
    node.destroy_node()
