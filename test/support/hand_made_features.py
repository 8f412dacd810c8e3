"""Cached flights made by hand: one person, whom noisy grids of all levels show."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mmedge_lab.training.feature_cache import SCAN, SCAN_STEP, CachedFlight, UnitTimes, WindowTruth
from mmedge_ros.core.data_types import CAMERA, NS_PER_S, RADAR
from mmedge_ros.encoding.feature_grid import SEMANTIC_CHANNELS, VALUES, empty_semantics

BEGIN_NS = 1_700_000_000 * NS_PER_S
STRIDE_NS = NS_PER_S // 10
DELAY_NS = 15_000_000
LEVELS = ('large', 'medium', 'small')
AWAY = 20.0


def person_at(seconds: float) -> tuple[float, float, float, float]:
    x = 200.0 + 100.0 * seconds
    return x, 150.0, x + 40.0, 250.0


def hand_made_flight(
    seed: int = 0,
    seconds: float = 1.0,
    levels: Sequence[str] = LEVELS,
    rates: tuple[float, float] = (30.0, 20.0),
) -> CachedFlight:
    """Make a flight whose units come in time, 15 ms after their stamps."""
    rng = np.random.default_rng(seed)
    stamps = [
        BEGIN_NS + (np.arange(round(seconds * rate)) * NS_PER_S / rate).astype(np.int64)
        for rate in rates
    ]
    units = {
        kind: UnitTimes(s, s + DELAY_NS, np.ones(len(s), np.bool_))
        for kind, s in zip((CAMERA, RADAR), stamps, strict=True)
    }
    camera = np.zeros((len(stamps[0]), 64, 30, 40), np.float16)
    camera[:, :SEMANTIC_CHANNELS] = empty_semantics()
    for row, stamp_ns in enumerate(stamps[0].tolist()):
        box = person_at((stamp_ns - BEGIN_NS) / NS_PER_S) + rng.normal(0.0, 5.0, 4)
        column, line = int((box[0] + box[2]) // 32), int((box[1] + box[3]) // 32)
        x, y = 16 * column + 8.0, 16 * line + 8.0
        edges = (x - box[0], y - box[1], box[2] - x, box[3] - y)
        camera[row, 4 * VALUES : 5 * VALUES, line, column] = (
            1.0,
            -5.0,
            -5.0,
            -5.0,
            *(e / 16 for e in edges),
        )
    camera[:, SEMANTIC_CHANNELS:] = rng.normal(0.0, 1.0, (len(camera), 16, 30, 40))
    radar = rng.normal(0.0, 1.0, (len(stamps[1]), 20, 30, 40)).astype(np.float16)
    grids = {}
    for level in levels:
        grids[CAMERA, level] = camera
        grids[RADAR, level] = radar
        grids[SCAN, level] = radar[::SCAN_STEP, :16]
    return CachedFlight(f'flight_{seed}', (640, 480), grids, units, truth_of(stamps[0], seconds))


def truth_of(stamps: np.ndarray, seconds: float) -> WindowTruth:
    """The person at the stamps of pictures and at all window ends up to the last picture's."""
    ends = [BEGIN_NS + k * STRIDE_NS for k in range(round(seconds * 10) + 1)]
    instants = sorted({*stamps.tolist(), *ends})
    rows = [(0.0, *person_at((t - BEGIN_NS) / NS_PER_S), AWAY, 1.0) for t in instants]
    return WindowTruth(
        np.array(instants, np.int64),
        np.arange(1, len(rows) + 1, dtype=np.int64),
        np.array(rows, np.float32),
    )
