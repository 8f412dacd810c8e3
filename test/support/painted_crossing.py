"""Tiny flights seen by camera and radar: a person walks past a parked car at 30 and 20 Hz."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from painted_flight import BEGIN_NS, Seen, paint

from mmedge_lab.simulation.flight_bag import (
    CAMERA,
    CAMERA_INFO,
    GROUND_TRUTH,
    RADAR,
    TF_STATIC,
    FlightRecord,
    write_flight,
)
from mmedge_lab.simulation.flight_folder import FlightDescription
from mmedge_lab.simulation.flight_messages import CAMERA_FRAME, RADAR_FRAME, FlightMessages
from mmedge_ros.core.data_types import NS_PER_S, Box
from mmedge_ros.geometry.projection import CameraModel
from mmedge_ros.geometry.sensor_poses import OPTICAL_TO_BODY
from mmedge_ros.geometry.transforms import Transform
from mmedge_ros.replay.ground_truth import TrueObject, TrueScene

SIZE = (320, 240)
FOCAL = 200.0
LENS = CameraModel(
    *SIZE,
    np.array([[FOCAL, 0.0, 160.0], [0.0, FOCAL, 120.0], [0.0, 0.0, 1.0]]),
    np.zeros(0),
    'none',
)
STILL = np.zeros(3)
TALL = 1.7


def walker(seconds: float, seed: int) -> tuple[NDArray[np.float64], Seen]:
    """Where a person stands (x forward, y left, m), and the box of it."""
    away, speed = 6.0 + 2.0 * (seed % 4), 1.5 if seed % 2 else -1.5
    middle = np.array((away, speed * (seconds - 0.5), 0.0))
    x = 160.0 - FOCAL * middle[1] / away
    tall = FOCAL * TALL / away
    box = (x - tall / 5, 120.0 - tall / 2, x + tall / 5, 120.0 + tall / 2)
    return middle, Seen('person', box)


def write_crossing(
    folder: Path, seed: int = 0, seconds: float = 1.2, truth: bool = True, radar: bool = True
) -> Path:
    """Write a flight in which the drone hovers at the height of a body's middle."""
    rng = np.random.default_rng(seed)
    messages = FlightMessages()
    records = []

    def add(stamp_ns: int, delay_ms: int, topic: str, message: object) -> None:
        raw = messages.serialized(message)
        records.append(FlightRecord(stamp_ns + delay_ms * 1_000_000, topic, raw))

    poses = [
        (CAMERA_FRAME, Transform(OPTICAL_TO_BODY, STILL)),
        (RADAR_FRAME, Transform.identity()),
    ]
    add(BEGIN_NS, 0, TF_STATIC, messages.static_transforms(BEGIN_NS, poses))
    add(BEGIN_NS, 0, CAMERA_INFO, messages.camera_info(BEGIN_NS, LENS))
    here = Transform(np.eye(3), np.array((0.0, 0.0, TALL / 2)))
    for number in range(round(seconds * 30)):
        at = number / 30
        stamp_ns = BEGIN_NS + round(at * NS_PER_S)
        place, person = walker(at, seed)
        seen = [person, Seen('car', (230.0, 150.0, 310.0, 190.0))]
        add(stamp_ns, 15, CAMERA, messages.compressed_image(stamp_ns, paint(seen, rng, SIZE)))
        positions = (place, np.array((9.0, -5.0, 0.0)))
        objects = tuple(
            TrueObject(n, what.label, Box(*what.box), 1.0, position, STILL)
            for n, (what, position) in enumerate(zip(seen, positions, strict=True))
        )
        scene = TrueScene(stamp_ns, 'odom', objects, 'meadow', 'day', 'near')
        if truth:
            add(stamp_ns, 15, GROUND_TRUTH, messages.ground_truth(scene, here, STILL, STILL))
    for number in range(round(seconds * 20) if radar else 0):
        at = number / 20
        stamp_ns = BEGIN_NS + round(at * NS_PER_S) + 5_000_000
        place, _ = walker(at, seed)
        body = place + rng.normal(0.0, 0.15, (8, 3))
        wall = rng.uniform((15.0, -8.0, -2.0), (25.0, 8.0, 2.0), (12, 3))
        points = np.concatenate((body, wall))
        speeds = np.where(np.arange(len(points)) < len(body), 0.8, 0.0)
        columns = (*points.T, speeds, np.full(len(points), 15.0), np.full(len(points), 40.0))
        returns = np.stack(columns, axis=1).astype(np.float32)
        add(stamp_ns, 25, RADAR, messages.points(stamp_ns, returns))
    records.sort(key=lambda record: record.log_ns)
    write_flight(folder, FlightDescription('meadow_day_near', seed, seconds), records)
    return folder


def write_crossings(folder: Path, flights: int = 2, seed: int = 0, seconds: float = 1.2) -> Path:
    """Write a set of flights with different seeds."""
    folder.mkdir(parents=True)
    for number in range(flights):
        write_crossing(folder / f'flight_{number}', seed + number, seconds)
    return folder
