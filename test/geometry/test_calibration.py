"""Calibration files, good and hostile."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mmedge_ros.geometry import GeometryError
from mmedge_ros.geometry.calibration import read_calibration
from mmedge_ros.geometry.transforms import TransformTree

EDGE = {
    'parent': 'radar_link',
    'child': 'camera_color_optical_frame',
    'translation': [0, -0.07, -0.05],
    'rotation': [-0.5, 0.5, -0.5, 0.5],
}
CAMERA = {
    'image_width': 640,
    'image_height': 480,
    'camera_matrix': {'rows': 3, 'cols': 3, 'data': [450, 0, 320, 0, 451, 240, 0, 0, 1]},
    'distortion_model': 'plumb_bob',
    'distortion_coefficients': {'rows': 1, 'cols': 5, 'data': [0.1, -0.1, 0, 0, 0]},
}


def write(folder: Path, content: Any) -> Path:
    path = folder / 'calibration.yaml'
    path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
    return path


def test_camera_and_transforms_are_read(tmp_path: Path) -> None:
    camera, transforms, _ = read_calibration(write(tmp_path, {**CAMERA, 'transforms': [EDGE]}))
    assert camera is not None
    assert (camera.width, camera.height, camera.model) == (640, 480, 'plumb_bob')
    assert camera.k[1, 1] == 451
    assert camera.d[1] == -0.1
    seen = TransformTree(transforms).lookup('camera_color_optical_frame', 'radar_link')
    np.testing.assert_allclose(seen.apply([5.0, 0.0, 0.0]), [-0.07, -0.05, 5.0], atol=1e-12)


@pytest.mark.parametrize('part', ['camera', 'transforms'])
def test_either_part_may_be_left_out(tmp_path: Path, part: str) -> None:
    path = write(tmp_path, CAMERA if part == 'camera' else {'transforms': [EDGE]})
    camera, transforms, _ = read_calibration(path)
    assert (camera is None) == (part == 'transforms')
    assert len(transforms) == (part == 'transforms')


def test_numbers_as_numpy_prints_them_are_read(tmp_path: Path) -> None:
    text = yaml.safe_dump(CAMERA).replace('- -0.1', '- 1e-05')
    camera = read_calibration(write(tmp_path, text)).camera
    assert camera is not None
    assert camera.d[1] == 1e-05


def changed(key: str, value: Any) -> dict[str, Any]:
    return {**CAMERA, key: value}


def edge(**changes: Any) -> dict[str, Any]:
    return {'transforms': [{**EDGE, **changes}]}


@pytest.mark.parametrize(
    ('content', 'reason'),
    [
        ('', 'holds nothing.*camera_calibration'),
        ('a: [', 'not plain YAML.*camera_calibration'),
        ('%YAML:1.0\n---\nk: !!opencv-matrix\n  rows: 3', 'not plain YAML.*camera_calibration'),
        ('a: "' + 'x' * 300_000 + '"', 'larger than'),
        ('other: 1', 'neither a camera .* nor transforms'),
        ('transforms: []', 'neither a camera .* nor transforms'),
        (changed('image_width', '640'), "image_width is '640'; expected a whole number"),
        (changed('image_width', True), 'image_width is True'),
        (changed('image_width', 0), 'camera of 0 x 480 px'),
        (yaml.safe_dump(CAMERA).replace(' 640', ' 0x' + 'f' * 9000), 'image_width is a huge'),
        ('image_width: 640\nimage_height: 480', 'key camera_matrix is missing'),
        (changed('camera_matrix', [1, 2]), r'camera_matrix is \[1, 2\]; expected rows'),
        (changed('camera_matrix', {'rows': 3}), r'key camera_matrix\.data is missing'),
        (changed('camera_matrix', {'data': 'abc'}), r"camera_matrix\.data is 'abc'"),
        (changed('camera_matrix', {'data': [1] * 8}), 'has 8 numbers; expected 9'),
        (changed('camera_matrix', {'data': [0.0] * 9}), 'not calibrated'),
        (changed('camera_matrix', {'data': ['a'] * 9}), r"camera_matrix\.data\[0\] is 'a'"),
        (changed('camera_matrix', {'data': [float('nan')] * 9}), 'expected a finite number'),
        (changed('camera_matrix', {'data': [1] * 70}), 'expected a list of numbers'),
        (changed('distortion_coefficients', {'data': [None]}), r'coefficients\.data\[0\] is None'),
        (changed('distortion_model', 3), 'distortion_model is 3'),
        (changed('distortion_model', 'magic'), "'magic' is not one of"),
        ({'transforms': 5}, 'transforms is 5; expected a list'),
        ({'transforms': [1] * 1001}, 'transforms is a list of 1001'),
        ({'transforms': ['x']}, r"transforms\[0\] is 'x'"),
        ({'transforms': [{'parent': 'a'}]}, r'key transforms\[0\]\.child is missing'),
        (edge(parent=3), r'transforms\[0\]: parent and child'),
        (edge(parent=EDGE['child']), 'two different'),
        (edge(translation=[1, 2]), 'three finite numbers'),
        (edge(translation=[1, 2, True]), r'transforms\[0\]\.translation\[2\] is True'),
        (edge(rotation=[0, 0, 0, 0]), 'not a quaternion'),
        (edge(rotation=[0, 0, 1]), r'not \(x, y, z, w\)'),
        (edge(rotation=[10**400, 0, 0, 1]), r'rotation\[0\] is a huge number'),
    ],
)
def test_a_file_that_cannot_be_used_names_file_place_and_remedy(
    tmp_path: Path, content: Any, reason: str
) -> None:
    path = write(tmp_path, content)
    with pytest.raises(GeometryError, match=reason) as caught:
        read_calibration(path)
    assert str(caught.value).startswith(str(path))
    assert len(str(caught.value)) < 700


leaves = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
trees = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=8,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    key=st.sampled_from([*CAMERA, 'transforms']), inner=st.sampled_from(['', 'data']), tree=trees
)
def test_any_content_gives_a_calibration_or_the_error(
    tmp_path: Path, key: str, inner: str, tree: Any
) -> None:
    path = write(tmp_path, {**CAMERA, key: {inner: tree} if inner else tree})
    try:
        calibration = read_calibration(path)
    except GeometryError:
        return
    assert calibration.camera is not None or calibration.transforms
