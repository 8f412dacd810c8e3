"""Which network is used when nobody names one, and what a name stands for."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from tiny_stages import write_grid_bundle

from mmedge_ros.encoding import EncodingError
from mmedge_ros.encoding.bundle import default_model
from mmedge_ros.encoding.bundle.default_model import bundle_folders, default_detector


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine with neither a shipped nor a fetched model, nor data."""
    monkeypatch.setattr(default_model, '_SHIPPED', (tmp_path / 'models',))
    monkeypatch.setenv('XDG_DATA_HOME', str(tmp_path / 'home'))
    for name in ('MMEDGE_DATA', 'AMENT_PREFIX_PATH'):
        monkeypatch.delenv(name, raising=False)


def bundle(folder: Path, domain: str = 'simulated') -> Path:
    folder.mkdir(parents=True)
    digest = hashlib.sha256(b'weights').hexdigest()
    (folder / 'manifest.yaml').write_text(
        f'name: {folder.name}\n'
        f'domain: {domain}\n'
        f'camera: {{levels: {{small: {{weights: small.onnx, sha256: {digest}}}}}}}\n'
    )
    (folder / 'small.onnx').write_bytes(b'weights')
    return folder


@pytest.fixture
def shipped(tmp_path: Path) -> Path:
    return bundle(tmp_path / 'models' / 'walkers')


@pytest.fixture
def fetched(tmp_path: Path) -> Path:
    return bundle(tmp_path / 'home/mmedge_ros/models/yolox_nano', 'real')


@pytest.fixture
def data(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    weights = tmp_path / 'data/models/yolox_nano.onnx'
    weights.parent.mkdir(parents=True)
    weights.write_bytes(b'')
    monkeypatch.setenv('MMEDGE_DATA', str(tmp_path / 'data'))
    return weights


def test_a_named_file_is_used_whatever_else_there_is(shipped: Path, data: Path) -> None:
    assert default_detector('some/weights.onnx') == Path('some/weights.onnx')
    assert default_detector('weights.onnx') == Path('weights.onnx')
    assert default_detector('some/bundle') == Path('some/bundle')
    assert default_detector('~/weights.onnx') == Path.home() / 'weights.onnx'


@pytest.mark.parametrize(
    ('gain', 'goes_first'),
    [
        ('{value: 0.02, low: 0.01, high: 0.03}', True),
        ('{value: 0.01, low: -0.01, high: 0.03}', False),
        ('{value: -0.01, low: -0.02, high: -0.01}', False),
        ('{value: 0.01, low: null, high: null}', True),
        ('much', True),
    ],
)
def test_a_bundle_whose_fusion_was_measured_goes_first_only_if_it_beats_rules(
    shipped: Path, gain: str, goes_first: bool
) -> None:
    fusing = shipped.parent / 'xenon'
    fusing.mkdir()
    write_grid_bundle(fusing, domain='simulated')
    with (fusing / 'manifest.yaml').open('a') as manifest:
        manifest.write(f'accuracy: {{fusion_gain: {gain}}}\n')
    assert default_detector(simulated=True) == (fusing if goes_first else shipped)


def test_real_pictures_get_the_fetched_bundle(shipped: Path, fetched: Path, data: Path) -> None:
    assert default_detector() == fetched


def test_a_drone_in_flight_gets_the_bundle_that_saw_people_from_above(
    shipped: Path, fetched: Path
) -> None:
    both = bundle(shipped.parent / 'zebras', 'real and simulated')
    assert default_detector(above=True) == both
    assert default_detector() == fetched
    assert default_detector(simulated=True) == shipped
    own = bundle(fetched.parent / 'own_camera', 'real')
    assert default_detector(above=True) == default_detector() == own


@pytest.mark.parametrize('simulated', [False, True])
def test_a_data_folder_without_the_network_is_no_hindrance(
    shipped: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, simulated: bool
) -> None:
    monkeypatch.setenv('MMEDGE_DATA', str(tmp_path))
    assert default_detector(simulated=simulated) == shipped


def test_a_bundle_goes_by_its_name(shipped: Path, fetched: Path) -> None:
    assert default_detector('walkers') == shipped
    assert default_detector('yolox_nano', simulated=True) == fetched
    assert [folder.name for folder in bundle_folders()] == ['yolox_nano', 'walkers']


def test_a_model_that_could_be_fetched_is_told_how(shipped: Path) -> None:
    with pytest.raises(EncodingError, match='`mmedge model fetch yolox_tiny` brings it'):
        default_detector('yolox_tiny')


def test_an_unknown_name_is_told_with_those_that_are_here(shipped: Path) -> None:
    with pytest.raises(EncodingError, match=r"'hikers': neither a file nor .*\(walkers\)"):
        default_detector('hikers')


def test_a_damaged_bundle_is_not_passed_over_in_silence(fetched: Path, data: Path) -> None:
    (fetched / 'manifest.yaml').write_text('nonsense')
    assert default_detector() == fetched


def test_without_anything_it_is_said_how_to_get_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with pytest.raises(EncodingError, match='fetch yolox_nano` brings one, --detector FILE'):
        default_detector()
    monkeypatch.setenv('MMEDGE_DATA', str(tmp_path))
    with pytest.raises(EncodingError, match='does not exist'):
        default_detector()


def test_simulated_pictures_get_the_shipped_bundle(
    shipped: Path, fetched: Path, data: Path
) -> None:
    assert default_detector(simulated=True) == shipped


def test_real_pictures_without_a_fetched_bundle_get_the_data_folders_network(
    shipped: Path, data: Path
) -> None:
    assert default_detector() == data


def test_real_pictures_get_the_shipped_bundle_where_there_is_nothing_better(
    shipped: Path,
) -> None:
    assert default_detector() == shipped


def test_an_installed_bundle_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    installed = bundle(tmp_path / 'share' / 'mmedge_ros' / 'models' / 'walkers')
    monkeypatch.setenv('AMENT_PREFIX_PATH', f'/nowhere:{tmp_path}')
    assert default_detector() == installed


def test_a_fetched_bundle_hides_a_shipped_one_of_its_name(tmp_path: Path) -> None:
    bundle(tmp_path / 'models/walkers')
    own = bundle(tmp_path / 'home/mmedge_ros/models/walkers')
    assert list(bundle_folders()) == [own]


def test_what_a_download_left_half_done_is_no_bundle(tmp_path: Path) -> None:
    bundle(tmp_path / 'home/mmedge_ros/models/.yolox_nano.42.part', 'real')
    assert list(bundle_folders()) == []
