"""What deciding costs on this machine: optimiser, gate, aggregation and fusion, timed.

The only part of a report that depends on the machine.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmedge_lab.judging.stopwatch import Stopwatch
from mmedge_lab.rivals.comparison.gate_timing import gate_times
from mmedge_lab.rivals.mmedge.optimizer_bench import decision_times
from mmedge_ros.aggregation.fusion_runtime import FusionNetworkRuntime
from mmedge_ros.aggregation.streaming_aggregator import StreamingAggregator, WindowState
from mmedge_ros.data_types import NS_PER_S
from mmedge_ros.encoding.bundle.model_bundle import load_bundle
from mmedge_ros.report.report_files import write_files
from mmedge_ros.skipping.bundle_gate import bundle_gate
from mmedge_ros.skipping.gate import Gate
from mmedge_ros.skipping.gate_features import FIELDS

KEPT = 'overheads.json'
_SIDES = (3, 5, 7)
_ROUNDS = 60
_WARM_UP = 5
_HIDDEN = 32
_LARGEST = 100_000
_TIMED = {'optimizer_us', 'gate_us', 'gate_is_trained', 'aggregation_us'}


def overheads(bundle: Path, kept: Path, digest: str) -> dict[str, Any]:
    """Time everything once; what was timed before, of the same software, is kept.

    :param kept: folder in which they are kept
    :raises EncodingError: if the bundle cannot be read
    :raises SkippingError: if its gate cannot be
    :raises AggregationError: if its fusion networks cannot be opened
    :raises EvaluationError: if they cannot be written
    """
    known = _read(kept / KEPT, digest)
    if known is not None:
        return known
    brought = bundle_gate(bundle)
    times = {
        'optimizer_us': {str(side**4): decision_times(side, _ROUNDS) for side in _SIDES},
        'gate_us': gate_times(brought.gate if brought is not None else _made_up_gate()),
        'gate_is_trained': brought is not None,
        'aggregation_us': _aggregation_times(bundle),
    }
    content = json.dumps({'digest': digest, 'overheads': times}, indent=2) + '\n'
    write_files(kept, {KEPT: content.encode()})
    return times


def _read(path: Path, digest: str) -> dict[str, Any] | None:
    try:
        if not path.is_file() or path.stat().st_size > _LARGEST:
            return None
        content = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(content, dict) or content.get('digest') != digest:
        return None
    times = content.get('overheads')
    return times if isinstance(times, dict) and set(times) == _TIMED else None


def _made_up_gate() -> Gate:
    """Return a gate of the size that is trained; its weights do not matter to the clock."""
    random = np.random.default_rng(0)
    count = len(FIELDS)
    return Gate(
        random.normal(size=count),
        random.uniform(0.5, 2.0, count),
        random.normal(size=(count, _HIDDEN)),
        random.normal(size=_HIDDEN),
        random.normal(size=_HIDDEN),
        0.0,
    )


def _aggregation_times(folder: Path) -> dict[str, dict[str, float]] | None:
    """Time the first step of a unit, and the fusion of a window; None without networks."""
    bundle = load_bundle(folder)
    if not bundle.has_fusion:
        return None
    networks = FusionNetworkRuntime.from_bundle(bundle)
    random = np.random.default_rng(0)
    states, times = {}, {}
    for modality, aggregator in networks.aggregators.items():
        grid = random.normal(size=aggregator.grid_shape).astype(np.float16)
        state = aggregator.begin(NS_PER_S)
        # A tenth of a second apart, so that the next one is compared with two of them.
        for tenth in range(3, 6):
            state = aggregator.step(state, aggregator.unit(grid), tenth * NS_PER_S // 10)
        states[modality] = state
        times[f'{modality} step'] = _timed(partial(_step_of_new_unit, aggregator, state, grid))
    times['fuse'] = _timed(lambda: networks.fuse(states))
    return times


def _step_of_new_unit(
    aggregator: StreamingAggregator, state: WindowState, grid: NDArray[np.floating]
) -> None:
    aggregator.step(state, aggregator.unit(grid), 6 * NS_PER_S // 10)


def _timed(do: Callable[[], object]) -> dict[str, float]:
    """Return quantiles in microseconds of doing something."""
    for _ in range(_WARM_UP):
        do()
    watch = Stopwatch()
    for _ in range(_ROUNDS):
        watch.start()
        do()
        watch.stop()
    return watch.microseconds()
