"""Runs built by hand: three people walk in front of a rig for twenty seconds."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from mmedge_ros.core.data_types import (
    CAMERA,
    NS_PER_S,
    RADAR,
    Box,
    Decision,
    Detection,
    StageTiming,
    Track,
    Trail,
    UnitFeatures,
)
from mmedge_ros.core.run_record import RunRecord, UnitCounts
from mmedge_ros.geometry.projection import CameraModel
from mmedge_ros.geometry.transforms import Transform

START_NS = 1_700_000_000 * NS_PER_S
MS = 1_000_000
HEIGHT = 1.68
OPTICAL_TO_BODY = np.array([[0.0, 0.0, 1.0], [-1.0, 0.0, 0.0], [0.0, -1.0, 0.0]])
FRAME = 'base_link'


def walkers(time: float) -> dict[int, np.ndarray]:
    """Where the three people stand, on the ground, at a time in seconds."""
    swing = 2 * np.pi * time / 14.0
    places = {
        1: np.array([3.6 + 0.3 * np.sin(2 * swing), 1.3 * np.cos(swing), 0.0]),
        2: np.array([5.2 - 2.2 * np.cos(2 * np.pi * time / 20.0), 0.5, 0.0]),
    }
    if 6.0 <= time <= 15.0:
        places[3] = np.array([5.6, 2.6 - 0.55 * (time - 6.0), 0.0])
    return places


def speeds(time: float) -> dict[int, np.ndarray]:
    """Velocities of the people, m/s."""
    later, now = walkers(time + 0.01), walkers(time)
    return {i: (later.get(i, now[i]) - now[i]) / 0.01 for i in now}


class RunBuilder:
    """Builds the record of a run with calibrated sensors; noise is seeded."""

    def __init__(self, seconds: float = 20.0, seed: int = 7) -> None:
        self.seconds = seconds
        self.random = np.random.default_rng(seed)
        self.camera = CameraModel(
            640, 480, np.array([[450.0, 0, 320], [0, 450, 240], [0, 0, 1]]), np.zeros(0), 'none'
        )
        self.camera_pose = Transform(OPTICAL_TO_BODY, np.array([0.05, 0.0, 1.0]))
        self.radar_pose = Transform(np.eye(3), np.array([0.0, 0.0, 1.0]))

    def record(self) -> RunRecord:
        cameras = [self._camera_unit(i) for i in range(int(self.seconds * 20))]
        radars = [self._radar_unit(i) for i in range(int(self.seconds * 20))]
        ends = int(self.seconds * 10) - 4
        decisions = [self._decision(i, cameras, radars) for i in range(ends)]
        units = sorted([*cameras, *radars], key=lambda unit: unit.available_ns)
        counts = [len(cameras)] * 4
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
            decisions=decisions,
            features=units,
            units={
                CAMERA: UnitCounts(*counts, skipped=14, dropped=3, late=6),
                RADAR: UnitCounts(*counts, late=1, failed=1),
            },
            camera_stamps_ns=[unit.stamp_ns for unit in cameras],
            problems=['radar: 5 of 21 returns of scan 0 are outside the limits and were dropped'],
            camera=self.camera,
            camera_pose=self.camera_pose,
            radar_pose=self.radar_pose,
            resources={'cpu_s': 14.2, 'peak_rss_mb': 412.0},
            software={'version': '0.1.0', 'git': '0123abc', 'bundle': 'yolox_nano'},
            profile='this machine',
            duration=self.seconds,
            wall_time=self.seconds + 1.4,
        )

    def box(self, place: np.ndarray) -> Box | None:
        """Box of a person who stands at ``place``; None outside the picture."""
        body = np.array([place, place + np.array([0.0, 0.0, HEIGHT])])
        pixels, _ = self.camera.project(self.camera_pose.inverse().apply(body))
        (middle, bottom), (_, top) = pixels
        half = 0.19 * (bottom - top)
        inside = 0 < middle < 640
        return Box(middle - half, top, middle + half, bottom) if inside else None

    def _camera_unit(self, number: int) -> UnitFeatures:
        stamp_ns = START_NS + number * 50 * MS + 12 * MS
        noise = self.random.normal(0, 1.5, 4)
        boxes = [self.box(p) for p in walkers(number * 0.05 + 0.012).values()]
        detections = tuple(
            Detection(Box(*(np.array(box) + noise)), 0.8, 'person') for box in boxes if box
        )
        times = [stamp_ns, 3.0, 4.5, 0.6 + self.random.exponential(0.8), 14 + self.random.gamma(4)]
        trail = trail_of(times, ('exposure', 'transport', 'queue', 'encode'))
        return UnitFeatures(
            CAMERA,
            number,
            stamp_ns,
            trail[1].end_ns,
            'camera_optical',
            trail,
            detections=detections,
            image_size=(640, 480),
        )

    def _radar_unit(self, number: int) -> UnitFeatures:
        stamp_ns = START_NS + number * 50 * MS + 31 * MS
        time = number * 0.05 + 0.031
        rows = [[4.0, -3.0, 0.2, 0.0, 12.0]]
        for i, place in walkers(time).items():
            for _ in range(4):
                point = place + np.array([0.0, 0.0, 1.1]) - self.radar_pose.translation
                point = point + self.random.normal(0, 0.08, 3)
                speed = float(speeds(time)[i] @ point / np.linalg.norm(point)) + 0.12
                rows.append([*point, speed, 15.0])
        times = [stamp_ns, 2.0, 1.0, 0.1, 0.4 + self.random.exponential(0.1)]
        trail = trail_of(times, ('exposure', 'transport', 'queue', 'encode'))
        returns = np.array(rows, np.float32)
        return UnitFeatures(
            RADAR, number, stamp_ns, trail[1].end_ns, 'radar', trail, returns=returns
        )

    def _decision(
        self, number: int, cameras: list[UnitFeatures], radars: list[UnitFeatures]
    ) -> Decision:
        end_ns = START_NS + 500 * MS + number * 100 * MS
        camera = [u for u in cameras if u.available_ns <= end_ns][-1]
        radar = [u for u in radars if u.available_ns <= end_ns][-1]
        time = (camera.stamp_ns - START_NS) / NS_PER_S
        tracks = [self._track(i, time) for i in walkers(time)]
        slow = 40.0 if number < 5 else 0.0
        work = slow + self.random.gamma(2.0, 0.9)
        looked_ns = max(end_ns + 2 * MS, camera.trail[-1].end_ns)
        decided_ns = looked_ns + int(work * MS)
        trail = (
            *camera.trail,
            StageTiming('wait', camera.trail[-1].end_ns, looked_ns),
            StageTiming('fuse', looked_ns, decided_ns),
        )
        return Decision(
            end_ns,
            camera.stamp_ns,
            FRAME,
            tuple(tracks),
            {CAMERA: camera.stamp_ns, RADAR: radar.stamp_ns},
            skipped=(RADAR,) if number % 50 == 20 else (),
            late=(CAMERA,) if number % 60 == 40 else (),
            degraded=('no odometry: the rig is taken to stand still',),
            trail=trail,
        ).published(decided_ns + 300_000)

    def _track(self, number: int, time: float) -> Track:
        place = walkers(time)[number] + np.array([0.0, 0.0, 0.9])
        position = place + self.random.normal(0, 0.05, 3)
        box = self.box(walkers(time)[number])
        later = self.box(walkers(time)[number] + 0.1 * speeds(time)[number])
        drift = (0.0, 0.0)
        if box and later:
            drift = ((later.x0 + later.x1 - box.x0 - box.x1) * 5, (later.y1 - box.y1) * 10)
        ray = place / np.linalg.norm(place)
        spread = 0.01 * np.eye(3) + 0.12 * np.outer(ray, ray)
        covariance = np.zeros((6, 6))
        covariance[:3, :3] = spread
        covariance[3:, 3:] = 0.2 * np.eye(3)
        seen_by = (CAMERA, RADAR) if box else (RADAR,)
        return Track(
            number,
            'person',
            0.9,
            box,
            position,
            speeds(time)[number],
            covariance,
            seen_by,
            0.0,
            drift,
        )


def trail_of(times: list[float], stages: tuple[str, ...]) -> Trail:
    """A gapless trail: the first of ``times`` is its begin in ns, the others are ms."""
    trail, begin_ns = [], int(times[0])
    for stage, duration_ms in zip(stages, times[1:], strict=True):
        end_ns = begin_ns + int(duration_ms * MS)
        trail.append(StageTiming(stage, begin_ns, end_ns))
        begin_ns = end_ns
    return tuple(trail)


def empty_record() -> RunRecord:
    """A run in which nothing happened and nothing is known."""
    return RunRecord('empty', 'offline', deadline=0.05, window=0.5, stride=0.1)


@pytest.fixture(scope='session')
def build_run() -> Callable[..., RunRecord]:
    """Builds a synthetic run of so many seconds; each call gives a new record."""
    return lambda seconds=20.0: RunBuilder(seconds).record()


@pytest.fixture
def empty_run() -> RunRecord:
    return empty_record()
