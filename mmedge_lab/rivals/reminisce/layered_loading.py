"""Runs pictures through the stages of a large encoder, in a process of its own.

Either all stages are loaded and each picture runs through, or stage by stage over all pictures,
while a thread loads the next stage. As a program: ``python -m ... JSON``, see `LoadingTask`; the
figures are a JSON object in the last line.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmedge_lab.worker_processes import peak_memory
from mmedge_ros.adaptation.brick_measurement import figures_of_process
from mmedge_ros.encoding.bricks import resident_memory
from mmedge_ros.encoding.onnx_session import open_session, runtime_errors
from mmedge_ros.encoding.opened_levels import release
from mmedge_ros.encoding.tapped_network import TappedNetwork

LAYERED, WHOLE = 'stage by stage', 'all stages loaded'
WAYS = (LAYERED, WHOLE)
_SEED = 3
_PATIENCE = 300.0


@dataclass(frozen=True)
class LoadingTask:
    """So many ``pictures`` of a shape are run; ``reads`` are what each of the stages reads."""

    way: str
    pictures: int
    shape: Sequence[int]
    stages: Sequence[str]
    reads: Sequence[Sequence[str]]


def loading_figures(
    stages: Sequence[Path], numbers: Sequence[int], rounds: int
) -> dict[tuple[int, str], list[dict[str, float]]]:
    """Run both ways in turn; the figures of each round by number of pictures and way.

    :raises EncodingError: if a stage cannot be opened or fails, or a process breaks down
    """
    ports = [open_session(stage).get_inputs() for stage in stages]
    reads = [[port.name for port in of] for of in ports]
    names = [str(stage) for stage in stages]
    found: dict[tuple[int, str], list[dict[str, float]]] = {}
    for number, way in [(number, way) for number in numbers for way in WAYS] * rounds:
        task = LoadingTask(way, number, ports[0][0].shape, names, reads)
        figures = figures_of_process(__name__, [json.dumps(asdict(task))], _PATIENCE)
        found.setdefault((number, way), []).append(figures)
    return found


def run_pictures(task: LoadingTask) -> dict[str, float]:
    """Encode pictures of noise; return their number, s, ms of processor for each, and MB.

    ``peak_mb`` is what the process needed at most beyond what it had before.

    :raises EncodingError: if a stage cannot be opened, or fails
    """
    stages = [Path(stage) for stage in task.stages]
    # What the first network brings with it, the runtime's libraries, stays.
    release([open_session(stages[0])])
    random = np.random.default_rng(_SEED)
    pictures = [random.random(task.shape, np.float32) for _ in range(task.pictures)]
    before, begun, spent = resident_memory(), time.perf_counter(), time.process_time()
    if task.way == LAYERED:
        made = _layered(stages, [set(names) for names in task.reads], pictures)
    else:
        made = _whole(stages, pictures)
    return {
        'timed': float(task.pictures),
        'seconds': time.perf_counter() - begun,
        'processor_ms': 1e3 * (time.process_time() - spent) / task.pictures,
        'peak_mb': (peak_memory() - before) / 1e6,
        # The same for both ways, or one of them is wrong.
        'sum': float(sum(np.abs(one).sum(dtype=float) for one in made)),
    }


def _whole(stages: Sequence[Path], pictures: list[Any]) -> list[NDArray[Any]]:
    network = TappedNetwork(stages)
    return [network.run(picture)[network.outputs[0]] for picture in pictures]


def _layered(
    stages: Sequence[Path], reads: Sequence[set[str]], pictures: list[Any]
) -> list[NDArray[Any]]:
    held: list[dict[str, Any]] = [{next(iter(reads[0])): picture} for picture in pictures]
    names: list[str] = []
    with ThreadPoolExecutor(1) as loader:
        coming = loader.submit(open_session, stages[0])
        for number, stage in enumerate(stages):
            session = coming.result()
            if number + 1 < len(stages):
                coming = loader.submit(open_session, stages[number + 1])
            names = [port.name for port in session.get_outputs()]
            later = set[str]().union(*reads[number + 1 :]) or set(names)
            for tensors in held:
                with runtime_errors(f'{stage} failed on a picture'):
                    made = session.run(names, {name: tensors[name] for name in reads[number]})
                tensors.update(zip(names, made, strict=True))
                for name in tensors.keys() - later:
                    del tensors[name]
            del session
            release([])
    return [tensors[names[0]] for tensors in held]


def main(arguments: Sequence[str]) -> None:
    """Run as a program."""
    print(json.dumps(run_pictures(LoadingTask(**json.loads(arguments[0])))))


if __name__ == '__main__':
    main(sys.argv[1:])
