"""A stage in each precision: made, timed in turn with the others, and compared.

Needs onnx, which comes with what trains.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mmedge_lab.rivals.nanomind import QuantisationError
from mmedge_ros.encoding import EncodingError
from mmedge_ros.encoding.bundle.manifest import PRECISIONS, BundleFile
from mmedge_ros.encoding.onnx_session import open_session

FP32, FP16, INT8 = PRECISIONS
# It must be so much faster, or it is not worth another file.
GAIN = 0.9
# Convolutions over fewer channels, as over the colours of a picture, take longer in whole numbers.
_FEWEST_CHANNELS = 8
_ROUNDS = 40
_CALIBRATING = 12


Feed = dict[str, Any]


@dataclass
class Stage:
    """A file of a network: its ``place`` in the manifest, and what it was ``fed`` with."""

    place: tuple[str | int, ...]
    file: BundleFile
    fed: list[Feed] = field(default_factory=list)


class Candidate(NamedTuple):
    """A stage in a precision: its file, median s of a run, and how far its outputs are off.

    ``error`` is relative to the deviation of the outputs of full precision. ``problem`` says why
    there is none; the figures are NaN then.
    """

    precision: str
    path: Path
    seconds: float
    error: float = 0.0
    problem: str = ''


def candidates(stage: Stage, folder: Path, device: str) -> list[Candidate]:
    """Make and measure a stage in every precision, the full one first.

    :param folder: where files are written
    :raises EncodingError: if the stage itself cannot be opened, or fails
    """
    source = stage.file.path
    paths, problems = {FP32: source}, {}
    for precision, make in ((FP16, _halved), (INT8, _quantised)):
        path = folder / f'{source.stem}.{precision}.onnx'
        try:
            make(source, path, stage.fed)
            open_session(path, 1, device)
            paths[precision] = path
        # Tools of others fail in any way; the stage stays as it is then.
        except Exception as err:  # noqa: BLE001
            words = str(err).strip().splitlines() or [type(err).__name__]
            problems[precision] = words[0][:200]
    sessions = {p: open_session(path, 1, device) for p, path in paths.items()}
    times = _times(sessions, stage.fed)
    wanted = _outputs(sessions[FP32], stage.fed)
    found = [
        Candidate(p, paths[p], times[p], _error(wanted, _outputs(sessions[p], stage.fed)))
        for p in paths
    ]
    nan = float('nan')
    return found + [Candidate(p, source, nan, nan, words) for p, words in problems.items()]


def best(measured: Sequence[Candidate]) -> Candidate:
    """Return the fastest of a stage that is enough faster than full precision, or that one."""
    full = measured[0]
    faster = [one for one in measured if one.seconds <= GAIN * full.seconds]
    return min(faster, key=lambda one: one.seconds, default=full)


def _times(sessions: Mapping[str, Any], feeds: Sequence[Feed]) -> dict[str, float]:
    """Return the median s of a run of each, in turn, so that a busy machine meets all."""
    names = {p: [port.name for port in s.get_outputs()] for p, s in sessions.items()}
    times: dict[str, list[float]] = {precision: [] for precision in sessions}
    for number in range(_ROUNDS):
        feed = feeds[number % len(feeds)]
        for precision, session in sessions.items():
            begun = time.thread_time()
            session.run(names[precision], feed)
            times[precision].append(time.thread_time() - begun)
    return {precision: float(np.median(of)) for precision, of in times.items()}


def _outputs(session: Any, feeds: Sequence[Feed]) -> list[list[Any]]:
    names = [port.name for port in session.get_outputs()]
    return [session.run(names, feed) for feed in feeds[:_CALIBRATING]]


def _error(wanted: Sequence[Sequence[Any]], found: Sequence[Sequence[Any]]) -> float:
    """Return the largest relative deviation of any output."""
    errors = []
    for place in range(len(wanted[0])):
        one = np.concatenate([np.ravel(np.asarray(run[place], float)) for run in wanted])
        other = np.concatenate([np.ravel(np.asarray(run[place], float)) for run in found])
        scale = float(one.std()) or 1.0
        errors.append(float(np.sqrt(np.mean((one - other) ** 2))) / scale)
    return max(errors)


class _Calibration:
    """Hands out what a stage was fed with, one after the other, as ONNX Runtime asks for it."""

    def __init__(self, feeds: Sequence[Feed]) -> None:
        feed = iter(feeds[:_CALIBRATING])
        self.get_next = lambda: next(feed, None)


def _quantised(source: Path, path: Path, feeds: Sequence[Feed]) -> None:
    """Write a stage with convolutions in whole numbers, by channel."""
    from onnxruntime.quantization import QuantFormat, QuantType, quantize_static
    from onnxruntime.quantization.shape_inference import quant_pre_process

    prepared = path.with_suffix('.prepared')
    level = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        quant_pre_process(str(source), str(prepared), skip_symbolic_shape=True)
        quantize_static(
            str(prepared),
            str(path),
            _Calibration(feeds),
            quant_format=QuantFormat.QOperator,
            per_channel=True,
            op_types_to_quantize=['Conv'],
            nodes_to_exclude=_narrow(prepared),
            activation_type=QuantType.QUInt8,
            weight_type=QuantType.QInt8,
        )
    finally:
        logging.disable(level)
        prepared.unlink(missing_ok=True)
    import onnx

    if not any(node.op_type.startswith('QLinear') for node in onnx.load(path).graph.node):
        raise QuantisationError('it has no convolution that gains by it')


def _narrow(path: Path) -> list[str]:
    """Return the names of convolutions that stay in full precision."""
    import onnx

    graph = onnx.load(path).graph
    shapes = {weights.name: tuple(weights.dims) for weights in graph.initializer}
    return [
        node.name
        for node in graph.node
        if node.op_type == 'Conv'
        and shapes.get(node.input[1], (0, _FEWEST_CHANNELS))[1] < _FEWEST_CHANNELS
    ]


def _halved(source: Path, path: Path, _: Sequence[Feed]) -> None:
    """Write a stage in half precision, with the inputs and outputs that it had."""
    import onnx
    from onnxruntime.transformers.float16 import convert_float_to_float16

    halved = convert_float_to_float16(onnx.load(source), keep_io_types=True)
    onnx.save(halved, path)


def require_onnx() -> None:
    """Make sure that networks can be written.

    :raises EncodingError: with the remedy
    """
    try:
        import onnx  # noqa: F401
    except ImportError as err:
        raise EncodingError(
            'onnx is not installed, which writes networks; run ./mmedge install train, or pip '
            'install onnx'
        ) from err
