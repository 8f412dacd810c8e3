"""Measures what each brick of a bundle costs on this machine, each in a process of its own."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from mmedge_ros.core.data_types import CAMERA, RADAR, RETURN_FIELDS
from mmedge_ros.encoding import EncodingError
from mmedge_ros.encoding.bricks import (
    CPU,
    FULL_PRECISION,
    FUSION,
    RECOGNISER,
    BrickCost,
    brick_name,
    measured_loading,
    resident_memory,
)
from mmedge_ros.encoding.bundle.manifest import joint_precision
from mmedge_ros.encoding.bundle.model_bundle import (
    is_bundle,
    level_precisions,
    load_bundle,
    model_levels,
    open_detector,
)
from mmedge_ros.encoding.classifier_description import describe_classifier
from mmedge_ros.encoding.feature_grid import CAMERA_GRID
from mmedge_ros.encoding.onnx_session import available_devices
from mmedge_ros.encoding.opened_levels import release
from mmedge_ros.encoding.radar_network import open_radar_network
from mmedge_ros.encoding.tapped_classifier import open_classifier
from mmedge_ros.monitoring import MonitoringError
from mmedge_ros.monitoring.power_rails import PowerRails
from mmedge_ros.monitoring.system_files import SystemFiles
from mmedge_ros.tracking.radar_grid import RADAR_INPUT
from mmedge_ros.windows.fusion_runtime import FusionNetworkRuntime

Run = Callable[[], object]

_RUNS = 30
# A brick that hangs is given up after so long (s); an engine of TensorRT takes minutes to build.
_PATIENCE = 900.0
_PICTURE = (480, 640, 3)
_RETURNS = 100
_ENERGY_TIME = 1.0


def bricks_of(model: Path) -> list[str]:
    """Name the bricks of a bundle or weight file.

    :raises EncodingError: if a bundle's manifest cannot be read
    """
    names = [brick_name(CAMERA, level) for level in model_levels(model)[0] or ('',)]
    if is_bundle(model):
        bundle = load_bundle(model)
        names += [brick_name(RADAR, level) for level in bundle.radar_levels]
        names += [FUSION] if bundle.has_fusion else []
        names += [RECOGNISER] if describe_classifier(model) is not None else []
    return names


def precision_of(model: Path, name: str) -> str:
    """Return the precision of a brick by its files."""
    modality, _, level = name.partition('.')
    if name == FUSION:
        return joint_precision(load_bundle(model).fusion.values())
    if name == RECOGNISER and (description := describe_classifier(model)) is not None:
        return joint_precision(description.stages)
    return level_precisions(model, modality).get(level, FULL_PRECISION)


def open_brick(model: Path, name: str, device: str = CPU) -> Run:
    """Open a brick; what is returned runs it once, on what it is usually given.

    :raises EncodingError: if that is not possible
    """
    modality, _, level = name.partition('.')
    noise = np.random.default_rng(0)
    if modality == CAMERA:
        detector = open_detector(model, None, level, device)
        picture = noise.integers(0, 256, _PICTURE, np.uint8)
        return lambda: detector.detect(picture)
    if modality == RADAR:
        radar = open_radar_network(model, level, device)
        returns = noise.uniform(0.0, 20.0, (_RETURNS, len(RETURN_FIELDS))).astype(np.float32)
        return lambda: radar.encode(returns)
    if device != CPU:
        raise EncodingError(f'{name} runs on the processor only')
    if name == FUSION:
        return _fusion_run(FusionNetworkRuntime.from_bundle(load_bundle(model)))
    description = describe_classifier(model) if name == RECOGNISER and is_bundle(model) else None
    if description is None:
        raise EncodingError(f'{model} has no brick {name!r}; it has {", ".join(bricks_of(model))}')
    classifier = open_classifier(description).classifier
    width, height = description.form.size
    crop = noise.normal(size=(1, 3, height, width)).astype(np.float32)
    return lambda: classifier.classify(crop)


def _fusion_run(networks: FusionNetworkRuntime) -> Run:
    """A run is what a decision needs: a unit of each modality, and the head."""
    shapes = ((CAMERA, CAMERA_GRID), (RADAR, RADAR_INPUT))

    def run() -> object:
        states = {}
        for modality, shape in shapes:
            steps = networks.aggregators[modality]
            unit = steps.unit(np.zeros(shape, np.float32))
            states[modality] = steps.step(steps.begin(0), unit, 0)
        return networks.fuse(states)

    return run


def measure_bricks(
    model: Path,
    names: Sequence[str] = (),
    devices: Sequence[str] = (),
    on_brick: Callable[[float, str], None] = lambda _share, _words: None,
) -> Iterator[BrickCost | str]:
    """Measure bricks one after the other; a device that cannot run one gives a sentence instead.

    :param names: of bricks; () for all
    :param devices: () for all that this machine may have
    :param on_brick: called with the share that is done, and what is measured next
    :raises EncodingError: if a bundle's manifest cannot be read, or the processor cannot run it
    """
    pairs = [
        (name, device)
        for name in names or bricks_of(model)
        for device in devices or available_devices()
        if device == CPU or name not in (FUSION, RECOGNISER)
    ]
    for number, (name, device) in enumerate(pairs):
        on_brick(number / len(pairs), f'{name} on {device}')
        try:
            yield _in_own_process(model, name, device)
        except EncodingError as err:
            if device == CPU:
                raise
            yield f'{name} on {device}: {err}'


def _in_own_process(model: Path, name: str, device: str) -> BrickCost:
    """Measure a brick where nothing else is in memory."""
    found = figures_of_process(__name__, [str(model), name, device], _PATIENCE)
    if 'problem' in found:
        raise EncodingError(found['problem'])
    return BrickCost(**found)


def figures_of_process(module: str, arguments: Sequence[str], patience: float) -> dict[str, Any]:
    """Run a module of the package, and return the JSON object in its last line.

    :param patience: s until it is ended
    :raises EncodingError: if it takes longer, or ends without one
    """
    command = [sys.executable, '-m', module, *arguments]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=patience, check=False
        )
        found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    except subprocess.TimeoutExpired as err:
        raise EncodingError(f'it took more than {patience:g} s') from err
    except (IndexError, ValueError) as err:
        last = done.stderr.strip().splitlines()[-1:] or [f'status {done.returncode}']
        raise EncodingError(f'it ended without figures: {last[0][:300]}') from err
    return found


def measure_brick(model: Path, name: str, device: str) -> BrickCost:
    """Measure a brick in this process.

    :raises EncodingError: if it cannot be opened, or fails
    """
    rails = PowerRails(SystemFiles('/'))
    # What the first network brings with it, the runtime's libraries, stays and is no brick's.
    open_brick(model, name, device)()
    release([])
    before = resident_memory()
    with measured_loading() as loading:
        run = open_brick(model, name, device)
    run()
    times = [_seconds(run) for _ in range(_RUNS)]
    energy = _energy(run, rails)
    memory = max(resident_memory() - before, 0)
    del run
    release([])
    left = max(resident_memory() - before, 0)
    usual = float(np.median(times))
    precision = precision_of(model, name)
    return BrickCost(name, device, loading.seconds, usual, memory, left, precision, energy)


def _seconds(run: Run) -> float:
    begun = time.monotonic()
    run()
    return time.monotonic() - begun


def _energy(run: Run, rails: PowerRails) -> float:
    """Return what a run takes (J) beyond idling; NaN where the module's rails do not say."""
    idle = _watts(rails)
    if math.isnan(idle):
        return idle
    begun, readings, runs = time.monotonic(), [], 0
    while time.monotonic() - begun < _ENERGY_TIME:
        run()
        readings.append(_watts(rails))
        runs += 1
    taken = (time.monotonic() - begun) / runs
    return max(float(np.mean(readings)) - idle, 0.0) * taken


def _watts(rails: PowerRails) -> float:
    try:
        return rails.read().state.module_power
    except MonitoringError:
        return math.nan


def main(arguments: Sequence[str]) -> int:
    """Measure MODEL BRICK DEVICE, and print a line of JSON."""
    model, name, device = arguments
    try:
        print(json.dumps(asdict(measure_brick(Path(model), name, device))))
    except EncodingError as err:
        print(json.dumps({'problem': str(err)}))
    return os.EX_OK


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
