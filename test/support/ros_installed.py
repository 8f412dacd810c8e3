"""Whether ROS 2 is here: beside requirements/oldest.txt it is not."""

from __future__ import annotations

import importlib.util

import pytest

HAS_ROS = importlib.util.find_spec('rclpy') is not None

needs_ros = pytest.mark.skipif(not HAS_ROS, reason='ROS 2 is not installed')
