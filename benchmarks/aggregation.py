"""What is left to do when a window's last unit has come, for windows of 0.25 s to 4 s.

    OMP_NUM_THREADS=1 .venv-train/bin/python benchmarks/aggregation.py
    OMP_NUM_THREADS=1 .venv/bin/python benchmarks/aggregation.py BUNDLE

Without a bundle an untrained network is exported, which needs torch; its times are the same.
Prints for each length the units of a camera at 30 Hz and a radar at 20 Hz, the median
milliseconds of the last step for the window that ends first and of fusion, their ratio to the
shortest window, and how many times longer it takes to aggregate the whole window at its end.
"""

from __future__ import annotations

import os

os.environ['OMP_NUM_THREADS'] = '1'

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from mmedge_ros.aggregation.fusion_runtime import FusionNetworkRuntime
from mmedge_ros.aggregation.streaming_aggregator import WindowState
from mmedge_ros.aggregation.window_bank import WindowBank
from mmedge_ros.data_types import CAMERA, NS_PER_S, RADAR, UnitKey
from mmedge_ros.encoding.model_bundle import load_bundle

LENGTHS = (0.25, 0.5, 1.0, 2.0, 4.0)
RATES = {CAMERA: 30, RADAR: 20}
ROUNDS = 30
WHOLE_ROUNDS = 3


def open_networks() -> FusionNetworkRuntime:
    """Open the networks of a bundle, or of one that was never trained."""
    if len(sys.argv) > 1:
        return FusionNetworkRuntime.from_bundle(load_bundle(Path(sys.argv[1])))
    from mmedge_ros.training.networks.export import FUSE, STEP_CAMERA, STEP_RADAR, export_fusion
    from mmedge_ros.training.networks.fusion_network import FusionNetwork

    with tempfile.TemporaryDirectory() as folder:
        export_fusion(FusionNetwork(), Path(folder))
        files = [Path(folder) / name for name in (STEP_CAMERA, STEP_RADAR, FUSE)]
        return FusionNetworkRuntime(*files)


def filled(runtime: FusionNetworkRuntime, length: float, end_ns: int) -> WindowBank[WindowState]:
    """Return a bank with all units of a window but its last camera unit."""
    random = np.random.default_rng(0)
    bank = WindowBank(runtime.aggregators)
    for modality, rate in RATES.items():
        shape = runtime.aggregators[modality].grid_shape
        grid = random.normal(0.0, 1.0, shape).astype(np.float32)
        for k in range(modality == CAMERA, int(length * rate)):
            stamp_ns = end_ns - round(k / rate * NS_PER_S)
            bank.add(UnitKey(modality, k, stamp_ns), grid, [end_ns])
    return bank


def after_the_last_unit(runtime: FusionNetworkRuntime, length: float) -> tuple[float, float]:
    """Return milliseconds of the work after the last unit, and of aggregating all at the end."""
    end_ns = 10 * NS_PER_S
    last = np.zeros(runtime.aggregators[CAMERA].grid_shape, np.float32)

    def whole() -> None:
        runtime.fuse(filled(runtime, length, end_ns).close(end_ns))

    states = filled(runtime, length, end_ns).close(end_ns)
    camera = runtime.aggregators[CAMERA]

    def rest() -> None:
        runtime.fuse({**states, CAMERA: camera.step(states[CAMERA], last, end_ns)})

    return median_ms(rest, ROUNDS), median_ms(whole, WHOLE_ROUNDS)


def median_ms(work: Callable[[], None], rounds: int) -> float:
    """Median milliseconds of processor time: what else the machine does does not count."""
    times = []
    for _ in range(rounds):
        begun = time.process_time()
        work()
        times.append(time.process_time() - begun)
    return 1e3 * float(np.median(times))


if __name__ == '__main__':
    networks = open_networks()
    after_the_last_unit(networks, LENGTHS[0])  # the first runs are slower
    shortest = None
    for seconds in LENGTHS:
        units = ' + '.join(str(int(seconds * rate)) for rate in RATES.values())
        rest_ms, whole_ms = after_the_last_unit(networks, seconds)
        shortest = shortest or rest_ms
        print(
            f'{seconds:4.2f} s ({units:>8} units): after the last unit {rest_ms:.2f} ms, '
            f'{rest_ms / shortest:.2f} of the shortest; all at the end {whole_ms / rest_ms:.1f} '
            'times as long'
        )
