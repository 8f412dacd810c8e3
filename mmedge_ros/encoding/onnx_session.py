"""Opens networks with ONNX Runtime, one sequential session each."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnxruntime

from mmedge_ros.encoding import EncodingError
from mmedge_ros.encoding.bundle.weights import cache_folder, require_weights

_PROVIDERS = {
    'cpu': 'CPUExecutionProvider',
    'cuda': 'CUDAExecutionProvider',
    'tensorrt': 'TensorrtExecutionProvider',
    'openvino': 'OpenVINOExecutionProvider',
}
_REMEDIES = {
    'cuda': 'install onnxruntime-gpu (on a Jetson the wheel made for its JetPack)',
    'tensorrt': 'install TensorRT and onnxruntime-gpu (on a Jetson the wheel for its JetPack)',
    'openvino': 'install onnxruntime-openvino in place of onnxruntime',
}
_TYPES: dict[str, type[np.floating]] = {
    'tensor(float)': np.float32,
    'tensor(float16)': np.float16,
}
_LARGEST_SIDE = 4096
_ERRORS_ONLY = 3


class Port(NamedTuple):
    """An input of a network; axes left open are None."""

    name: str
    shape: tuple[int | None, ...]
    dtype: type[np.floating]


@contextmanager
def runtime_errors(what: str) -> Iterator[None]:
    """Turn whatever ONNX Runtime raises into an EncodingError that begins with ``what``."""
    try:
        yield
    except EncodingError:
        raise
    except Exception as err:  # the runtime's exceptions have no base class of their own
        raise EncodingError(f'{what}: {str(err).strip()[:300]}') from err


def open_session(path: Path, threads: int = 1, device: str = 'cpu') -> Any:
    """Open a network: operators in sequence, ``threads`` each, no thread that spins idly.

    :param device: cpu, cuda, tensorrt or openvino
    :raises EncodingError: if the file cannot be read or the device is not there
    """
    provider = _provider(device)
    require_weights(path)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
    options.log_severity_level = _ERRORS_ONLY
    # ONNX Runtime before 1.19 (which Jetsons have) plans overlapping buffers for some graphs
    # and gives wrong results from the second run on; without planning 7.4 ms become 7.43 ms.
    options.enable_mem_pattern = False
    # Spinning wins microseconds here and takes a core from the other encoders.
    options.add_session_config_entry('session.intra_op.allow_spinning', '0')
    remedy = 'it must be a complete ONNX file; copy or export it again'
    # A fall-back to other devices would go unseen, and says so on standard output.
    with runtime_errors(f'{path} cannot be opened ({remedy})'), redirect_stdout(sys.stderr):
        session = onnxruntime.InferenceSession(
            str(path), options, providers=provider, enable_fallback=0
        )
        session.disable_fallback()
    active = session.get_providers()[0]
    if active != _PROVIDERS[device]:  # the runtime falls back in silence
        raise EncodingError(
            f'device {device!r} is installed but could not be started, {path} would run on '
            f'{active}; check its driver and libraries, or use cpu'
        )
    return session


def only_input(session: Any, place: str) -> Port:
    """Return the picture input of a network.

    :param place: names the file in messages
    :raises EncodingError: unless it is the only input, of shape [1, 3, H, W] and float
    """
    accepted = 'a detector has one input, [1, 3, height, width] of type float or float16'
    ports = session.get_inputs()
    if len(ports) != 1:
        names = ', '.join(repr(port.name) for port in ports)
        raise EncodingError(f'{place} has {len(ports)} inputs ({names}); {accepted}')
    port = ports[0]
    shape = tuple(n if isinstance(n, int) and n >= 0 else None for n in port.shape or ())
    suits = len(shape) == 4 and shape[0] in (1, None) and shape[1] in (3, None)
    if not suits or port.type not in _TYPES:
        raise EncodingError(f'{place} takes {port.shape} of type {port.type}; {accepted}')
    if any(n is not None and not 1 <= n <= _LARGEST_SIDE for n in shape[2:]):
        raise EncodingError(
            f'{place} takes pictures of {port.shape[2:]} px (height, width); '
            f'the sides must be 1 to {_LARGEST_SIDE}'
        )
    return Port(port.name, shape, _TYPES[port.type])


def _provider(device: str) -> list[Any]:
    """Return the execution providers for a device, with the CPU for what it cannot do."""
    if device not in _PROVIDERS:
        near = difflib.get_close_matches(device, _PROVIDERS, n=1, cutoff=0.0)
        raise EncodingError(
            f'unknown device {device!r}; the nearest is {near[0]!r}, '
            f'possible are {", ".join(_PROVIDERS)}'
        )
    wanted = _PROVIDERS[device]
    available = onnxruntime.get_available_providers()
    if wanted not in available:
        remedy = _REMEDIES.get(device, 'install onnxruntime again')
        raise EncodingError(
            f'device {device!r} is not available: this ONNX Runtime has {", ".join(available)}; '
            f'{remedy}, or use cpu'
        )
    if device == 'cpu':
        return [wanted]
    if device == 'tensorrt':
        # Building an engine takes minutes; without the cache each start would pay them.
        folder = cache_folder() / 'tensorrt'
        options = {'trt_engine_cache_enable': True, 'trt_engine_cache_path': str(folder)}
        return [(wanted, options), _PROVIDERS['cuda'], _PROVIDERS['cpu']]
    return [wanted, _PROVIDERS['cpu']]
