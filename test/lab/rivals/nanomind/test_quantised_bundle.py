"""A quantised bundle: stages are given up until it sees as well, and it opens as any other."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import yaml
from tiny_bundle import write_tiny_bundle
from typer.testing import CliRunner

from mmedge_lab.commands.main import model_app
from mmedge_lab.rivals.nanomind.quantised_bundle import Brick, give_up_stages, replace_files
from mmedge_lab.rivals.nanomind.stage_precision import Candidate, Stage
from mmedge_ros.encoding.bundle.manifest import BundleFile
from mmedge_ros.encoding.bundle.model_bundle import load_bundle, open_detector
from mmedge_ros.encoding.opened_levels import HeldLevel
from mmedge_ros.encoding.unit_encoder import CameraEncoder


def result_of(errors: list[float], folder: Path = Path()) -> Brick:
    """A brick whose stages are all chosen in whole numbers, twice as fast, and so far off."""
    stages = [
        Stage(('camera', 'levels', f'l{n}'), BundleFile(folder / f'l{n}.onnx', 64 * '0', None))
        for n in range(len(errors))
    ]
    measured = [
        [
            Candidate('fp32', stage.file.path, 2.0),
            Candidate('int8', folder / f'l{n}.int8.onnx', 1.0, error),
        ]
        for n, (stage, error) in enumerate(zip(stages, errors, strict=True))
    ]
    return Brick('camera.small', stages, measured, [of[1] for of in measured])


def test_the_stages_that_are_most_off_are_given_up_until_half_a_point_is_lost_at_most() -> None:
    result = result_of([0.01, 0.3, 0.2])

    def figure(chosen: Brick | None) -> float:
        given_up = 3 if chosen is None else [c.precision for c in chosen.chosen].count('fp32')
        return [0.60, 0.70, 0.796, 0.80][given_up]

    give_up_stages(result, figure)
    assert [one.precision for one in result.chosen] == ['int8', 'fp32', 'fp32']
    assert (result.before, result.after) == (0.80, 0.796)
    assert [note.split()[0] for note in result.notes] == ['l1.onnx', 'l2.onnx']
    assert result.ratio == pytest.approx(5.0 / 6.0)


def test_chosen_files_take_their_places_in_the_manifest_and_open_in_flight(tmp_path: Path) -> None:
    bundle = write_tiny_bundle(tmp_path / 'tiny', {'l0': 0.7, 'l1': 0.8})
    other = write_tiny_bundle(tmp_path / 'other', {'l0.int8': 0.6, 'l1.int8': 0.5})
    result = result_of([0.1, 0.2], other)
    result.chosen[1] = result.measured[1][0]
    replace_files(bundle, [result])
    loaded = load_bundle(bundle)
    assert [file.precision for file in loaded.files()] == ['int8', 'fp32']
    assert not (bundle / 'l0.onnx').exists()
    encoder = CameraEncoder.from_path(bundle, held=HeldLevel('l0'))
    encoder.warm_up()
    assert [brick.precision for brick in encoder.bricks()] == ['int8']
    white = np.zeros((256, 320, 3), np.uint8)
    white[60:160, 100:150] = 255
    (seen,) = open_detector(bundle, None, 'l0').detect(white).detections
    assert seen.score == pytest.approx(0.6, abs=0.01)


def test_a_bundle_without_convolutions_is_copied_and_every_stage_says_why(
    street_flight: Path, tmp_path: Path
) -> None:
    bundle, out = write_tiny_bundle(tmp_path / 'tiny'), tmp_path / 'quantised'
    given = ['quantize', str(bundle), '--flights', str(street_flight), '--out', str(out)]
    result = CliRunner().invoke(model_app, given)
    assert result.exit_code == 0, result.output
    assert [file.precision for file in load_bundle(out).files()] == ['fp32', 'fp32']
    report = yaml.safe_load((out / 'quantisation.json').read_text())
    assert {brick['brick'] for brick in report['bricks']} == {'camera.small', 'camera.large'}
    for brick in report['bricks']:
        (stage,) = brick['stages']
        assert 'no convolution' in stage['int8_problem']
        assert stage['fp32_ms'] > 0.0
    again = CliRunner().invoke(model_app, given)
    assert again.exit_code == 1
    assert 'exists already' in again.stderr
