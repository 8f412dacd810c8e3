"""Recordings and detectors small enough to run the real graph with, in a moment."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import bag_fixtures as flight
import numpy as np
import pytest
import rclpy
from live_graph import DURATION, Bystander


@pytest.fixture(scope='session')
def ros() -> Iterator[None]:
    """The default context, for nodes made inside the test process."""
    rclpy.init()
    yield
    rclpy.try_shutdown()


@pytest.fixture
def bystander() -> Iterator[Bystander]:
    """A node beside the graph that hears everything and may say anything."""
    with Bystander() as node:
        yield node


@pytest.fixture(scope='session')
def little_bag(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Camera (compressed) at 20 Hz and radar at 25 Hz that watch a person walk by."""
    path = tmp_path_factory.mktemp('bags') / 'little'
    return flight.write_bag(path, messages=walk(DURATION))


@pytest.fixture(scope='session')
def raw_bag(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same walk with raw pictures."""
    messages = [
        (flight.CAMERA, log_ns, _raw(log_ns)) if topic == flight.CAMERA_COMPRESSED else entry
        for entry in walk(DURATION)
        for topic, log_ns, _ in [entry]
    ]
    return flight.write_bag(tmp_path_factory.mktemp('bags') / 'raw', messages=messages)


def walk(duration: float) -> list[tuple[str, int, Any]]:
    """Messages of a person that crosses the picture once, as wide as camera and radar see it."""
    messages: list[tuple[str, int, Any]] = []
    for topic, log_ns, message in flight.recording(duration):
        stamp_ns = log_ns - flight.LOG_DELAY_NS
        if topic == flight.CAMERA_COMPRESSED:
            message = flight.compressed_image(_shift(stamp_ns), stamp_ns)
        elif topic == flight.RADAR:
            message = _scan(stamp_ns)
        messages.append((topic, log_ns, message))
    return messages


def _shift(stamp_ns: int) -> int:
    """Pixels the box has moved; it stays in the picture for four seconds."""
    return round((stamp_ns - flight.BEGIN_NS) / 1e8) % 40


def _raw(log_ns: int) -> Any:
    stamp_ns = log_ns - flight.LOG_DELAY_NS
    return flight.image(_shift(stamp_ns), stamp_ns)


def _scan(stamp_ns: int) -> Any:
    """Returns of the person, at the distance that a box of 24 px has, and of a wall."""
    distance, speed, focal_length = 3.5, -0.7, 50.0
    elapsed = (stamp_ns - flight.BEGIN_NS) / 1e9
    y = (flight.WIDTH / 2 - 14) / focal_length * distance + speed * elapsed
    receding = speed * y / math.hypot(distance, y)
    cloud = flight.point_cloud(0, stamp_ns)
    rows = [[distance, y, z, receding] for z in (-0.3, 0.0, 0.3)] + [[9.0, 2.0, 0.0, 0.0]]
    cloud.data = np.array(rows, np.float32).view(np.uint8).reshape(-1)
    return cloud
