"""How long one simulated picture takes on one core, beside one fixed resampling of a picture.

    .venv/bin/python benchmarks/render_frame.py [SCENARIO ...]

Prints for each flight how many movers it has, the seconds to prepare its surroundings, and the
milliseconds of a picture, of its truth alone, and of a remap of 640 x 480 pixels, which tells
how fast the machine is just now. Times are the processor's, so other work on the machine counts
little; each instant is taken four times and counts with its fastest.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import partial

import cv2
import numpy as np

from mmedge_ros.lab.simulation.build import build_world
from mmedge_ros.lab.simulation.camera import CameraSimulator

SCENARIOS = ('meadow_day_near', 'park_day_middle', 'street_day_middle', 'yard_lamps_near')
SECONDS = 10.0
INSTANTS = np.arange(0.5, SECONDS, 0.75)
SEED = 2


def fastest_ms(act: Callable[[], object]) -> float:
    """Return the milliseconds of the fastest of four times."""
    times = []
    for _ in range(4):
        begun = time.process_time()
        act()
        times.append(time.process_time() - begun)
    return 1e3 * min(times)


def remap_ms() -> float:
    """Return the milliseconds of one bilinear resampling of a picture."""
    picture = np.zeros((480, 640, 3), np.uint8)
    columns = np.tile(np.arange(640, dtype=np.float32), (480, 1)) + np.float32(0.3)
    rows = np.tile(np.arange(480, dtype=np.float32)[:, None], (1, 640)) + np.float32(0.3)
    return fastest_ms(lambda: cv2.remap(picture, columns, rows, cv2.INTER_LINEAR))


def main(names: tuple[str, ...]) -> None:
    """Time the flights of ``names``."""
    cv2.setNumThreads(1)
    for name in names:
        world = build_world(name, SEED, SECONDS)
        begun = time.process_time()
        camera = CameraSimulator(world)
        camera.picture(0.0)
        prepared = time.process_time() - begun
        pictures = [fastest_ms(partial(camera.picture, float(t))) for t in INSTANTS]
        truths = [fastest_ms(partial(camera.truth, float(t))) for t in INSTANTS]
        print(
            f'{name:20s} {len(world.movers):2d} movers  prepare {prepared:.2f} s  picture '
            f'{np.median(pictures):.1f} ms (at most {max(pictures):.1f})  truth '
            f'{np.median(truths):.1f} ms  remap {remap_ms():.2f} ms'
        )


if __name__ == '__main__':
    main(tuple(sys.argv[1:]) or SCENARIOS)
