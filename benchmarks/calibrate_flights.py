"""How far `mmedge calibrate` is off, and how often its intervals hold the truth.

    .venv/bin/python benchmarks/calibrate_flights.py FLIGHT ...

Each simulated flight is calibrated several times: the known rotation of the radar is made wrong by
up to 8 degrees, and its stamps late or early by up to 80 ms. Prints for each flight, and for all
runs, the errors of yaw, pitch, roll (degrees) and time (ms).
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

from mmedge_ros.data_types import NS_PER_S
from mmedge_ros.extrinsics import ExtrinsicsError
from mmedge_ros.extrinsics.calibrate import calibrate
from mmedge_ros.extrinsics.pairs import turned
from mmedge_ros.extrinsics.rotation_fit import NAMES
from mmedge_ros.extrinsics.sightings import Sightings, observe
from mmedge_ros.replay.offline_session import replay_detector
from mmedge_ros.replay.recording import Recording

# Yaw, pitch, roll in degrees, and ms.
WRONG = (
    (0.0, 0.0, 0.0, 0.0),
    (8.0, 5.0, -4.0, 80.0),
    (-8.0, -5.0, 4.0, -80.0),
    (8.0, -8.0, 3.0, -80.0),
    (-8.0, 3.0, -8.0, 80.0),
    (4.0, 0.0, 0.0, 40.0),
)
_SCALE = np.array([*np.degrees([1.0, 1.0, 1.0]), 1e3])


def wronged(seen: Sightings, wrong: tuple[float, ...]) -> Sightings:
    """Return what is seen where the radar's rotation and stamps are wrong by so much."""
    late_ns = round(wrong[3] * 1e-3 * NS_PER_S)
    frame, turn = seen.scans[0].frame_id, turned(np.radians(wrong[:3]))
    return replace(
        seen,
        scans=tuple(replace(scan, stamp_ns=scan.stamp_ns + late_ns) for scan in seen.scans),
        transforms=tuple(
            edge._replace(rotation=edge.rotation @ turn.T) if edge.child == frame else edge
            for edge in seen.transforms
        ),
    )


def main() -> None:
    """Calibrate by every flight and print the errors."""
    errors, halves = [], []
    for flight in map(Path, sys.argv[1:]):
        with Recording(flight) as recording:
            seen = observe(recording, replay_detector(recording, ''))
        begin = len(errors)
        for wrong in WRONG:
            try:
                estimates = calibrate(wronged(seen, wrong)).estimates
            except ExtrinsicsError as err:
                print(f'{flight.name}: {err}')
                continue
            errors.append([estimates[name].value for name in NAMES] * _SCALE - np.array(wrong))
            halves.append([estimates[name].half for name in NAMES] * _SCALE)
        if len(errors) > begin:
            largest = np.where(np.isfinite(halves[begin:]), np.abs(errors[begin:]), 0.0).max(0)
            print(f'{flight.name:22}', *(f'{value:8.2f}' for value in largest), flush=True)
    for number, name in enumerate(NAMES):
        half = np.array(halves)[:, number]
        known = np.isfinite(half)
        off = np.abs(np.array(errors)[known, number])
        print(
            f'{name:6} {known.sum()} of {len(half)} runs: p95 {np.percentile(off, 95):.2f}, '
            f'largest {off.max():.2f}, inside the interval {np.mean(off <= half[known]):.0%}'
        )


if __name__ == '__main__':
    main()
