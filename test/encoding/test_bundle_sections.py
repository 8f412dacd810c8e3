"""What a manifest says beyond one graph per camera level: stages, radar, grids, fusion."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tiny_stages import write_grid_bundle

from mmedge_ros.core.data_types import CAMERA, RADAR
from mmedge_ros.encoding import EncodingError
from mmedge_ros.encoding.bundle.manifest import MANIFEST
from mmedge_ros.encoding.bundle.model_bundle import FUSION_PARTS, load_bundle

FILE = {'weights': 'a.onnx', 'sha256': '0' * 64}


@pytest.fixture(scope='module')
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_grid_bundle(tmp_path_factory.mktemp('bundle'))


def changed(bundle: Path, folder: Path, **changes: Any) -> Path:
    """Write a manifest with other sections, of files that are not there."""
    content = {**yaml.safe_load((bundle / MANIFEST).read_text()), **changes}
    (folder / MANIFEST).write_text(yaml.safe_dump(content))
    return folder


def test_all_parts_of_a_bundle_are_found(bundle: Path) -> None:
    found = load_bundle(bundle)
    assert (found.levels, found.radar_levels) == (('small',), ('small',))
    assert [p.name for p in found.camera_stages()] == [f'small_{n}.onnx' for n in (1, 2, 3)]
    assert found.radar_stages() == (bundle / 'radar.onnx',)
    assert found.embedding(CAMERA) == bundle / 'embed_camera.onnx'
    assert found.embedding(RADAR) == bundle / 'embed_radar.onnx'
    assert found.has_fusion
    assert found.has_grid
    assert found.fusion_part('fuse') == bundle / 'radar.onnx'
    assert found.fusion_threshold == 0.25
    assert len(list(found.files())) == 3 + 1 + 2 + len(FUSION_PARTS)


def test_a_bundle_of_detectors_only_has_no_other_parts(bundle: Path, tmp_path: Path) -> None:
    content = {'name': 'plain', 'camera': {'levels': {'small': FILE}}}
    (tmp_path / MANIFEST).write_text(yaml.safe_dump(content))
    found = load_bundle(tmp_path)
    assert (found.radar_levels, found.has_fusion, found.has_grid) == ((), False, False)
    assert found.embedding(CAMERA) is None
    with pytest.raises(EncodingError, match="no radar level ''; it has none"):
        found.radar_stages()
    with pytest.raises(EncodingError, match="no fusion part 'fuse'"):
        found.fusion_part('fuse')


def test_a_level_of_stages_is_no_single_file(bundle: Path) -> None:
    with pytest.raises(EncodingError, match=r"level 'small' .* consists of 3 stages"):
        load_bundle(bundle).weights()


def test_an_unknown_radar_level_is_told_the_nearest(bundle: Path) -> None:
    with pytest.raises(EncodingError, match="no radar level 'smal'; the nearest is 'small'"):
        load_bundle(bundle).radar_stages('smal')


def test_files_are_looked_at_only_when_they_are_asked_for(bundle: Path, tmp_path: Path) -> None:
    found = load_bundle(changed(bundle, tmp_path))
    for ask in (
        found.camera_stages,
        found.radar_stages,
        lambda: found.embedding(RADAR),
        lambda: found.fusion_part('project_radar'),
    ):
        with pytest.raises(EncodingError, match='do not exist'):
            ask()


@pytest.mark.parametrize(
    ('changes', 'message'),
    [
        ({'grid': {'format': 2}}, r"grid\.format '2', this version reads 1"),
        ({'grid': {'format': True}}, r"grid\.format 'True'"),
        ({'grid': {}}, r"grid\.format 'None'"),
        ({'grid': 3}, 'no mapping from names for grid'),
        ({'radar': None}, 'no mapping from names for radar'),
        ({'radar': {'levels': {}}}, r'no level under radar\.levels'),
        ({'radar': {'default': 'huge', 'levels': {'small': FILE}}}, r"radar\.default 'huge'"),
        ({'radar': {'levels': {'small': {**FILE, 'bytes': 0}}}}, r'small\.bytes 0'),
        ({'embedding': {'camera': 'a.onnx'}}, r'for embedding\.camera'),
        ({'embedding': {'radar': {**FILE, 'weights': '../a.onnx'}}}, 'leaves the bundle'),
        ({'fusion': {'format': 2, 'fuse': FILE, 'threshold': 0.1}}, r'for fusion\.project_camera'),
        (
            {'fusion': dict.fromkeys(FUSION_PARTS, FILE)},
            "fusion of format '1', this version reads 2",
        ),
        ({'fusion': {'format': True}}, "fusion of format 'True'"),
        ({'fusion': {'format': [3]}}, r"format '\[3\]'.* train it again .*or remove the fusion"),
        ({'camera': {'levels': {'small': {'stages': []}}}}, r"small\.stages '\[\]'"),
        ({'camera': {'levels': {'small': {'stages': FILE}}}}, r'small\.stages .*must be a list'),
        ({'camera': {'levels': {'small': {'stages': [FILE] * 33}}}}, 'a list of 1 to 32'),
        ({'camera': {'levels': {'small': {'stages': ['a']}}}}, r'for .*small\.stages\.0'),
        (
            {'camera': {'levels': {'small': {'stages': [FILE, {**FILE, 'sha256': 'x'}]}}}},
            r'small\.stages\.1\.sha256',
        ),
        (
            {'camera': {'levels': {'small': {**FILE, 'stages': [FILE]}}}},
            'both weights and stages',
        ),
    ],
)
def test_a_wrong_section_is_told_where(
    bundle: Path, tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(EncodingError, match=message):
        load_bundle(changed(bundle, tmp_path, **changes))


@pytest.mark.parametrize('threshold', [None, 'high', True, -0.1, 1.5, float('nan'), [0.5]])
def test_a_threshold_that_is_no_share_is_refused(
    bundle: Path, tmp_path: Path, threshold: object
) -> None:
    parts = {'format': 2, **dict.fromkeys(FUSION_PARTS, FILE)}
    with pytest.raises(EncodingError, match=r'fusion\.threshold .*from 0 to 1'):
        load_bundle(changed(bundle, tmp_path, fusion={**parts, 'threshold': threshold}))


@pytest.mark.parametrize('section', ['embedding', 'fusion'])
def test_what_reads_grids_needs_levels_that_put_them_out(
    bundle: Path, tmp_path: Path, section: str
) -> None:
    content = yaml.safe_load((bundle / MANIFEST).read_text())
    del content['grid'], content['fusion' if section == 'embedding' else 'embedding']
    (tmp_path / MANIFEST).write_text(yaml.safe_dump(content))
    with pytest.raises(EncodingError, match=f'has {section}, but no grid'):
        load_bundle(tmp_path)


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


@settings(
    deadline=None,
    max_examples=60,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.sampled_from(('camera', 'radar', 'grid', 'embedding', 'fusion')), PLAIN)
def test_any_content_of_a_section_is_read_or_refused_in_words(
    bundle: Path, tmp_path: Path, section: str, content: object
) -> None:
    changed(bundle, tmp_path, **{section: content})
    with contextlib.suppress(EncodingError):
        assert load_bundle(tmp_path).levels
