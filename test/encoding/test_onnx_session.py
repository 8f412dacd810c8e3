"""Opening networks with ONNX Runtime."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import onnxruntime
import pytest
from hand_made_networks import endless_network
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tiny_detector import write_tiny_detector

from mmedge_ros.encoding import EncodingError, onnx_session
from mmedge_ros.encoding.onnx_detector import OnnxDetector
from mmedge_ros.encoding.onnx_session import (
    only_input,
    open_session,
)

DETECTIONS = {'detections': np.zeros((1, 10, 6), np.float32)}


def test_a_session_runs_in_sequence_and_never_spins(tmp_path: Path) -> None:
    session = open_session(write_tiny_detector(tmp_path / 'tiny.onnx'), threads=2)
    options = session.get_session_options()
    assert options.intra_op_num_threads == 2
    assert options.inter_op_num_threads == 1
    assert options.execution_mode == onnxruntime.ExecutionMode.ORT_SEQUENTIAL
    assert options.get_session_config_entry('session.intra_op.allow_spinning') == '0'
    assert session.get_providers()[0] == 'CPUExecutionProvider'
    assert not options.enable_mem_pattern


def test_a_network_that_loops_for_ever_is_given_up_in_its_first_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(onnx_session, '_LONGEST_FIRST_RUN', 0.3)
    path = endless_network(tmp_path / 'endless.onnx')
    words = 'endless.onnx was given up: its first run took more than 0.3 s. It may loop for ever'
    with pytest.raises(EncodingError, match=words):
        OnnxDetector(path)
    assert capfd.readouterr().err == ''


@pytest.mark.parametrize('device', ['cuda', 'tensorrt', 'openvino'])
def test_a_device_this_machine_lacks_is_told_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, device: str
) -> None:
    monkeypatch.setattr(onnxruntime, 'get_available_providers', lambda: ['CPUExecutionProvider'])
    with pytest.raises(EncodingError, match=f"'{device}' is not available.*install .* or use cpu"):
        open_session(tmp_path / 'any.onnx', device=device)


class _Asked:
    """A session that starts on the device it is asked for."""

    shape: tuple[object, ...] = (1, 3, 320, 416)
    asked: tuple[object, ...] = ()
    falls_back = False

    def __init__(self, *arguments: object, **options: Any) -> None:
        type(self).asked = tuple(options['providers'])

    def run(self, *_: object) -> None:
        pass

    def disable_fallback(self) -> None:
        pass

    def get_providers(self) -> list[str]:
        first = 'CPUExecutionProvider' if self.falls_back else self.asked[0]
        return [first if isinstance(first, str) else str(first[0])]  # type: ignore[index]

    def get_inputs(self) -> list[Any]:
        return [SimpleNamespace(name='images', shape=list(self.shape))]


@pytest.fixture
def every_device(monkeypatch: pytest.MonkeyPatch) -> type[_Asked]:
    names = ['Tensorrt', 'CUDA', 'QNN', 'Rknpu', 'OpenVINO', 'CPU']
    available = [f'{name}ExecutionProvider' for name in names]
    monkeypatch.setattr(onnxruntime, 'get_available_providers', lambda: available)
    monkeypatch.setattr(onnxruntime, 'InferenceSession', _Asked)
    monkeypatch.setattr(_Asked, 'shape', (1, 3, 320, 416))
    return _Asked


@pytest.mark.parametrize('device', ['cuda', 'tensorrt'])
def test_a_device_that_does_not_start_is_not_replaced_in_silence(
    tmp_path: Path, every_device: type[_Asked], device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(every_device, 'falls_back', True)
    with pytest.raises(EncodingError, match='would run on CPUExecutionProvider; check its driver'):
        open_session(write_tiny_detector(tmp_path / 'tiny.onnx'), device=device)


@pytest.mark.parametrize('device', ['dla', 'qnn', 'rknn'])
def test_a_device_that_compiles_fixed_shapes_refuses_open_ones(
    tmp_path: Path, every_device: type[_Asked], device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    network = write_tiny_detector(tmp_path / 'tiny.onnx')
    open_session(network, device=device)
    monkeypatch.setattr(every_device, 'shape', ('batch', 3, 320, 416))
    with pytest.raises(EncodingError, match=f"shape of 'images' open.*{device} compiles fixed"):
        open_session(network, device=device)


def test_openvino_takes_no_more_threads_than_it_is_given(
    tmp_path: Path, every_device: type[_Asked]
) -> None:
    open_session(write_tiny_detector(tmp_path / 'tiny.onnx'), 1, 'openvino')
    assert every_device.asked[0] == ('OpenVINOExecutionProvider', {'num_of_threads': '1'})


def test_engines_of_tensorrt_are_kept_between_starts(
    tmp_path: Path, every_device: type[_Asked]
) -> None:
    network = write_tiny_detector(tmp_path / 'tiny.onnx')
    for device in ('tensorrt', 'dla'):
        open_session(network, device=device)
        name, options = every_device.asked[0]  # type: ignore[misc]
        assert name == 'TensorrtExecutionProvider'
        assert options['trt_engine_cache_enable'] == '1'
        assert options['trt_engine_cache_path'].endswith('tensorrt')
        assert ('trt_dla_enable' in options) is (device == 'dla')


@settings(
    deadline=None, max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(cut=st.floats(0.001, 0.98))
def test_a_network_that_was_cut_is_refused(tmp_path: Path, cut: float) -> None:
    whole = write_tiny_detector(tmp_path / 'tiny.onnx', 64, 64).read_bytes()
    path = tmp_path / 'cut.onnx'
    path.write_bytes(whole[: 1 + int(cut * len(whole))])
    with pytest.raises(EncodingError, match=r'cut\.onnx'):
        open_session(path)


@pytest.mark.parametrize(
    ('options', 'message'),
    [
        ({'inputs': 2}, r"has 2 inputs \('images', 'more0'\)"),
        ({'input_shape': (1, 3, 320)}, r'takes \[1, 3, 320\]'),
        ({'input_shape': (4, 3, 320, 416)}, r'takes \[4, 3, 320, 416\]'),
        ({'input_shape': (1, 1, 320, 416)}, r'takes \[1, 1, 320, 416\]'),
        ({'input_shape': (1, 3, 320, 1 << 30)}, 'sides must be 1 to 4096'),
    ],
)
def test_a_network_that_takes_no_picture_is_refused(write_network, options, message) -> None:
    session = open_session(write_network(DETECTIONS, **options))
    with pytest.raises(EncodingError, match=message):
        only_input(session, 'net')


def test_only_the_first_run_is_limited_and_not_where_an_engine_is_built(tmp_path: Path) -> None:
    session = open_session(write_tiny_detector(tmp_path / 'tiny.onnx'))
    assert 'first_run' in session.run.__qualname__
    picture = np.zeros((1, 3, 256, 320), np.float32)
    first = session.run(None, {'images': picture})
    assert 'first_run' not in session.run.__qualname__
    np.testing.assert_array_equal(session.run(None, {'images': picture})[0], first[0])
    assert onnx_session._BUILDERS == ('tensorrt', 'dla', 'qnn', 'rknn')


def test_an_unknown_device_is_told_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(EncodingError, match="unknown device 'cude'; the nearest is 'cuda'"):
        open_session(tmp_path / 'any.onnx', device='cude')
