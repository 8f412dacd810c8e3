"""How long one tracker step takes with 20 people, beside 20 textbook Kalman filters.

    OMP_NUM_THREADS=1 .venv/bin/python benchmarks/tracker_step.py

Prints the median of both and their ratio. The textbook filters only predict and update; the
tracker also associates, keeps boxes, and initiates and deletes tracks.
"""

from __future__ import annotations

import os

os.environ['OMP_NUM_THREADS'] = '1'

import time

import numpy as np

from mmedge_ros.data_types import CAMERA, NS_PER_S, RADAR, Box, Measurement
from mmedge_ros.tracking.track import TrackerState
from mmedge_ros.tracking.tracker import Tracker

PEOPLE = 20
STEPS = 600
PERIOD = 0.05


def measurements(step: int, random: np.random.Generator) -> list[Measurement]:
    """What camera and radar see of 20 people who walk side by side."""
    stamp_ns = round((1.0 + step * PERIOD) * NS_PER_S)
    found = []
    for i in range(PEOPLE):
        place = np.array([5 + 1.5 * i, (i % 5 - 2) * 3.0 + 0.5 * step * PERIOD, 0.5])
        place += random.normal(0.0, 0.1, 3)
        box = Box(30.0 * i, 100.0, 30.0 * i + 25.0, 180.0)
        found.append(
            Measurement(
                stamp_ns,
                'person',
                0.8,
                box,
                place,
                0.05 * np.eye(3),
                0.3,
                0.1,
                np.zeros(3),
                (CAMERA, RADAR),
                'radar',
            )
        )
    return found


def tracker_ms() -> float:
    """Median milliseconds of a tracker step."""
    random = np.random.default_rng(0)
    tracker, state = Tracker(), TrackerState(NS_PER_S)
    times = []
    for step in range(STEPS):
        seen = measurements(step, random)
        begun = time.perf_counter()
        state = tracker.step(state, seen[0].stamp_ns, seen)
        times.append(time.perf_counter() - begun)
    assert len(state.tracks) == PEOPLE
    return 1e3 * float(np.median(times[50:]))


def textbook_ms() -> float:
    """Median milliseconds of predicting and updating 20 separate Kalman filters."""
    f, h = np.eye(6), np.eye(3, 6)
    f[:3, 3:] = PERIOD * np.eye(3)
    q, r = 0.01 * np.eye(6), 0.05 * np.eye(3)
    states = [(np.zeros(6), np.eye(6)) for _ in range(PEOPLE)]
    times = []
    for _ in range(STEPS):
        begun = time.perf_counter()
        for i, (x, p) in enumerate(states):
            x, p = f @ x, f @ p @ f.T + q
            k = p @ h.T @ np.linalg.inv(h @ p @ h.T + r)
            states[i] = (x + k @ (np.zeros(3) - h @ x), (np.eye(6) - k @ h) @ p)
        times.append(time.perf_counter() - begun)
    return 1e3 * float(np.median(times[50:]))


if __name__ == '__main__':
    ours, plain = tracker_ms(), textbook_ms()
    print(f'tracker step {ours:.3f} ms, textbook filters {plain:.3f} ms, ratio {ours / plain:.2f}')
