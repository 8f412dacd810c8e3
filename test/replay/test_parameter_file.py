"""One parameter file for the nodes and for an offline replay."""

from __future__ import annotations

from pathlib import Path

import pytest

from mmedge_ros.core.parameter import ParameterError
from mmedge_ros.replay.offline_session import OfflineOptions
from mmedge_ros.replay.parameter_file import with_parameter_file

OPTIONS = OfflineOptions('a_bag', detector='a.onnx')

SOUND = """
fusion:
  ros__parameters:
    calibration_file: some.yaml
    pipeline:
      windows: {stride: 0.2}
      tracker.lost_time: 3
camera_encoder:
  ros__parameters:
    detector: other.onnx
    detection:
      score_threshold: 0.25
      labels: [person, dog]
radar_encoder:
  ros__parameters: {limits.max_range: 20.0}
visualizer:
  ros__parameters: {colour: red}
"""


def write(folder: Path, text: str) -> Path:
    file = folder / 'params.yaml'
    file.write_text(text)
    return file


def test_each_nodes_parameters_shape_its_part_of_the_replay(tmp_path: Path) -> None:
    found = with_parameter_file(OPTIONS, write(tmp_path, SOUND))
    assert found.pipeline.windows.stride == 0.2
    assert found.pipeline.tracker.lost_time == 3.0
    assert found.detection.score_threshold == 0.25
    assert found.detection.labels == ('person', 'dog')
    assert found.limits.max_range == 20.0
    assert (found.bag, found.detector) == ('a_bag', 'a.onnx')


def test_parameters_for_all_nodes_hold_unless_a_node_says_otherwise(tmp_path: Path) -> None:
    text = """
/**:
  ros__parameters: {pipeline.windows.window: 0.7, pipeline.time_offset: 0.2, use_sim_time: true}
/fusion:
  ros__parameters: {pipeline.windows.window: 0.9}
"""
    found = with_parameter_file(OPTIONS, write(tmp_path, text))
    assert (found.pipeline.windows.window, found.pipeline.time_offset) == (0.9, 0.2)


def test_the_shipped_file_holds_the_defaults() -> None:
    shipped = Path(__file__).resolve().parents[2] / 'config' / 'perception.yaml'
    assert with_parameter_file(OPTIONS, shipped) == OPTIONS


@pytest.mark.parametrize(
    ('text', 'said'),
    [
        (SOUND.replace('stride', 'stribe'), "'windows.stride'"),
        (SOUND.replace('stride: 0.2', 'stride: 0'), 'limits'),
        (SOUND.replace('lost_time: 3', 'lost_time: long'), 'must be a float'),
        (SOUND.replace('[person, dog]', '7'), 'labels'),
        (SOUND.replace('max_range: 20.0', 'max_range: .nan'), 'max_range'),
        ('fusion: 3\n', 'ros__parameters'),
        ('fusion: {pipeline.windows.window: 0.7}\n', 'ros__parameters'),
        ('fusion: {ros__parameters: [1]}\n', 'ros__parameters'),
        (SOUND.replace('lost_time: 3', f'lost_time: 1{"0" * 400}'), 'not a huge number'),
        (SOUND.replace('lost_time', 'x' * 900), "unknown parameter 'tracker.xxx"),
        ('fusoin: {ros__parameters: {pipeline: {pairing: 0.2}}}\n', 'nothing in it concerns'),
        ('- fusion\n', 'not keys and values'),
    ],
)
def test_what_is_no_sound_parameter_file_is_refused_in_one_sentence(
    tmp_path: Path, text: str, said: str
) -> None:
    file = write(tmp_path, text)
    with pytest.raises(ParameterError, match=said) as caught:
        with_parameter_file(OPTIONS, file)
    assert str(file) in str(caught.value)
    assert len(str(caught.value)) < 1000
