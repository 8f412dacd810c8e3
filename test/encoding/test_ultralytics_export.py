"""Exports of .pt weights and their cache, without torch; `with_torch` has the graph itself."""

from __future__ import annotations

import fcntl
import sys
import types
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

import pytest
from tiny_detector import write_tiny_detector

from mmedge_ros.encoding import EncodingError, ultralytics_export
from mmedge_ros.encoding.bundle.model_bundle import open_detector
from mmedge_ros.encoding.detector import DetectorParameters
from mmedge_ros.encoding.ultralytics_export import exported_onnx
from mmedge_ros.encoding.ultralytics_network import declare_torchvision_operators

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
    first = exported_onnx(weights, SIZE, cache, exporter, trusted=True)
    assert exported_onnx(weights, SIZE, cache, exporter, trusted=True) == first
    assert first.read_text() == 'weights (416, 320)'
    assert first.suffix == '.onnx'
    assert len(exporter.calls) == 1


def test_other_content_and_other_sizes_are_exported_anew(weights: Path, cache: Path) -> None:
    exporter = FakeExporter()
    paths = {exported_onnx(weights, SIZE, cache, exporter, trusted=True)}
    paths.add(exported_onnx(weights, (640, 480), cache, exporter, trusted=True))
    weights.write_text('better weights')
    paths.add(exported_onnx(weights, SIZE, cache, exporter, trusted=True))
    assert len(paths) == len(exporter.calls) == 3


def test_a_failed_export_leaves_nothing_behind_and_can_be_repeated(
    weights: Path, cache: Path
) -> None:
    def fail(weights: Path, target: Path, input_size: tuple[int, int]) -> None:
        target.write_text('half a network')
        raise EncodingError('it broke')

    with pytest.raises(EncodingError, match='it broke'):
        exported_onnx(weights, SIZE, cache, fail, trusted=True)
    assert [path.name for path in cache.iterdir()] == ['export.lock']
    exporter = FakeExporter()
    assert exported_onnx(weights, SIZE, cache, exporter, trusted=True).is_file()


def test_a_cache_that_cannot_be_written_is_named_with_the_remedy(
    weights: Path, tmp_path: Path
) -> None:
    (tmp_path / 'file').touch()
    with pytest.raises(EncodingError, match=r'cannot be kept in .*; make it writable, or set XDG'):
        exported_onnx(weights, SIZE, tmp_path / 'file' / 'cache', FakeExporter(), trusted=True)


def test_one_process_exports_at_a_time(weights: Path, cache: Path) -> None:
    def export(weights: Path, target: Path, input_size: tuple[int, int]) -> None:
        with (cache / 'export.lock').open() as file, pytest.raises(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        target.write_text('network')

    exported_onnx(weights, SIZE, cache, export, trusted=True)
    with (cache / 'export.lock').open() as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_weights_in_pt_are_opened_through_their_export(
    monkeypatch: pytest.MonkeyPatch, weights: Path, cache: Path
) -> None:
    sizes = []

    def export(weights: Path, target: Path, input_size: tuple[int, int]) -> None:
        sizes.append(input_size)
        write_tiny_detector(target, *input_size)

    monkeypatch.setattr(ultralytics_export, 'export_with_ultralytics', export)
    monkeypatch.setattr(sys, 'prefix', str(cache))
    monkeypatch.setenv('XDG_CACHE_HOME', str(cache.parent))
    usual = DetectorParameters(trust_weights=True)
    assert open_detector(weights, usual).input_size == (416, 320)
    wide = DetectorParameters(input_width=640, input_height=384, trust_weights=True)
    assert open_detector(weights, wide).input_size == (640, 384)
    assert open_detector(weights).input_size == (416, 320)
    assert sizes == [(416, 320), (640, 384)]
    assert len(list(cache.glob('*.onnx'))) == 2


def test_a_file_that_is_not_trusted_is_not_loaded_but_its_export_is_used(
    weights: Path, tmp_path: Path
) -> None:
    cache, exporter = tmp_path / 'cache', FakeExporter()
    with pytest.raises(EncodingError, match=r'runs whatever code is in it.*--trust-weights'):
        exported_onnx(weights, SIZE, cache, exporter)
    assert not cache.exists()
    made = exported_onnx(weights, SIZE, cache, exporter, trusted=True)
    assert exported_onnx(weights, SIZE, cache, exporter) == made


def test_a_missing_library_is_told_with_the_line_that_installs_it(
    monkeypatch: pytest.MonkeyPatch, weights: Path, cache: Path
) -> None:
    monkeypatch.setitem(sys.modules, 'torch', None)
    monkeypatch.setattr(sys, 'prefix', str(cache))
    with pytest.raises(
        EncodingError,
        match=r'AGPL-3\.0.* torch is missing.*run `./mmedge install train`, then this again',
    ):
        exported_onnx(weights, SIZE, cache, trusted=True)


def test_an_environment_for_trainings_beside_this_one_exports(
    monkeypatch: pytest.MonkeyPatch, weights: Path, cache: Path, tmp_path: Path
) -> None:
    python = tmp_path / '.venv-train' / 'bin' / 'python'
    python.parent.mkdir(parents=True)
    monkeypatch.setattr(sys, 'prefix', str(tmp_path / '.venv'))
    monkeypatch.setattr(ultralytics_export.importlib.util, 'find_spec', lambda name: None)
    # Instead of an interpreter: it gets -P -m MODULE WEIGHTS TARGET WIDTH HEIGHT.
    python.write_text('#!/bin/sh\necho "$3 $6 $7" >"$5"\n')
    python.chmod(0o755)
    made = exported_onnx(weights, SIZE, cache, trusted=True)
    assert made.read_text().split() == ['mmedge_ros.encoding.ultralytics_export', '416', '320']
    python.write_text('#!/bin/sh\necho "a warning" >&2; echo "it is no network" >&2; exit 1\n')
    with pytest.raises(EncodingError, match=r'yolo.pt: it is no network$'):
        exported_onnx(weights, (640, 480), cache, trusted=True)


@pytest.mark.parametrize('loads', [False, True])
def test_operators_are_declared_only_where_torchvision_cannot_load_its_own(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, loads: bool
) -> None:
    native, declared = object(), list[str]()

    def load_library(path: str) -> None:
        if not loads:
            raise OSError('libcudart.so.13: cannot open shared object file')

    def library(namespace: str, kind: str) -> Any:
        return types.SimpleNamespace(
            define=lambda schema: declared.append(schema.partition('(')[0]),
            impl=lambda name, function, device: declared.append(f'{name} on {device}'),
        )

    torch, torchvision = (types.ModuleType(name) for name in ('torch', 'torchvision'))
    vars(torch)['ops'] = types.SimpleNamespace(
        torchvision=types.SimpleNamespace(), load_library=load_library
    )
    vars(torch)['library'] = types.SimpleNamespace(Library=library)
    boxes = types.SimpleNamespace(nms=native)
    vars(torchvision)['ops'] = types.SimpleNamespace(nms=native, boxes=boxes)
    torchvision.__spec__ = ModuleSpec('torchvision', None, is_package=True)
    torchvision.__spec__.submodule_search_locations = [str(tmp_path)]
    for module in (torch, torchvision):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    (tmp_path / '_C.so').touch()
    declare_torchvision_operators()
    assert declared == ([] if loads else ['nms', 'qnms', 'nms on CPU'])
    assert (boxes.nms is vars(torchvision)['ops'].nms is native) is loads
