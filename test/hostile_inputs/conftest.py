"""A detector and service times, for replays that take half a second and repeat exactly."""

from __future__ import annotations

from pathlib import Path

import pytest
from tiny_detector import write_tiny_detector

from mmedge_ros.core.device_profile import measured_profile, write_profile


@pytest.fixture(scope='session')
def detector(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_detector(tmp_path_factory.mktemp('model') / 'tiny.onnx')


@pytest.fixture(scope='session')
def profile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Service times, with which equal recordings give equal decisions."""
    times = {'camera.encode': 8.0, 'radar.encode': 0.4, 'fusion': 1.0}
    times |= {'receipt.transport': 0.1, 'features.transport': 0.2}
    path = tmp_path_factory.mktemp('profile') / 'device.yaml'
    spread = {name: (0.8e-3 * ms, 1e-3 * ms, 1.5e-3 * ms) for name, ms in times.items()}
    write_profile(measured_profile('made up', spread), path)
    return path
