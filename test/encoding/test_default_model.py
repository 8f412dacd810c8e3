"""Which network is used when nobody names one."""

from __future__ import annotations

from pathlib import Path

import pytest

from mmedge_ros.encoding import default_model
from mmedge_ros.encoding.default_model import default_detector
from mmedge_ros.encoding.detector import EncodingError


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine with neither a shipped model nor data."""
    monkeypatch.setattr(default_model, '_SOURCE_MODELS', tmp_path / 'none')
    for name in ('MMEDGE_DATA', 'AMENT_PREFIX_PATH'):
        monkeypatch.delenv(name, raising=False)


def bundle(folder: Path) -> Path:
    folder.mkdir(parents=True)
    (folder / 'manifest.yaml').write_text('name: x\n')
    return folder


def test_a_named_detector_is_used_whatever_else_there_is(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv('MMEDGE_DATA', str(tmp_path))
    assert default_detector('some/weights.onnx') == Path('some/weights.onnx')
    assert default_detector('~/weights.onnx') == Path.home() / 'weights.onnx'


def test_a_home_that_nobody_has_is_refused() -> None:
    with pytest.raises(EncodingError, match='give a full path'):
        default_detector('~nobody_of_that_name/weights.onnx')


def test_the_shipped_bundle_goes_before_the_data_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(default_model, '_SOURCE_MODELS', tmp_path / 'models')
    monkeypatch.setenv('MMEDGE_DATA', str(tmp_path))
    shipped = bundle(tmp_path / 'models' / 'walker')
    assert default_detector() == shipped


def test_an_installed_bundle_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    installed = bundle(tmp_path / 'share' / 'mmedge_ros' / 'models' / 'walker')
    monkeypatch.setenv('AMENT_PREFIX_PATH', f'/nowhere:{tmp_path}')
    assert default_detector() == installed


def test_without_a_bundle_the_data_folders_network_is_used(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    weights = tmp_path / 'models' / 'yolox_nano.onnx'
    weights.parent.mkdir()
    weights.write_bytes(b'')
    monkeypatch.setenv('MMEDGE_DATA', str(tmp_path))
    assert default_detector() == weights


def test_without_anything_it_is_said_how_to_get_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with pytest.raises(EncodingError, match='--detector FILE'):
        default_detector()
    monkeypatch.setenv('MMEDGE_DATA', str(tmp_path))
    with pytest.raises(EncodingError, match='does not exist'):
        default_detector()
