"""Writes a tiny bundle with a gate that says yes to every question."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from tiny_bundle import write_tiny_bundle

from mmedge_lab.training.certificate import Certificate, FlightLoss
from mmedge_lab.training.gate_training import write_bundle_gate
from mmedge_ros.core.data_types import CAMERA
from mmedge_ros.windows.gate import Gate
from mmedge_ros.windows.gate_features import FIELDS


def write_gated_bundle(folder: Path) -> Path:
    """Write it; the camera may rest, and decisions are fused without networks."""
    write_tiny_bundle(folder, {'small': 0.9})
    nothing, count = np.zeros(1), len(FIELDS)
    yes = Gate(np.zeros(count), np.ones(count), np.zeros((count, 1)), nothing, nothing, 5.0)
    loss = FlightLoss(10_000, 20.0, 4_000, 3, 500, 50.0)
    certificate = Certificate(0.01, 0.9, 0.9, 30, loss)
    write_bundle_gate(folder, yes, 'decision', [CAMERA], [certificate])
    return folder
