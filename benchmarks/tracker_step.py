"""How long one tracker step takes with 20 people, beside 20 textbook Kalman filters.

    .venv/bin/python benchmarks/tracker_step.py

Prints the median of both and their ratio. The textbook filters only predict and update; the
tracker also associates, keeps boxes, and initiates and deletes tracks.
"""

from __future__ import annotations

import os

os.environ['OMP_NUM_THREADS'] = '1'

import numpy as np
from bench_timing import median_ms, print_ratios

from mmedge_ros.data_types import CAMERA, NS_PER_S, RADAR, Box, Measurement
from mmedge_ros.tracking.track import TrackerState
from mmedge_ros.tracking.tracker import Tracker

PEOPLE = 20
STEPS = 550
PERIOD = 0.05


def measurements(step: int, random: np.random.Generator) -> list[Measurement]:
    """What camera and radar measure of 20 people that walk side by side."""
    stamp_ns = round((1.0 + step * PERIOD) * NS_PER_S)
    noise, sensors = 0.05 * np.eye(3), (CAMERA, RADAR)
    result = []
    for i in range(PEOPLE):
        place = np.array([5 + 1.5 * i, (i % 5 - 2) * 3.0 + 0.5 * step * PERIOD, 0.5])
        place += random.normal(0.0, 0.1, 3)
        box = Box(30.0 * i, 100.0, 30.0 * i + 25.0, 180.0)
        values = (stamp_ns, 'person', 0.8, box, place, noise, 0.3, 0.1, np.zeros(3))
        result.append(Measurement(*values, sensors, 'radar'))
    return result


def tracker_ms() -> float:
    """Median milliseconds of a tracker step."""
    random = np.random.default_rng(0)
    tracker, state = Tracker(), TrackerState(NS_PER_S)
    scans = iter([measurements(step, random) for step in range(STEPS + 50)])

    def step() -> None:
        nonlocal state
        scan = next(scans)
        state = tracker.step(state, scan[0].stamp_ns, scan)

    median = median_ms(step, STEPS, 50)
    assert len(state.tracks) == PEOPLE
    return median


def textbook_ms() -> float:
    """Median milliseconds of predicting and updating 20 separate Kalman filters."""
    f, h = np.eye(6), np.eye(3, 6)
    f[:3, 3:] = PERIOD * np.eye(3)
    q, r = 0.01 * np.eye(6), 0.05 * np.eye(3)
    states = [(np.zeros(6), np.eye(6)) for _ in range(PEOPLE)]

    def step() -> None:
        for i, (x, p) in enumerate(states):
            x, p = f @ x, f @ p @ f.T + q
            k = p @ h.T @ np.linalg.inv(h @ p @ h.T + r)
            states[i] = (x + k @ (np.zeros(3) - h @ x), (np.eye(6) - k @ h) @ p)

    return median_ms(step, STEPS, 50)


if __name__ == '__main__':
    print_ratios({'textbook filters': textbook_ms(), 'tracker step': tracker_ms()})
