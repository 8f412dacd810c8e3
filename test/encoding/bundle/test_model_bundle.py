"""What manifests say: levels, stages, radar, grids, fusion; and the choice of a network."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tiny_detector import write_tiny_detector
from tiny_stages import write_grid_bundle

from mmedge_ros.core.data_types import CAMERA, RADAR
from mmedge_ros.encoding import EncodingError
from mmedge_ros.encoding.bundle.manifest import MANIFEST
from mmedge_ros.encoding.bundle.model_bundle import (
    FUSION_PARTS,
    domain_warning,
    load_bundle,
    model_levels,
    open_detector,
)
from mmedge_ros.encoding.bundle.weights import sha256_of
from mmedge_ros.encoding.detector import DetectorParameters

SIZES = {'small': (64, 64), 'large': (128, 96)}
FILE = {'weights': 'a.onnx', 'sha256': '0' * 64}


def write(folder: Path, manifest: object) -> Path:
    (folder / MANIFEST).write_text(yaml.safe_dump(manifest))
    return folder


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    """A bundle of two levels in tmp_path."""
    levels = {}
    for level, (width, height) in SIZES.items():
        path = write_tiny_detector(tmp_path / f'{level}.onnx', width, height)
        size = path.stat().st_size
        levels[level] = {'weights': path.name, 'sha256': sha256_of(path), 'bytes': size}
    return write(tmp_path, {'name': 'tiny', 'camera': {'default': 'large', 'levels': levels}})


@pytest.fixture(scope='module')
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle with all parts."""
    return write_grid_bundle(tmp_path_factory.mktemp('bundle'))


def changed(bundle: Path, folder: Path, **changes: Any) -> Path:
    """Write a manifest with other sections, of files that are not there."""
    return write(folder, {**yaml.safe_load((bundle / MANIFEST).read_text()), **changes})


def test_each_level_opens_its_own_network_and_none_means_the_default_one(plain: Path) -> None:
    for level, size in {**SIZES, '': SIZES['large']}.items():
        assert open_detector(plain, level=level).input_size == size
    with pytest.raises(EncodingError, match="has no level 'smal'; the nearest is 'small'"):
        open_detector(plain, level='smal')


def test_a_plain_file_serves_every_level(tmp_path: Path) -> None:
    path = write_tiny_detector(tmp_path / 'tiny.onnx', 64, 64)
    assert model_levels(path) == ((), '')
    assert open_detector(path, level='anything').input_size == (64, 64)
    assert domain_warning(path, source_is_simulated=False) == ''


@pytest.mark.parametrize(('asked', 'kept'), [('person', 'person'), ('pedestrian', 'pedestrian')])
def test_pedestrians_of_a_plain_file_are_persons_unless_asked_for(
    tmp_path: Path, asked: str, kept: str
) -> None:
    path = write_tiny_detector(tmp_path / 'tiny.onnx', 64, 64, label='pedestrian')
    assert open_detector(path, DetectorParameters(labels=(asked,))).labels == (kept,)


def test_changed_and_cut_weights_are_refused(plain: Path) -> None:
    path = plain / 'small.onnx'
    content = path.read_bytes()
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(EncodingError, match=r'small\.onnx has SHA-256 .* manifest\.yaml says'):
        open_detector(plain, level='small')
    path.write_bytes(content[:100])
    with pytest.raises(EncodingError, match=r'has 100 bytes, manifest\.yaml says .* Git LFS'):
        open_detector(plain, level='small')
    assert open_detector(plain, level='large').input_size == SIZES['large']


def test_all_parts_of_a_bundle_are_found(whole: Path) -> None:
    found = load_bundle(whole)
    assert (found.levels, found.radar_levels) == (('small',), ('small',))
    assert [p.name for p in found.camera_stages()] == [f'small_{n}.onnx' for n in (1, 2, 3)]
    assert found.radar_stages() == (whole / 'radar.onnx',)
    assert found.embedding(CAMERA) == whole / 'embed_camera.onnx'
    assert found.embedding(RADAR) == whole / 'embed_radar.onnx'
    assert found.has_fusion
    assert found.has_grid
    assert found.fusion_part('fuse') == whole / 'radar.onnx'
    assert found.fusion_threshold == 0.25
    assert len(list(found.files())) == 3 + 1 + 2 + len(FUSION_PARTS)


def test_a_bundle_of_detectors_only_has_no_other_parts(tmp_path: Path) -> None:
    found = load_bundle(write(tmp_path, {'name': 'a', 'camera': {'levels': {'small': FILE}}}))
    assert (found.radar_levels, found.has_fusion, found.has_grid) == ((), False, False)
    assert found.embedding(CAMERA) is None
    with pytest.raises(EncodingError, match="no radar level ''; it has none"):
        found.radar_stages()
    with pytest.raises(EncodingError, match="no fusion part 'fuse'"):
        found.fusion_part('fuse')


def test_files_are_looked_at_only_when_they_are_asked_for(whole: Path, tmp_path: Path) -> None:
    found = load_bundle(changed(whole, tmp_path))
    for ask in (
        found.camera_stages,
        found.radar_stages,
        lambda: found.embedding(RADAR),
        lambda: found.fusion_part('project_radar'),
    ):
        with pytest.raises(EncodingError, match='do not exist'):
            ask()


def camera(**entry: Any) -> dict[str, Any]:
    return {'camera': {'levels': {'small': entry}}}


@pytest.mark.parametrize(
    ('changes', 'message'),
    [
        ({'name': None}, 'has name None'),
        ({'domain': 'dreamt'}, "domain 'dreamt'; it must be 'real', 'simulated' or 'real and"),
        ({'camera': {'levels': {}}}, 'has no level'),
        ({'camera': {'levels': {1: {}}}}, r'no mapping from names for camera\.levels'),
        ({'camera': {'default': ['a'], 'levels': {'a': FILE}}}, r'camera\.default'),
        (camera(**{**FILE, 'weights': 5}), r'camera\.levels\.small\.weights 5'),
        (camera(**{**FILE, 'weights': '/etc/passwd'}), 'leaves the bundle'),
        (camera(**{**FILE, 'weights': 'a/../../b.onnx'}), 'leaves the bundle'),
        (camera(**{**FILE, 'weights': 'a\\b.onnx'}), 'leaves the bundle'),
        (camera(**{**FILE, 'sha256': 'abc'}), "sha256 'abc'; it must be 64 hexadecimal digits"),
        (camera(**{**FILE, 'bytes': True}), r'bytes True; it must be a number above 0'),
        (camera(**FILE, tiles=3), r'camera\.levels\.small\.tiles 3; it must be 1 or 2'),
        (camera(**FILE, tiles=True), r'small\.tiles True'),
        (camera(stages=[]), r"small\.stages '\[\]'"),
        (camera(stages=[FILE] * 33), 'a list of 1 to 32'),
        (camera(stages=[FILE, {**FILE, 'sha256': 'x'}]), r'small\.stages\.1\.sha256'),
        (camera(**FILE, stages=[FILE]), 'both weights and stages'),
        ({'radar': {'default': 'huge', 'levels': {'small': FILE}}}, r"radar\.default 'huge'"),
        ({'grid': {'format': True}}, r'grid\.format True, this version reads 1'),
        ({'embedding': {'camera': 'a.onnx'}}, r'for embedding\.camera'),
        ({'fusion': {'format': 2, 'fuse': FILE, 'threshold': 0.1}}, r'for fusion\.project_camera'),
        ({'fusion': dict.fromkeys(FUSION_PARTS, FILE)}, r'fusion\.format None, .* reads 2'),
        ({'fusion': {'format': [3]}}, r'format \[3\].* train it again .*or remove the fusion'),
    ],
)
def test_a_wrong_entry_is_told_where(
    whole: Path, tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(EncodingError, match=message):
        load_bundle(changed(whole, tmp_path, **changes))


@pytest.mark.parametrize('threshold', [None, True, -0.1, 1.5, float('nan'), [0.5]])
def test_a_threshold_that_is_no_share_is_refused(
    whole: Path, tmp_path: Path, threshold: object
) -> None:
    parts = {'format': 2, **dict.fromkeys(FUSION_PARTS, FILE)}
    with pytest.raises(EncodingError, match=r'fusion\.threshold .*from 0 to 1'):
        load_bundle(changed(whole, tmp_path, fusion={**parts, 'threshold': threshold}))


@pytest.mark.parametrize('section', ['embedding', 'fusion'])
def test_what_reads_grids_needs_levels_that_put_them_out(
    whole: Path, tmp_path: Path, section: str
) -> None:
    content = yaml.safe_load((whole / MANIFEST).read_text())
    del content['grid'], content['fusion' if section == 'embedding' else 'embedding']
    with pytest.raises(EncodingError, match=f'has {section}, but no grid'):
        load_bundle(write(tmp_path, content))


@pytest.mark.parametrize(
    ('content', 'words'),
    [
        (None, r'is no model bundle: it has no manifest\.yaml'),
        (b' ' * (2 << 20), 'larger than 1048576 bytes'),
        (b'[' * 5000, r'manifest\.yaml'),
    ],
)
def test_what_is_no_manifest_is_refused(tmp_path: Path, content: bytes | None, words: str) -> None:
    if content is not None:
        (tmp_path / MANIFEST).write_bytes(content)
    with pytest.raises(EncodingError, match=words):
        load_bundle(tmp_path)


SHARED_FOLDER = [HealthCheck.function_scoped_fixture]


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(('levels', 'default', 'stages', 'weights', 'sha256', 'small', 'x')),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@settings(deadline=None, max_examples=60, suppress_health_check=SHARED_FOLDER)
@given(st.sampled_from(('camera', 'radar', 'grid', 'embedding', 'fusion')), PLAIN)
def test_any_content_of_a_section_is_read_or_refused_in_words(
    whole: Path, tmp_path: Path, section: str, content: object
) -> None:
    changed(whole, tmp_path, **{section: content})
    with contextlib.suppress(EncodingError):
        assert load_bundle(tmp_path).levels


def test_who_learned_from_both_is_no_match_for_eye_level(tmp_path: Path) -> None:
    content = {'name': 'walkers', **camera(**FILE), 'domain': 'real and simulated'}
    place = write(tmp_path, content)
    assert 'few real people at eye level' in domain_warning(place, False, above=False)
    assert domain_warning(place, False, above=True) == ''
    assert domain_warning(place, True, above=False) == ''


@pytest.mark.parametrize('simulated', [False, True])
@pytest.mark.parametrize('domain', ['simulated', 'real', None])
def test_only_real_pictures_for_a_detector_that_saw_simulated_ones_are_warned_of(
    tmp_path: Path, domain: str | None, simulated: bool
) -> None:
    content = {'name': 'walkers', **camera(**FILE), **({'domain': domain} if domain else {})}
    warning = domain_warning(write(tmp_path, content), simulated)
    assert bool(warning) == (domain == 'simulated' and not simulated)
    if warning:
        assert "'walkers' has only ever seen simulated people" in warning
        assert 'mmedge model fetch' in warning
