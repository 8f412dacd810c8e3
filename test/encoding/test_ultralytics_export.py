"""The export of .pt weights, with hand-written torch and ultralytics."""

from __future__ import annotations

import sys
import types
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any, ClassVar

import onnx
import pytest
from tiny_detector import write_tiny_detector

from mmedge_ros.encoding import EncodingError
from mmedge_ros.encoding.ultralytics_export import export_with_ultralytics
from mmedge_ros.encoding.ultralytics_network import declare_torchvision_operators

SIZE = (416, 320)


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    path = tmp_path / 'yolo.pt'
    path.write_text('weights')
    return path


def fake_module(name: str, **contents: object) -> Any:
    module = types.ModuleType(name)
    module.__spec__ = ModuleSpec(name, None, is_package=True)
    vars(module).update(contents)
    return module


class FakeNetwork:
    """An ultralytics network as far as the export touches it."""

    stride = (8.0, 16.0, 32.0)

    def __init__(self, end_to_end: bool) -> None:
        self.names = {0: 'person'}
        self.model = [types.SimpleNamespace(one2one_cv2=object() if end_to_end else None)]

    def float(self) -> FakeNetwork:
        return self

    def eval(self) -> FakeNetwork:
        return self

    def fuse(self, verbose: bool) -> FakeNetwork:
        return self


class FakeTorch:
    """Puts a tiny network where torch's exporter would write one."""

    def __init__(self) -> None:
        self.exports: list[dict[str, Any]] = []

    def export(self, module: Any, arguments: tuple[Any], target: str, **options: Any) -> None:
        self.exports.append({'module': module, 'input': arguments[0], **options})
        write_tiny_detector(Path(target), features=True)

    def install(self, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
        class Module:
            def eval(self) -> Module:
                return self

        class NoGrad:
            def __enter__(self) -> None: ...

            def __exit__(self, *error: object) -> None: ...

        operators = types.SimpleNamespace(
            torchvision=types.SimpleNamespace(nms=object()), load_library=lambda path: None
        )
        torch = fake_module(
            'torch',
            __version__='1',
            nn=types.SimpleNamespace(Module=Module),
            no_grad=NoGrad,
            zeros=lambda *shape: shape,
            onnx=types.SimpleNamespace(export=self.export),
            ops=operators,
        )
        torchvision = fake_module('torchvision')
        torchvision.__spec__.submodule_search_locations = [str(folder)]
        monkeypatch.setitem(sys.modules, 'torch', torch)
        monkeypatch.setitem(sys.modules, 'torchvision', torchvision)


def install_ultralytics(
    monkeypatch: pytest.MonkeyPatch, *, task: str = 'detect', end_to_end: bool = False
) -> FakeNetwork:
    network = FakeNetwork(end_to_end)

    def yolo(path: str) -> Any:
        if Path(path).read_text() == 'garbage':
            raise TypeError('not a checkpoint')
        print('ultralytics says hello')
        return types.SimpleNamespace(task=task, model=network)

    module = fake_module('ultralytics', __version__='8', YOLO=yolo)
    monkeypatch.setitem(sys.modules, 'ultralytics', module)
    return network


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> FakeTorch:
    fake = FakeTorch()
    fake.install(monkeypatch, tmp_path)
    for name in ('YOLO_OFFLINE', 'YOLO_AUTOINSTALL', 'YOLO_CONFIG_DIR'):
        monkeypatch.setenv(name, 'set')
    return fake


def test_one_graph_has_detections_grid_and_embedding(
    torch: FakeTorch, monkeypatch: pytest.MonkeyPatch, weights: Path, tmp_path: Path
) -> None:
    install_ultralytics(monkeypatch)
    target = tmp_path / 'network.onnx'
    export_with_ultralytics(weights, target, SIZE)
    (call,) = torch.exports
    assert call['input'] == (1, 3, 320, 416)
    assert call['input_names'] == ['images']
    assert call['output_names'] == ['detections', 'grid', 'embedding']
    metadata = {entry.key: entry.value for entry in onnx.load(target).metadata_props}
    assert metadata['names'] == "{0: 'person'}"
    assert metadata['imgsz'] == '[320, 416]'
    assert metadata['task'] == 'detect'
    assert 'AGPL-3.0' in metadata['license']


class FakeFeature:
    """A feature map whose mean is its name."""

    def __init__(self, name: str) -> None:
        self.name = name

    def mean(self, dim: tuple[int, int]) -> str:
        assert dim == (2, 3)
        return f'mean of {self.name}'


@pytest.mark.parametrize('nested', [False, True])
def test_the_grid_is_the_feature_map_at_stride_16_and_the_embedding_all_means(
    torch: FakeTorch,
    monkeypatch: pytest.MonkeyPatch,
    weights: Path,
    tmp_path: Path,
    nested: bool,
) -> None:
    install_ultralytics(monkeypatch)
    sys.modules['torch'].cat = lambda parts, dim: (parts, dim)  # type: ignore[attr-defined]
    export_with_ultralytics(weights, tmp_path / 'network.onnx', SIZE)
    module = torch.exports[0]['module']
    features = [FakeFeature(name) for name in ('p3', 'p4', 'p5')]
    raw = {'feats': features}
    answer = {'one2many': {}, 'one2one': raw} if nested else raw
    module.network = lambda picture: ('boxes', answer)
    detections, grid, embedding = module.forward('picture')
    assert detections == 'boxes'
    assert grid is features[1]
    assert embedding == (['mean of p3', 'mean of p4', 'mean of p5'], 1)


@pytest.mark.parametrize('end_to_end', [False, True])
def test_a_head_that_can_do_without_suppression_is_asked_to(
    torch: FakeTorch,
    monkeypatch: pytest.MonkeyPatch,
    weights: Path,
    tmp_path: Path,
    end_to_end: bool,
) -> None:
    network = install_ultralytics(monkeypatch, end_to_end=end_to_end)
    target = tmp_path / 'network.onnx'
    export_with_ultralytics(weights, target, SIZE)
    assert getattr(network, 'end2end', False) is end_to_end
    metadata = {entry.key: entry.value for entry in onnx.load(target).metadata_props}
    assert metadata['end2end'] == str(end_to_end)


def test_standard_output_is_kept_free_for_results(
    torch: FakeTorch,
    monkeypatch: pytest.MonkeyPatch,
    weights: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    install_ultralytics(monkeypatch)
    export_with_ultralytics(weights, tmp_path / 'network.onnx', SIZE)
    captured = capsys.readouterr()
    assert captured.out == ''
    assert 'ultralytics says hello' in captured.err


def test_a_network_for_another_task_is_refused(
    torch: FakeTorch, monkeypatch: pytest.MonkeyPatch, weights: Path, tmp_path: Path
) -> None:
    install_ultralytics(monkeypatch, task='segment')
    with pytest.raises(EncodingError, match="made for 'segment'; it must be the "):
        export_with_ultralytics(weights, tmp_path / 'network.onnx', SIZE)


def test_a_file_ultralytics_cannot_load_is_refused(
    torch: FakeTorch, monkeypatch: pytest.MonkeyPatch, weights: Path, tmp_path: Path
) -> None:
    install_ultralytics(monkeypatch)
    weights.write_text('garbage')
    with pytest.raises(EncodingError, match=r'cannot be loaded .*TypeError: not a checkpoint'):
        export_with_ultralytics(weights, tmp_path / 'network.onnx', SIZE)


def test_a_network_that_cannot_be_exported_is_refused(
    torch: FakeTorch, monkeypatch: pytest.MonkeyPatch, weights: Path, tmp_path: Path
) -> None:
    network = install_ultralytics(monkeypatch)
    monkeypatch.setattr(network, 'stride', (8.0, 32.0), raising=False)
    with pytest.raises(EncodingError, match='cannot be exported with ultralytics 8 and torch 1'):
        export_with_ultralytics(weights, tmp_path / 'network.onnx', SIZE)


@pytest.mark.parametrize('missing', ['torch', 'torchvision', 'ultralytics', 'onnx'])
def test_a_missing_library_is_told_with_the_line_that_installs_it(
    torch: FakeTorch,
    monkeypatch: pytest.MonkeyPatch,
    weights: Path,
    tmp_path: Path,
    missing: str,
) -> None:
    install_ultralytics(monkeypatch)
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(EncodingError) as caught:
        export_with_ultralytics(weights, tmp_path / 'network.onnx', SIZE)
    message = str(caught.value)
    assert f'{missing} is missing' in message
    assert 'torch==2.13.0 torchvision==0.28.0' in message
    assert 'AGPL-3.0' in message


class FakeLibrary:
    """torch.library.Library: remembers what is declared."""

    declared: ClassVar[list[str]] = []

    def __init__(self, namespace: str, kind: str) -> None:
        assert (namespace, kind) == ('torchvision', 'DEF')

    def define(self, schema: str) -> None:
        self.declared.append(schema.partition('(')[0])

    def impl(self, name: str, function: object, device: str) -> None:
        self.declared.append(f'{name} on {device}')


@pytest.mark.parametrize('loads', [False, True])
def test_operators_are_declared_only_where_torchvision_cannot_load_its_own(
    torch: FakeTorch, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, loads: bool
) -> None:
    def load_library(path: str) -> None:
        if not loads:
            raise OSError('libcudart.so.13: cannot open shared object file')

    (tmp_path / '_C.so').touch()
    modules: Any = sys.modules
    modules['torch'].ops = types.SimpleNamespace(
        torchvision=types.SimpleNamespace(), load_library=load_library
    )
    modules['torch'].library = types.SimpleNamespace(Library=FakeLibrary)
    native = object()
    modules['torchvision'].ops = types.SimpleNamespace(
        nms=native, boxes=types.SimpleNamespace(nms=native)
    )
    monkeypatch.setattr(FakeLibrary, 'declared', [])
    declare_torchvision_operators()
    assert FakeLibrary.declared == ([] if loads else ['nms', 'qnms', 'nms on CPU'])
    assert (modules['torchvision'].ops.nms is native) is loads
    assert (modules['torchvision'].ops.boxes.nms is native) is loads
