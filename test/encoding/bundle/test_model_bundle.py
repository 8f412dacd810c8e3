"""Model bundles and the choice of a network by path and level."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tiny_detector import write_tiny_detector

from mmedge_ros.encoding import EncodingError
from mmedge_ros.encoding.bundle.manifest import MANIFEST
from mmedge_ros.encoding.bundle.model_bundle import (
    domain_warning,
    load_bundle,
    model_levels,
    open_detector,
)
from mmedge_ros.encoding.bundle.weights import sha256_of
from mmedge_ros.encoding.detector import DetectorParameters

SIZES = {'small': (64, 64), 'large': (128, 96)}
ChangeManifest = Callable[..., Path]


@pytest.fixture
def manifest(tmp_path: Path) -> dict[str, Any]:
    """A correct bundle in tmp_path with two levels; its manifest is not yet written."""
    levels = {}
    for level, (width, height) in SIZES.items():
        path = write_tiny_detector(tmp_path / f'{level}.onnx', width, height)
        levels[level] = {
            'weights': path.name,
            'sha256': sha256_of(path),
            'bytes': path.stat().st_size,
        }
    return {'name': 'tiny', 'camera': {'default': 'large', 'levels': levels}}


@pytest.fixture
def bundle(tmp_path: Path, manifest: dict[str, Any]) -> Path:
    return write(tmp_path, manifest)


def write(folder: Path, manifest: object) -> Path:
    (folder / 'manifest.yaml').write_text(yaml.safe_dump(manifest))
    return folder


def test_each_level_opens_its_own_network(bundle: Path) -> None:
    for level, size in SIZES.items():
        assert open_detector(bundle, level=level).input_size == size


def test_no_level_means_the_default_one(bundle: Path) -> None:
    assert open_detector(bundle).input_size == SIZES['large']


def test_without_a_default_the_first_level_is_it(tmp_path: Path, manifest: dict[str, Any]) -> None:
    del manifest['camera']['default']
    write(tmp_path, manifest)
    first = next(
        iter(yaml.safe_load((tmp_path / 'manifest.yaml').read_text())['camera']['levels'])
    )
    assert load_bundle(tmp_path).default == first


def test_the_levels_of_a_bundle_are_listed(bundle: Path) -> None:
    levels, default = model_levels(bundle)
    assert set(levels) == {'small', 'large'}
    assert default == 'large'


def test_an_unknown_level_is_told_the_nearest(bundle: Path) -> None:
    with pytest.raises(EncodingError, match="has no level 'smal'; the nearest is 'small'"):
        open_detector(bundle, level='smal')


def test_a_plain_file_serves_every_level(tmp_path: Path) -> None:
    path = write_tiny_detector(tmp_path / 'tiny.onnx', 64, 64)
    assert model_levels(path) == ((), '')
    for level in ('', 'small', 'anything'):
        assert open_detector(path, level=level).input_size == (64, 64)


def test_the_parameters_reach_the_detector(bundle: Path) -> None:
    with pytest.raises(EncodingError, match="no label 'dog'"):
        open_detector(bundle, DetectorParameters(labels=('dog',)))


def test_the_device_reaches_the_detector(bundle: Path) -> None:
    with pytest.raises(EncodingError, match="unknown device 'gpu'"):
        open_detector(bundle, device='gpu')


def test_entries_for_others_are_left_alone(tmp_path: Path, manifest: dict[str, Any]) -> None:
    manifest['metrics'] = {'map50': 0.7}
    manifest['camera']['levels']['small']['input_size'] = [64, 64]
    assert load_bundle(write(tmp_path, manifest)).name == 'tiny'


def test_changed_weights_are_refused(bundle: Path) -> None:
    path = bundle / 'small.onnx'
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(EncodingError, match=r'small\.onnx has SHA-256 .* manifest\.yaml says'):
        open_detector(bundle, level='small')
    assert open_detector(bundle, level='large').input_size == SIZES['large']


def test_cut_weights_are_told_by_their_size(bundle: Path) -> None:
    path = bundle / 'small.onnx'
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(EncodingError, match=r'has 100 bytes, manifest\.yaml says .* Git LFS'):
        open_detector(bundle, level='small')


def test_missing_weights_are_named(bundle: Path) -> None:
    (bundle / 'small.onnx').unlink()
    with pytest.raises(EncodingError, match=r'small\.onnx do not exist'):
        open_detector(bundle, level='small')


def test_weights_that_are_links_are_followed(tmp_path: Path, manifest: dict[str, Any]) -> None:
    elsewhere = tmp_path / 'source'
    elsewhere.mkdir()
    (tmp_path / 'small.onnx').rename(elsewhere / 'small.onnx')
    (tmp_path / 'small.onnx').symlink_to(elsewhere / 'small.onnx')
    bundle = write(tmp_path, manifest)
    assert open_detector(bundle, level='small').input_size == SIZES['small']


@pytest.mark.parametrize(
    'name', ['/etc/passwd', '../other.onnx', 'a/../../b.onnx', 'a\\b.onnx', 'a\0b.onnx']
)
def test_weights_outside_the_folder_are_refused(
    tmp_path: Path, manifest: dict[str, Any], name: str
) -> None:
    manifest['camera']['levels']['small']['weights'] = name
    with pytest.raises(EncodingError, match=r'camera\.levels\.small\.weights .*leaves the bundle'):
        load_bundle(write(tmp_path, manifest))


@pytest.mark.parametrize(
    ('entry', 'value', 'message'),
    [
        ('weights', None, r'camera\.levels\.small\.weights None'),
        ('weights', 5, r'camera\.levels\.small\.weights 5'),
        ('sha256', 'abc', r"sha256 'abc'; it must be 64 hexadecimal digits"),
        ('sha256', 12, r'camera\.levels\.small\.sha256 12'),
        ('bytes', -1, r'bytes -1; it must be a number above 0'),
        ('bytes', True, r'bytes True; it must be a number above 0'),
        ('bytes', 'many', r"bytes 'many'; it must be a number above 0"),
    ],
)
def test_a_wrong_entry_of_a_level_is_named(
    tmp_path: Path, manifest: dict[str, Any], entry: str, value: object, message: str
) -> None:
    manifest['camera']['levels']['small'][entry] = value
    with pytest.raises(EncodingError, match=message):
        load_bundle(write(tmp_path, manifest))


@pytest.mark.parametrize(
    ('change', 'message'),
    [
        ({'name': None}, 'has name None'),
        ({'camera': None}, 'no mapping from names for camera'),
        ({'camera': {'levels': []}}, r'no mapping from names for camera\.levels'),
        ({'camera': {'levels': {}}}, 'has no level'),
        ({'camera': {'levels': {1: {}}}}, r'no mapping from names for camera\.levels'),
        ({'camera': {'levels': {'small': 'a.onnx'}}}, r'for camera\.levels\.small'),
    ],
)
def test_a_wrong_manifest_is_told_where(
    tmp_path: Path, manifest: dict[str, Any], change: dict[str, object], message: str
) -> None:
    with pytest.raises(EncodingError, match=message):
        load_bundle(write(tmp_path, {**manifest, **change}))


@pytest.mark.parametrize('default', ['medium', ['small'], {'small': 1}, 3])
def test_a_default_that_is_no_level_is_refused(
    tmp_path: Path, manifest: dict[str, Any], default: object
) -> None:
    manifest['camera']['default'] = default
    with pytest.raises(EncodingError, match=r'camera\.default'):
        load_bundle(write(tmp_path, manifest))


def test_a_folder_without_a_manifest_is_no_bundle(tmp_path: Path) -> None:
    with pytest.raises(EncodingError, match=r'is no model bundle: it has no manifest\.yaml'):
        open_detector(tmp_path)


def test_a_manifest_that_is_a_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / 'manifest.yaml').mkdir()
    with pytest.raises(EncodingError, match='is no model bundle'):
        load_bundle(tmp_path)


def test_a_huge_manifest_is_not_read(tmp_path: Path) -> None:
    (tmp_path / 'manifest.yaml').write_bytes(b' ' * (2 << 20))
    with pytest.raises(EncodingError, match='larger than 1 MiB'):
        load_bundle(tmp_path)


@pytest.mark.parametrize(
    'content',
    [b'', b'[', b'a: [', b'2001-99-99', b'\xff\xfe\x00', b'{a: 1, a: 2}', b'[' * 5000, b'&a [*a]'],
)
def test_a_manifest_that_is_no_mapping_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / 'manifest.yaml').write_bytes(content)
    with pytest.raises(EncodingError, match=r'manifest\.yaml'):
        load_bundle(tmp_path)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.one_of(st.binary(max_size=200), st.text(max_size=200).map(str.encode)))
def test_any_bytes_as_a_manifest_give_the_planned_error(tmp_path: Path, content: bytes) -> None:
    (tmp_path / 'manifest.yaml').write_bytes(content)
    with pytest.raises(EncodingError):
        load_bundle(tmp_path)


def domain_bundle(folder: Path, domain: str) -> Path:
    folder.mkdir()
    (folder / MANIFEST).write_text(
        f'name: walkers\n{domain}\ncamera: {{levels: {{small: {{weights: w.onnx, sha256: '
        f'"{"0" * 64}"}}}}}}\n'
    )
    return folder


@pytest.mark.parametrize('simulated', [False, True])
@pytest.mark.parametrize('domain', ['domain: simulated', 'domain: real', ''])
def test_only_real_pictures_for_a_detector_that_saw_simulated_ones_are_warned_of(
    tmp_path: Path, domain: str, simulated: bool
) -> None:
    warning = domain_warning(domain_bundle(tmp_path / 'bundle', domain), simulated)
    assert bool(warning) == (domain == 'domain: simulated' and not simulated)
    if warning:
        assert "'walkers' has only ever seen simulated people" in warning
        assert 'mmedge model fetch' in warning


def test_of_a_plain_weight_file_nobody_knows(tmp_path: Path) -> None:
    assert domain_warning(tmp_path / 'weights.onnx', source_is_simulated=False) == ''


@pytest.mark.parametrize('domain', ['domain: dreamt', 'domain: 3', 'domain:'])
def test_a_domain_that_is_none_is_refused(tmp_path: Path, domain: str) -> None:
    with pytest.raises(EncodingError, match='domain'):
        load_bundle(domain_bundle(tmp_path / 'bundle', domain))


def test_the_rest_of_a_manifest_is_kept_for_others(tmp_path: Path) -> None:
    bundle = load_bundle(domain_bundle(tmp_path / 'bundle', 'metrics: {map50: 0.7}'))
    assert bundle.content['metrics'] == {'map50': 0.7}
    assert bundle.domain == ''
