"""Camera levels made of stages, opened from a bundle."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tiny_stages import (
    BOX,
    file_entry,
    write_camera_stages,
    write_embedding,
    write_grid_bundle,
)

from mmedge_ros.encoding import EncodingError
from mmedge_ros.encoding.bundle.model_bundle import open_detector
from mmedge_ros.encoding.detector import DetectorParameters
from mmedge_ros.encoding.onnx_detector import OnnxDetector

GREY = np.full((480, 640, 3), 51, np.uint8)


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    return write_grid_bundle(tmp_path)


def test_a_level_of_stages_yields_detections_grid_and_embedding(bundle: Path) -> None:
    found = open_detector(bundle).detect(GREY)
    assert [(d.label, tuple(d.box)) for d in found.detections] == [('person', BOX)]
    assert (found.grid.shape, found.grid.dtype) == ((64, 30, 40), np.float16)
    np.testing.assert_allclose(found.grid, 9 * 0.2, rtol=1e-2)
    assert (found.embedding.shape, found.embedding.dtype) == ((32,), np.float32)
    np.testing.assert_allclose(found.embedding, 9 * 0.2, rtol=1e-2)


def test_without_a_network_for_it_the_embedding_is_empty(tmp_path: Path) -> None:
    bundle = write_grid_bundle(tmp_path, embedding=None)
    assert open_detector(bundle).detect(GREY).embedding.shape == (0,)


def test_a_picture_can_be_left_and_taken_up_again(bundle: Path) -> None:
    detector = open_detector(bundle)
    assert isinstance(detector, OnnxDetector)
    assert detector.blocks == 3
    work = detector.advance(detector.begin(GREY))
    assert work.state.block == 2
    other = detector.detect(np.zeros_like(GREY))
    assert not other.grid.any()
    found = detector.finish(work)
    np.testing.assert_array_equal(found.grid, detector.detect(GREY).grid)
    assert found.detections == detector.detect(GREY).detections


def test_a_wide_picture_lies_in_the_middle_of_the_grid(bundle: Path) -> None:
    wide = np.full((360, 1280, 3), 255, np.uint8)
    grid = open_detector(bundle).detect(wide).grid
    # 640 x 180 of the canvas: rows 150 to 330 px
    np.testing.assert_allclose(grid[0, 10:20], 9.0, rtol=1e-2)
    np.testing.assert_allclose(grid[0, :9], 9.0 * 114 / 255, rtol=1e-2)


def test_a_grid_that_is_not_the_promised_one_is_refused(tmp_path: Path) -> None:
    stages = [file_entry(path) for path in write_camera_stages(tmp_path, 'other', rows=29)]
    camera = {'levels': {'small': {'stages': stages}}}
    bundle = write_grid_bundle(tmp_path, camera=camera)
    with pytest.raises(EncodingError, match=r'a grid of \[64, 29, 40\], its bundle promises'):
        open_detector(bundle)
    assert open_detector(
        write_grid_bundle(tmp_path, camera=camera, grid=None, embedding=None, fusion=None)
    ).detect(GREY).grid.shape == (64, 29, 40)


def test_an_embedding_of_another_length_is_refused(tmp_path: Path) -> None:
    short = file_entry(write_embedding(tmp_path / 'short.onnx', 64, size=31))
    bundle = write_grid_bundle(tmp_path, embedding={'camera': short})
    with pytest.raises(EncodingError, match=r'an embedding of 31 values; it must have 32'):
        open_detector(bundle)


def test_a_stage_that_was_changed_is_refused(bundle: Path) -> None:
    path = bundle / 'small_2.onnx'
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(EncodingError, match=r'small_2\.onnx has SHA-256 .* manifest\.yaml says'):
        open_detector(bundle)


def test_the_parameters_reach_a_level_of_stages(bundle: Path) -> None:
    parameters = DetectorParameters(score_threshold=0.95)
    assert open_detector(bundle, parameters).detect(GREY).detections == ()
