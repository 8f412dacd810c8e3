"""Runs built by hand: up to three people walk in front of a calibrated rig."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from mmedge_ros.core.data_types import (
    CAMERA,
    NS_PER_S,
    RADAR,
    Box,
    Decision,
    StageTiming,
    Track,
    UnitFeatures,
)
from mmedge_ros.core.run_record import RunRecord, UnitCounts
from mmedge_ros.geometry.projection import CameraModel
from mmedge_ros.geometry.transforms import Transform

START_NS = 1_700_000_000 * NS_PER_S
MS = 1_000_000
PERIOD_NS = 50 * MS
FRAME = 'base_link'
LENS = np.array([[450.0, 0, 320], [0, 450, 240], [0, 0, 1]])
OPTICAL_TO_BODY = np.array([[0.0, 0.0, 1.0], [-1.0, 0.0, 0.0], [0.0, -1.0, 0.0]])
CAMERA_MODEL = CameraModel(640, 480, LENS, np.zeros(0), 'none')
CAMERA_POSE = Transform(OPTICAL_TO_BODY, np.array([0.05, 0.0, 1.0]))
RADAR_POSE = Transform(np.eye(3), np.array([0.0, 0.0, 1.0]))
SPEED = np.array([0.02, -0.1, 0.0])
UP = np.array([0.0, 0.0, 1.0])


def walkers(time: float) -> dict[int, np.ndarray]:
    """Where people stand on the ground at a time in seconds: the third comes and goes."""
    places = {1: np.array([3.6, 0.9, 0.0]), 2: np.array([5.2, 1.5, 0.0])}
    if 6.0 <= time <= 15.0:
        places[3] = np.array([5.6, 0.3, 0.0])
    return {number: place + time * SPEED for number, place in places.items()}


def box_of(place: np.ndarray) -> Box:
    """Box of a person of 1.68 m who stands at a place."""
    body = np.array([place, place + 1.68 * UP])
    (middle, bottom), (_, top) = CAMERA_MODEL.project(CAMERA_POSE.inverse().apply(body))[0]
    half = 0.19 * (bottom - top)
    return Box(middle - half, top, middle + half, bottom)


def unit(modality: str, number: int, after_ms: int, encode_ms: int, **more: Any) -> UnitFeatures:
    """A unit that is measured so long after the begin of its period."""
    stamp_ns = START_NS + number * PERIOD_NS + after_ms * MS
    trail, begin_ns = [], stamp_ns
    for stage, lasts in (('exposure', 3), ('transport', 4), ('queue', 1), ('encode', encode_ms)):
        trail.append(StageTiming(stage, begin_ns, begin_ns + lasts * MS))
        begin_ns += lasts * MS
    return UnitFeatures(
        modality, number, stamp_ns, trail[1].end_ns, modality, tuple(trail), **more
    )


def camera_unit(number: int) -> UnitFeatures:
    return unit(CAMERA, number, 12, 15, image_size=(640, 480))


def radar_unit(number: int) -> UnitFeatures:
    places = [*walkers(number * 0.05).values(), np.array([4.0, -3.0, 0.0])]
    rows = [[*(place - 0.2 * n * UP), -0.5, 15.0] for place in places for n in range(4)]
    return unit(RADAR, number, 31, 1, returns=np.array(rows, np.float32))


def track(number: int, place: np.ndarray) -> Track:
    box, later = box_of(place), box_of(place + SPEED)
    covariance = np.diag([0.13, 0.02, 0.01, 0.2, 0.2, 0.2])
    drift = (later.x0 - box.x0, later.y0 - box.y0)
    position, seen_by = place + 0.9 * UP, (CAMERA, RADAR)
    return Track(number, 'person', 0.9, box, position, SPEED, covariance, seen_by, 0.0, drift)


def decision(number: int, cameras: list[UnitFeatures], radars: list[UnitFeatures]) -> Decision:
    """The decision of a window; the first five are slow."""
    end_ns = START_NS + 500 * MS + number * 100 * MS
    camera, radar = (
        [u for u in units if u.available_ns <= end_ns][-1] for units in (cameras, radars)
    )
    looked_ns = max(end_ns + 2 * MS, camera.trail[-1].end_ns)
    decided_ns = looked_ns + (40 if number < 5 else 1 + number % 3) * MS
    time = (camera.stamp_ns - START_NS) / NS_PER_S
    return Decision(
        end_ns,
        camera.stamp_ns,
        FRAME,
        tuple(track(i, place) for i, place in walkers(time).items()),
        {CAMERA: camera.stamp_ns, RADAR: radar.stamp_ns},
        skipped=(RADAR,) if number % 50 == 20 else (),
        late=(CAMERA,) if number % 60 == 40 else (),
        degraded=('no odometry: the rig is taken to stand still',),
        trail=(
            *camera.trail,
            StageTiming('wait', camera.trail[-1].end_ns, looked_ns),
            StageTiming('fuse', looked_ns, decided_ns),
        ),
    ).published(decided_ns + 300_000)


def record_of(seconds: float = 20.0) -> RunRecord:
    count, ends = int(seconds * 20), int(seconds * 10) - 4
    cameras = [camera_unit(number) for number in range(count)]
    radars = [radar_unit(number) for number in range(count)]
    return RunRecord(
        bag='synthetic_walk',
        mode='live',
        deadline=0.05,
        window=0.5,
        stride=0.1,
        windows=ends + 1,
        dropped=1,
        warmup=5,
        frame_id=FRAME,
        decisions=[decision(number, cameras, radars) for number in range(ends)],
        features=sorted([*cameras, *radars], key=lambda unit: unit.available_ns),
        units={
            CAMERA: UnitCounts(*[count] * 4, skipped=14, dropped=3, late=6),
            RADAR: UnitCounts(*[count] * 4, late=1, failed=1),
        },
        camera_stamps_ns=[unit.stamp_ns for unit in cameras],
        problems=['radar: 5 of 21 returns of scan 0 are outside the limits and were dropped'],
        camera=CAMERA_MODEL,
        camera_pose=CAMERA_POSE,
        radar_pose=RADAR_POSE,
        resources={'cpu_s': 14.2, 'peak_rss_mb': 412.0},
        software={'version': '0.1.0', 'git': '0123abc', 'bundle': 'yolox_nano'},
        profile='this machine',
        duration=seconds,
        wall_time=seconds + 1.4,
    )


@pytest.fixture(scope='session')
def build_run() -> Callable[..., RunRecord]:
    """Builds a synthetic run of so many seconds; each call gives a new record."""
    return record_of


@pytest.fixture
def empty_run() -> RunRecord:
    """A run in which nothing happened and nothing is known."""
    return RunRecord('empty', 'offline', deadline=0.05, window=0.5, stride=0.1)
