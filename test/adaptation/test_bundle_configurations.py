from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from mmedge_ros.adaptation.bundle_configurations import bundle_levels, bundle_space, manifest_of
from mmedge_ros.encoding import EncodingError

RATES = {'camera': (10.0, 30.0), 'radar': (5.0, 20.0)}


def bundle(folder: Path, camera: tuple[str, ...], radar: tuple[str, ...] = ()) -> Path:
    entry = {'weights': 'x.onnx', 'sha256': '0' * 64}
    content = {'name': 'x', 'camera': {'levels': dict.fromkeys(camera, entry)}}
    if radar:
        content['radar'] = {'default': radar[0], 'levels': dict.fromkeys(radar, entry)}
    folder.mkdir(exist_ok=True)
    (folder / 'manifest.yaml').write_text(yaml.safe_dump(content, sort_keys=False))
    return folder


def test_levels_are_listed_from_the_cheapest(tmp_path: Path) -> None:
    model = bundle(tmp_path, ('large', 'small', 'medium'), ('small', 'large'))
    assert bundle_levels(model, 'camera') == ('small', 'medium', 'large')
    space = bundle_space(model, ('camera', 'radar'), RATES)
    assert len(space) == 2 * 3 * 2 * 2
    assert space.parts(0)[0].device == ''


def test_a_modality_without_networks_has_one_nameless_level(tmp_path: Path) -> None:
    assert bundle_levels(bundle(tmp_path, ('small',)), 'radar') == ('',)


def test_a_plain_weight_file_has_no_levels(tmp_path: Path) -> None:
    model = tmp_path / 'x.onnx'
    model.write_bytes(b'')
    assert len(bundle_space(model, ('camera', 'radar'), RATES)) == 4
    assert manifest_of(model) == {}


def test_a_folder_that_is_no_bundle_is_refused(tmp_path: Path) -> None:
    with pytest.raises(EncodingError, match='no model bundle'):
        bundle_space(tmp_path, ('camera',), RATES)
