"""What is left to do when a window's last unit has come, for windows of 0.25 s to 4 s.

Aggregation that steps unit by unit leaves the same rest whatever the length of the window (MMEdge,
temporal aggregation); a network over the whole window at its end would not.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmedge_lab.judging.bench import Bench, BenchRequest, Figure, Row, Sums
from mmedge_ros.core.data_types import CAMERA, NS_PER_S, RADAR, UnitKey
from mmedge_ros.encoding.bundle.default_model import default_detector
from mmedge_ros.encoding.bundle.model_bundle import load_bundle
from mmedge_ros.windows.fusion_runtime import FusionNetworkRuntime
from mmedge_ros.windows.streaming_aggregator import WindowState
from mmedge_ros.windows.window_bank import WindowBank

LENGTHS = (0.25, 0.5, 1.0, 2.0, 4.0)
RATES = {CAMERA: 30, RADAR: 20}
END_NS = 10 * NS_PER_S


class Windowed(NamedTuple):
    """Networks, and a grid of features of each sensor that stands for all of its units."""

    runtime: FusionNetworkRuntime
    grids: Mapping[str, NDArray[np.float32]]

    def filled(self, length: float) -> WindowBank[WindowState]:
        """Return a bank with all units of a window of this length (s) but its last camera unit."""
        bank = WindowBank(self.runtime.aggregators)
        for modality, rate in RATES.items():
            for k in range(modality == CAMERA, int(length * rate)):
                key = UnitKey(modality, k, END_NS - round(k / rate * NS_PER_S))
                bank.add(key, self.grids[modality], [END_NS])
        return bank


def _processor_ms(work: Callable[[], object]) -> float:
    begun = time.process_time()
    work()
    return 1e3 * (time.process_time() - begun)


def _rest(length: float, of: Windowed) -> Sums:
    camera = of.runtime.aggregators[CAMERA]
    states = of.filled(length).close(END_NS)

    def work() -> object:
        newest = camera.step(states[CAMERA], camera.unit(of.grids[CAMERA]), END_NS)
        return of.runtime.fuse({**states, CAMERA: newest})

    return {'ms': [_processor_ms(work) for _ in range(5)]}


def _whole(length: float, of: Windowed) -> Sums:
    return {'ms': [_processor_ms(lambda: of.runtime.fuse(of.filled(length).close(END_NS)))]}


def bench(request: BenchRequest, *, rounds: int = 6) -> Bench:
    """Compare the rest after the last unit with aggregation of the whole window at its end.

    :param rounds: how often every length is timed
    """
    bundle = load_bundle(default_detector(request.detector or 'fused_people'))
    runtime, random = FusionNetworkRuntime.from_bundle(bundle), np.random.default_rng(0)
    grids = {
        modality: random.normal(size=steps.grid_shape).astype(np.float32)
        for modality, steps in runtime.aggregators.items()
    }

    def rows(group: str, judge: Callable[[float, Windowed], Sums]) -> list[Row]:
        return [
            Row(
                f'{length:g} s',
                partial(judge, length),
                ' + '.join(f'{int(length * rate)} {m}' for m, rate in RATES.items()),
                group,
            )
            for length in LENGTHS
        ]

    return Bench(
        'What is left when the last unit of a window has come',
        (*rows('after the last unit', _rest), *rows('whole window at its end', _whole)),
        {'ms': Figure('processor time, ms', 'ms', digits=1, quantile=0.5)},
        request.repetitions(rounds),
        open=lambda *_: Windowed(runtime, grids),
        about={'bundle': bundle.name},
    )
