"""What is left to do when a window's last unit has come, for windows of 0.25 s to 4 s.

    OMP_NUM_THREADS=1 .venv-train/bin/python benchmarks/aggregation.py
    OMP_NUM_THREADS=1 .venv/bin/python benchmarks/aggregation.py BUNDLE

Without a bundle an untrained network is exported, which needs torch; its times are the same.
Prints for each length the units of a camera at 30 Hz and a radar at 20 Hz, the median
milliseconds of all that is done with a new unit and of fusion, their ratio to the shortest
window, and how many times longer it takes to aggregate the whole window at its end. Then what a
second of flight costs, with windows of 0.5 s that end every 0.1 s and each picture fused.
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
from mmedge_ros.encoding.bundle.model_bundle import load_bundle

LENGTHS = (0.25, 0.5, 1.0, 2.0, 4.0)
RATES = {CAMERA: 30, RADAR: 20}
ROUNDS = 30
WHOLE_ROUNDS = 3
FLIGHT_S = 4
WINDOW_NS, STRIDE_NS = NS_PER_S // 2, NS_PER_S // 10


def open_networks() -> FusionNetworkRuntime:
    """Open the networks of a bundle, or of one that was never trained."""
    if len(sys.argv) > 1:
        return FusionNetworkRuntime.from_bundle(load_bundle(Path(sys.argv[1])))
    from mmedge_ros.lab.training.networks.export import export_fusion
    from mmedge_ros.lab.training.networks.fusion_network import FusionNetwork

    with tempfile.TemporaryDirectory() as folder:
        export_fusion(FusionNetwork(), Path(folder))
        return FusionNetworkRuntime.from_folder(Path(folder))


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
        newest = camera.step(states[CAMERA], camera.unit(last), end_ns)
        runtime.fuse({**states, CAMERA: newest})

    return median_ms(rest, ROUNDS), median_ms(whole, WHOLE_ROUNDS)


def second_of_flight(runtime: FusionNetworkRuntime) -> tuple[float, float]:
    """Return milliseconds of processor time of aggregation and of fusion, per second."""
    random = np.random.default_rng(0)
    bank = WindowBank(runtime.aggregators)
    units = sorted(
        (round(k * NS_PER_S / rate), modality, k)
        for modality, rate in RATES.items()
        for k in range(rate * FLIGHT_S)
    )
    grids = {
        modality: random.normal(0.0, 1.0, steps.grid_shape).astype(np.float16)
        for modality, steps in runtime.aggregators.items()
    }
    end_ns, pictures, spent = STRIDE_NS, [], dict.fromkeys(('aggregation', 'fusion'), 0.0)
    begun = time.process_time()
    for stamp_ns, modality, number in units:
        while stamp_ns > end_ns:
            for picture_ns in pictures:
                states = bank.state_until(end_ns, picture_ns)
                fused = time.process_time()
                runtime.fuse(states)
                spent['fusion'] += time.process_time() - fused
            bank.drop(end_ns)
            end_ns, pictures = end_ns + STRIDE_NS, []
        ends_ns = range(end_ns, end_ns + WINDOW_NS, STRIDE_NS)
        bank.add(UnitKey(modality, number, stamp_ns), grids[modality], ends_ns)
        while bank.work_ahead():
            pass
        pictures += [stamp_ns] if modality == CAMERA else []
    spent['aggregation'] = time.process_time() - begun - spent['fusion']
    return 1e3 * spent['aggregation'] / FLIGHT_S, 1e3 * spent['fusion'] / FLIGHT_S


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
    aggregation_ms, fusion_ms = second_of_flight(networks)
    print(f'a second of flight: aggregation {aggregation_ms:.0f} ms, fusion {fusion_ms:.0f} ms')
