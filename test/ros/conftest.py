"""Recordings and detectors small enough to run the real graph with, in a moment."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import rclpy

TESTS = Path(__file__).resolve().parents[1]
for folder in (TESTS, TESTS / 'replay', TESTS / 'ros'):
    sys.path.insert(0, str(folder))

import bag_fixtures as flight  # noqa: E402
from live_graph import Bystander  # noqa: E402
from tiny_detector import write_tiny_detector  # noqa: E402

# Seconds of the recording; long enough for tracks to be confirmed.
DURATION = 3.0


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
def detector(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Weights that find the white box of the little recording."""
    return write_tiny_detector(tmp_path_factory.mktemp('models') / 'tiny.onnx')


@pytest.fixture(scope='session')
def little_bag(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Camera (compressed) at 20 Hz and radar at 25 Hz that watch a box move."""
    path = tmp_path_factory.mktemp('bags') / 'little'
    return flight.write_bag(path, messages=flight.recording(DURATION))


@pytest.fixture(scope='session')
def raw_bag(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same flight with raw pictures."""
    messages = [
        (flight.CAMERA, log_ns, flight.image(index, log_ns - flight.LOG_DELAY_NS))
        if topic == flight.CAMERA_COMPRESSED
        else (topic, log_ns, message)
        for index, (topic, log_ns, message) in enumerate(flight.recording(DURATION))
    ]
    return flight.write_bag(tmp_path_factory.mktemp('bags') / 'raw', messages=messages)
