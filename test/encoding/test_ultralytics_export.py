"""Exports of .pt weights, with a hand-written exporter in place of ultralytics."""

from __future__ import annotations

import subprocess
import sys
import types
from collections.abc import Iterator
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

import onnx
import pytest
from tiny_detector import write_tiny_detector

from mmedge_ros.encoding import ultralytics_export
from mmedge_ros.encoding.detector import DetectorParameters, EncodingError
from mmedge_ros.encoding.model_bundle import open_detector
from mmedge_ros.encoding.ultralytics_export import export_with_ultralytics, exported_onnx

SIZE = (416, 320)


class FakeExporter:
    """Writes the size it was asked for, and remembers each call."""

    def __init__(self) -> None:
        self.calls: list[tuple[Path, tuple[int, int]]] = []

    def __call__(self, weights: Path, target: Path, input_size: tuple[int, int]) -> None:
        self.calls.append((weights, input_size))
        target.write_text(f'{weights.read_text()} {input_size}')


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    path = tmp_path / 'yolo.pt'
    path.write_text('weights')
    return path


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / 'cache' / 'mmedge_ros'


def test_weights_are_exported_once(weights: Path, cache: Path) -> None:
    exporter = FakeExporter()
    first = exported_onnx(weights, SIZE, cache, exporter)
    assert exported_onnx(weights, SIZE, cache, exporter) == first
    assert first.read_text() == 'weights (416, 320)'
    assert first.suffix == '.onnx'
    assert len(exporter.calls) == 1


def test_the_same_content_under_another_name_is_not_exported_again(
    weights: Path, cache: Path
) -> None:
    exporter = FakeExporter()
    copy = weights.with_name('copy.pt')
    copy.write_bytes(weights.read_bytes())
    first = exported_onnx(weights, SIZE, cache, exporter)
    assert exported_onnx(copy, SIZE, cache, exporter) == first
    assert len(exporter.calls) == 1


def test_other_content_and_other_sizes_are_exported_anew(weights: Path, cache: Path) -> None:
    exporter = FakeExporter()
    paths = {exported_onnx(weights, SIZE, cache, exporter)}
    paths.add(exported_onnx(weights, (640, 480), cache, exporter))
    weights.write_text('better weights')
    paths.add(exported_onnx(weights, SIZE, cache, exporter))
    assert len(paths) == len(exporter.calls) == 3


def test_a_failed_export_leaves_nothing_behind_and_can_be_repeated(
    weights: Path, cache: Path
) -> None:
    def fail(weights: Path, target: Path, input_size: tuple[int, int]) -> None:
        target.write_text('half a network')
        raise EncodingError('it broke')

    with pytest.raises(EncodingError, match='it broke'):
        exported_onnx(weights, SIZE, cache, fail)
    assert [path.name for path in cache.iterdir()] == ['export.lock']
    exporter = FakeExporter()
    assert exported_onnx(weights, SIZE, cache, exporter).is_file()


def test_a_cache_that_cannot_be_written_is_named_with_the_remedy(
    weights: Path, tmp_path: Path
) -> None:
    (tmp_path / 'file').touch()
    with pytest.raises(EncodingError, match=r'cannot be kept in .*; make it writable, or set XDG'):
        exported_onnx(weights, SIZE, tmp_path / 'file' / 'cache', FakeExporter())


@pytest.mark.parametrize('size', [(300, 320), (416, 0), (-32, 320)])
def test_an_input_size_no_yolo_takes_is_refused(
    weights: Path, cache: Path, size: tuple[int, int]
) -> None:
    with pytest.raises(EncodingError, match='must be multiples of 32'):
        exported_onnx(weights, size, cache, FakeExporter())


def test_missing_weights_are_named(tmp_path: Path, cache: Path) -> None:
    with pytest.raises(EncodingError, match=r'none\.pt do not exist'):
        exported_onnx(tmp_path / 'none.pt', SIZE, cache, FakeExporter())


CHILD = """
import sys
from pathlib import Path
from mmedge_ros.encoding.ultralytics_export import exported_onnx

def export(weights, target, input_size):
    print('exporting', flush=True)
    sys.stdin.readline()
    target.write_text('network')

print('asking', flush=True)
print(exported_onnx(Path(sys.argv[1]), (416, 320), Path(sys.argv[2]), export), flush=True)
"""


class Child:
    """A process of its own that asks for the export and waits in it for a word from here."""

    def __init__(self, weights: Path, cache: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, '-c', CHILD, str(weights), str(cache)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def go_on(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write('\n')
        self.process.stdin.flush()

    def end(self) -> None:
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def two_children(weights: Path, cache: Path) -> Iterator[tuple[Child, Child]]:
    first = Child(weights, cache)
    assert [first.line(), first.line()] == ['asking', 'exporting']
    second = Child(weights, cache)
    assert second.line() == 'asking'
    yield first, second
    first.end()
    second.end()


def test_of_two_processes_one_exports_and_the_other_waits(
    two_children: tuple[Child, Child],
) -> None:
    first, second = two_children
    first.go_on()
    path = first.line()
    assert Path(path).read_text() == 'network'
    assert second.line() == path


def test_when_the_exporting_process_is_killed_the_waiting_one_exports(
    two_children: tuple[Child, Child],
) -> None:
    first, second = two_children
    first.end()
    assert second.line() == 'exporting'
    second.go_on()
    assert Path(second.line()).read_text() == 'network'


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


def test_weights_in_pt_are_opened_through_their_export(
    monkeypatch: pytest.MonkeyPatch, weights: Path, cache: Path
) -> None:
    sizes = []

    def export(weights: Path, target: Path, input_size: tuple[int, int]) -> None:
        sizes.append(input_size)
        write_tiny_detector(target, *input_size)

    monkeypatch.setattr(ultralytics_export, 'export_with_ultralytics', export)
    monkeypatch.setenv('XDG_CACHE_HOME', str(cache.parent))
    assert open_detector(weights).input_size == (416, 320)
    wide = DetectorParameters(input_width=640, input_height=384)
    assert open_detector(weights, wide).input_size == (640, 384)
    assert open_detector(weights).input_size == (416, 320)
    assert sizes == [(416, 320), (640, 384)]
    assert len(list(cache.glob('*.onnx'))) == 2
