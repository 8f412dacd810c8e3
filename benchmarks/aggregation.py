"""What is left to do when a window's last unit has come, for windows of 0.25 s to 4 s.

    .venv-train/bin/python benchmarks/aggregation.py
    .venv/bin/python benchmarks/aggregation.py BUNDLE

Without a bundle an untrained network is exported, which needs torch; its times are the same.
Prints for each length the units of a camera at 30 Hz and a radar at 20 Hz, the milliseconds of
all that is done with a new unit and of fusion, and their ratio to the shortest window; then the
same where the whole window is aggregated at its end.
"""

from __future__ import annotations

import os

os.environ['OMP_NUM_THREADS'] = '1'

import sys
import tempfile
from pathlib import Path

import numpy as np
from bench_timing import median_ms, print_ratios

from mmedge_ros.aggregation.fusion_runtime import FusionNetworkRuntime
from mmedge_ros.aggregation.streaming_aggregator import WindowState
from mmedge_ros.aggregation.window_bank import WindowBank
from mmedge_ros.data_types import CAMERA, NS_PER_S, RADAR, UnitKey
from mmedge_ros.encoding.bundle.model_bundle import load_bundle

LENGTHS = (0.25, 0.5, 1.0, 2.0, 4.0)
RATES = {CAMERA: 30, RADAR: 20}
END_NS = 10 * NS_PER_S


def open_networks() -> FusionNetworkRuntime:
    """Open the networks of a bundle, or of one that was never trained."""
    if len(sys.argv) > 1:
        return FusionNetworkRuntime.from_bundle(load_bundle(Path(sys.argv[1])))
    from mmedge_lab.training.networks.export import export_fusion
    from mmedge_lab.training.networks.fusion_network import FusionNetwork

    with tempfile.TemporaryDirectory() as folder:
        export_fusion(FusionNetwork(), Path(folder))
        return FusionNetworkRuntime.from_folder(Path(folder))


def filled(runtime: FusionNetworkRuntime, length: float) -> WindowBank[WindowState]:
    """Return a bank with all units of a window but its last camera unit."""
    random = np.random.default_rng(0)
    bank = WindowBank(runtime.aggregators)
    for modality, rate in RATES.items():
        shape = runtime.aggregators[modality].grid_shape
        grid = random.normal(0.0, 1.0, shape).astype(np.float32)
        for k in range(modality == CAMERA, int(length * rate)):
            bank.add(UnitKey(modality, k, END_NS - round(k / rate * NS_PER_S)), grid, [END_NS])
    return bank


def main() -> None:
    """Time every length, at the last unit and at the end."""
    runtime = open_networks()
    camera = runtime.aggregators[CAMERA]
    last = np.zeros(camera.grid_shape, np.float32)
    at_last_unit, at_end = {}, {}
    for length in LENGTHS:
        units = ' + '.join(str(int(length * rate)) for rate in RATES.values())
        states = filled(runtime, length).close(END_NS)

        def rest(states=states):
            newest = camera.step(states[CAMERA], camera.unit(last), END_NS)
            runtime.fuse({**states, CAMERA: newest})

        def whole(length=length):
            runtime.fuse(filled(runtime, length).close(END_NS))

        at_last_unit[f'{length:g} s ({units} units), last unit'] = median_ms(rest, 30)
        at_end[f'{length:g} s ({units} units), whole window'] = median_ms(whole, 3, 1)
    print_ratios(at_last_unit)
    print_ratios(at_end)


if __name__ == '__main__':
    main()
