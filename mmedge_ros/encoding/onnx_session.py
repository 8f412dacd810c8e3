"""Opens networks with ONNX Runtime, one sequential session each."""

from __future__ import annotations

import difflib
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnxruntime

from mmedge_ros.core import heartbeat
from mmedge_ros.encoding import EncodingError
from mmedge_ros.encoding.bundle.weights import cache_folder, require_weights

_CPU_PROVIDER = 'CPUExecutionProvider'
# Building an engine takes minutes; without the cache each start would pay them.
_ENGINE_CACHE = {'trt_engine_cache_enable': '1'}


class _Device(NamedTuple):
    """How ONNX Runtime calls a device, and the devices that do what it cannot.

    ``is_fixed``: it compiles networks whose shapes are fixed, and no others.
    """

    provider: str
    remedy: str
    options: Mapping[str, str] = {}
    others: tuple[str, ...] = (_CPU_PROVIDER,)
    is_fixed: bool = False


_CUDA_PROVIDER, _TENSORRT_PROVIDER = 'CUDAExecutionProvider', 'TensorrtExecutionProvider'
_JETSON = 'install TensorRT and onnxruntime-gpu (on a Jetson the wheel for its JetPack)'
_DEVICES = {
    'cpu': _Device(_CPU_PROVIDER, 'install onnxruntime again', {}, ()),
    'cuda': _Device(
        _CUDA_PROVIDER, 'install onnxruntime-gpu (on a Jetson the wheel made for its JetPack)'
    ),
    'tensorrt': _Device(
        _TENSORRT_PROVIDER, _JETSON, _ENGINE_CACHE, (_CUDA_PROVIDER, _CPU_PROVIDER)
    ),
    'openvino': _Device(
        'OpenVINOExecutionProvider', 'install onnxruntime-openvino in place of onnxruntime'
    ),
    # Written from the runtime's documentation; no such hardware was at hand.
    'dla': _Device(
        _TENSORRT_PROVIDER,
        _JETSON,
        {**_ENGINE_CACHE, 'trt_dla_enable': '1', 'trt_fp16_enable': '1'},
        (_CUDA_PROVIDER, _CPU_PROVIDER),
        is_fixed=True,
    ),
    'qnn': _Device(
        'QNNExecutionProvider',
        'install onnxruntime-qnn, made for Qualcomm boards',
        {'backend_path': 'libQnnHtp.so'},
        is_fixed=True,
    ),
    'rknn': _Device(
        'RknpuExecutionProvider',
        'build ONNX Runtime with rknpu, for Rockchip boards',
        is_fixed=True,
    ),
}
_TYPES: dict[str, type[np.floating]] = {
    'tensor(float)': np.float32,
    'tensor(float16)': np.float16,
}
_LARGEST_SIDE = 4096
# s. Devices that build an engine in the first run take minutes for it, and are not limited.
_LONGEST_FIRST_RUN = 30.0
_BUILDERS = ('tensorrt', 'dla', 'qnn', 'rknn')
_ERRORS_ONLY, _FATAL_ONLY = 3, 4


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

    :param device: cpu, cuda, tensorrt, openvino; dla, qnn and rknn are untested
    :raises EncodingError: if the file cannot be read, the device is not there, or needs fixed
        shapes and the network leaves some open
    """
    providers = _providers(device, threads)
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
    with (
        runtime_errors(f'{path} cannot be opened ({remedy})'),
        redirect_stdout(sys.stderr),
        heartbeat.loading(),
    ):
        session = onnxruntime.InferenceSession(
            str(path), options, providers=providers, enable_fallback=0
        )
        session.disable_fallback()
    active = session.get_providers()[0]
    if active != _DEVICES[device].provider:  # the runtime falls back in silence
        raise EncodingError(
            f'device {device!r} is installed but could not be started, {path} would run on '
            f'{active}; check its driver and libraries, or use cpu'
        )
    if _DEVICES[device].is_fixed:
        _require_fixed(session.get_inputs(), path, device)
    if device not in _BUILDERS:
        _limit_first_run(session, path)
    return session


def _limit_first_run(session: Any, path: Path) -> None:
    """Let a session give its first run up after a while: a file may loop for ever."""
    run = session.run

    def first_run(names: Any, feeds: Any) -> Any:
        options, has_expired = onnxruntime.RunOptions(), threading.Event()
        options.log_severity_level = _FATAL_ONLY

        def expire() -> None:
            has_expired.set()
            options.terminate = True

        timer = threading.Timer(_LONGEST_FIRST_RUN, expire)
        timer.daemon = True
        timer.start()
        try:
            made = run(names, feeds, options)
        except Exception as err:
            if not has_expired.is_set():
                raise
            raise EncodingError(
                f'{path} was given up: its first run took more than {_LONGEST_FIRST_RUN:g} s. It '
                'may loop for ever; export it again, or use another network'
            ) from err
        finally:
            timer.cancel()
        del session.run
        return made

    session.run = first_run


def available_devices() -> list[str]:
    """Return the tested devices that this ONNX Runtime was built for; one may yet not start."""
    there = onnxruntime.get_available_providers()
    return [n for n, of in _DEVICES.items() if of.provider in there and not of.is_fixed]


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


def _require_fixed(ports: Any, path: Path, device: str) -> None:
    for port in ports:
        if not all(isinstance(n, int) and n > 0 for n in port.shape or ()):
            raise EncodingError(
                f'{path} leaves the shape of {port.name[:80]!r} open ({port.shape}), and '
                f'{device} compiles fixed shapes only; export it with a fixed shape, or use cpu'
            )


def _providers(device: str, threads: int) -> list[Any]:
    """Return the execution providers for a device, with those for what it cannot do."""
    if device not in _DEVICES:
        near = difflib.get_close_matches(device, _DEVICES, n=1, cutoff=0.0)
        raise EncodingError(
            f'unknown device {device!r}; the nearest is {near[0]!r}, '
            f'possible are {", ".join(_DEVICES)}'
        )
    wanted = _DEVICES[device]
    available = onnxruntime.get_available_providers()
    if wanted.provider not in available:
        raise EncodingError(
            f'device {device!r} is not available: this ONNX Runtime has {", ".join(available)}; '
            f'{wanted.remedy}, or use cpu'
        )
    options = dict(wanted.options)
    if _ENGINE_CACHE.items() <= options.items():
        options['trt_engine_cache_path'] = str(cache_folder() / 'tensorrt')
    if device == 'openvino':
        # It does not heed the session's own number, and would take every core.
        options['num_of_threads'] = str(threads)
    return [(wanted.provider, options) if options else wanted.provider, *wanted.others]
