"""Fusion networks opened from files, which may be anything."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx import TensorProto
from tiny_fusion import CHANNELS, Files, write_change, write_head, write_project, write_tiny_fusion

from mmedge_ros.core.data_types import CAMERA, RADAR
from mmedge_ros.encoding import EncodingError
from mmedge_ros.encoding.bundle.manifest import BundleFile
from mmedge_ros.encoding.bundle.model_bundle import FUSION_PARTS, Levels, ModelBundle
from mmedge_ros.windows import AggregationError
from mmedge_ros.windows.fusion_runtime import FusionNetworkRuntime
from mmedge_ros.windows.streaming_aggregator import WindowState

MS = 1_000_000


def grid(modality: str, value: float) -> np.ndarray:
    return np.full((CHANNELS[modality], 2, 2), value, np.float16)


def stepped(
    runtime: FusionNetworkRuntime, end_ns: int, *units: tuple[str, float, int]
) -> dict[str, WindowState]:
    """The states of a window that was given units: modality, value and stamp."""
    states = {name: steps.begin(end_ns) for name, steps in runtime.aggregators.items()}
    for modality, value, stamp_ns in units:
        steps = runtime.aggregators[modality]
        unit = steps.unit(grid(modality, value))
        states[modality] = steps.step(states[modality], unit, stamp_ns)
    return states


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return write_tiny_fusion(tmp_path)


def test_units_of_both_modalities_are_stepped_apart_and_fused(files: Files) -> None:
    runtime = FusionNetworkRuntime(files)
    states = stepped(
        runtime,
        500 * MS,
        (CAMERA, 1.0, 400 * MS),
        (RADAR, 1.0, 300 * MS),
        (CAMERA, 2.0, 450 * MS),
    )
    maps = runtime.fuse(states)
    assert maps.shape == (54, 2, 2)
    # 3 channels of 4 cells with the mean of 1 and 2, and ten times 2 channels of 4 cells with 1
    assert (maps == 3 * 4 * 1.5 + 10 * 2 * 4).all()
    result = runtime.finish(states)
    assert (result[CAMERA].pooled == 1.5).all()
    assert (result[CAMERA].newest == 2.0).all()
    assert [(part.present, part.count) for part in result.values()] == [(True, 2), (True, 1)]
    assert [part.age for part in result.values()] == pytest.approx([0.05, 0.2])


def bundle_of(files: Files) -> ModelBundle:
    entries = {
        name: BundleFile(path, hashlib.sha256(path.read_bytes()).hexdigest(), None)
        for name, path in files.items()
    }
    return ModelBundle('tiny', files['fuse'].parent, Levels(), fusion=entries)


def test_the_networks_of_a_bundle_are_those_of_its_manifest(files: Files) -> None:
    bundle = bundle_of(files)
    runtime = FusionNetworkRuntime.from_bundle(bundle)
    assert set(runtime.aggregators) == {CAMERA, RADAR}
    files['fuse'].write_bytes(b'\0' + files['fuse'].read_bytes())
    with pytest.raises(EncodingError, match='SHA-256'):
        FusionNetworkRuntime.from_bundle(bundle)
    with pytest.raises(EncodingError, match="no fusion part 'project_camera'"):
        FusionNetworkRuntime.from_bundle(replace(bundle, fusion={}))


# ------------------------------------------------------------------------------ hostile files


@pytest.mark.parametrize('which', FUSION_PARTS)
def test_a_file_that_is_missing_or_no_network_is_named(files: Files, which: str) -> None:
    files[which].write_text('no network')
    with pytest.raises(EncodingError, match=rf'{files[which].name} cannot be opened'):
        FusionNetworkRuntime(files)
    files[which].unlink()
    with pytest.raises(EncodingError, match=rf'{files[which].name} do not exist'):
        FusionNetworkRuntime(files)


@pytest.mark.parametrize(
    ('options', 'message'),
    [
        ({'grid': 'picture'}, r'it takes a grid of \[\] and makes a unit of \[1, 3, 2, 2\]'),
        ({'batch': 2}, r'it takes a grid of \[2, 3, 2, 2\]'),
        ({'batch': 'n'}, r'of fixed shape and at most'),
        ({'kind': TensorProto.DOUBLE}, r'tensor\(double\) .* are float32'),
        ({'others': 1}, r"'others' has the shape \[1, 3, 2, 2\], it must have \[2, 3, 2, 2\]"),
    ],
)
def test_a_projection_of_another_interface_is_refused(
    files: Files, options: dict, message: str
) -> None:
    write_project(files['project_camera'], 3, **options)
    with pytest.raises(AggregationError, match=message) as caught:
        FusionNetworkRuntime(files)
    assert str(files['project_camera']) in str(caught.value)


@pytest.mark.parametrize(
    'note',
    [
        '',
        '{',
        '[' * 90_000,
        '7',
        '{"decays": [0, 0, 0]}',
        '{"decays": [0, 0, 0], "newest_only": 1}',
        '{"decays": [0, 0], "newest_only": true}',
        '{"decays": [0, 0, -1], "newest_only": true}',
        '{"decays": [0, 0, NaN], "newest_only": true}',
        '{"decays": [0, 0, true], "newest_only": true}',
        '{"decays": [0, 0, 1e400], "newest_only": true}',
        '{"decays": [0, 0, ' + '9' * 200_000 + '], "newest_only": true}',
    ],
    ids=range(12),
)
def test_a_projection_must_say_how_windows_are_pooled(files: Files, note: str) -> None:
    write_project(files['project_camera'], 3, note=note)
    with pytest.raises(AggregationError, match=r"its note 'pooling' is .*3 decays") as caught:
        FusionNetworkRuntime(files)
    assert len(str(caught.value)) < 500


def test_what_compares_units_must_take_those_of_the_projection(files: Files) -> None:
    write_change(files['change_radar_2'], CHANNELS[CAMERA])
    message = r"change_radar_2.*'unit' has the shape \[1, 3, 2, 2\], it must have \[1, 2, 2, 2\]"
    with pytest.raises(AggregationError, match=message):
        FusionNetworkRuntime(files)
    write_change(files['change_radar_2'], CHANNELS[RADAR], earlier='later')
    with pytest.raises(AggregationError, match="takes 'later', of which nothing is known"):
        FusionNetworkRuntime(files)


@pytest.mark.parametrize(
    ('options', 'message'),
    [
        ({'maps': 48}, r"'maps' has the shape \[1, 48, 2, 2\], it must have \[1, 54, 2, 2\]"),
        ({'camera': 5}, r"'camera_pooled' has the shape \[1, 5, 2, 2\], it must have \[1, 3"),
        ({'facts': 'rumours'}, "it takes 'camera_rumours', of which nothing is known"),
    ],
)
def test_a_head_that_does_not_fit_the_aggregators_is_refused(
    files: Files, options: dict, message: str
) -> None:
    write_head(files['fuse'], **options)
    with pytest.raises(AggregationError, match=message):
        FusionNetworkRuntime(files)


@settings(
    deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(which=st.sampled_from(FUSION_PARTS), place=st.floats(0.0, 0.999), byte=st.integers(0, 255))
def test_a_damaged_file_is_refused_or_works(
    tmp_path: Path, which: str, place: float, byte: int
) -> None:
    files = write_tiny_fusion(tmp_path)
    content = bytearray(files[which].read_bytes())
    content[int(place * len(content))] = byte
    files[which].write_bytes(content)
    message = str(tmp_path)
    try:
        runtime = FusionNetworkRuntime(files)
        runtime.fuse(stepped(runtime, 0, (CAMERA, 1.0, 0), (RADAR, 1.0, 0)))
    except EncodingError as err:
        message = str(err)
    assert str(tmp_path) in message
