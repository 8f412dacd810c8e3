"""Every network of a bundle can be opened, run and measured on its own."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from tiny_bundle import write_tiny_bundle

from mmedge_ros.adaptation.brick_measurement import (
    bricks_of,
    measure_bricks,
    open_brick,
    precision_of,
)
from mmedge_ros.encoding import EncodingError
from mmedge_ros.encoding.bricks import BrickCost

MODELS = Path(__file__).resolve().parents[2] / 'models'


def test_the_bricks_of_a_bundle_are_its_levels_its_fusion_and_its_recogniser(
    tmp_path: Path,
) -> None:
    tiny = bricks_of(write_tiny_bundle(tmp_path / 'tiny'))
    assert set(tiny) == {'camera.small', 'camera.large'}
    fused = bricks_of(MODELS / 'fused_people')
    assert {'camera.large', 'radar.small', 'fusion'} <= set(fused)
    assert 'recogniser' in bricks_of(MODELS / 'flight_people')


@pytest.mark.parametrize(
    ('bundle', 'brick'),
    [
        ('fused_people', 'camera.small'),
        ('fused_people', 'radar.small'),
        ('fused_people', 'fusion'),
        ('flight_people', 'recogniser'),
    ],
)
def test_every_kind_of_brick_runs(bundle: str, brick: str) -> None:
    assert open_brick(MODELS / bundle, brick)() is not None


def test_a_measurement_has_all_figures_and_is_made_in_a_process_of_its_own(tmp_path: Path) -> None:
    bundle = write_tiny_bundle(tmp_path / 'tiny')
    told: list[str] = []
    (cost,) = measure_bricks(
        bundle, ['camera.small'], ['cpu'], lambda _share, words: told.append(words)
    )
    assert isinstance(cost, BrickCost)
    assert (cost.name, cost.device) == ('camera.small', 'cpu')
    assert 0.0 < cost.run_time < cost.load_time
    assert told == ['camera.small on cpu']


def test_a_device_that_is_not_there_is_said_and_the_others_are_measured(tmp_path: Path) -> None:
    bundle = write_tiny_bundle(tmp_path / 'tiny')
    found = list(measure_bricks(bundle, ['camera.small'], ['cuda', 'cpu']))
    assert 'camera.small on cuda' in str(found[0])
    assert 'not available' in str(found[0])
    assert isinstance(found[1], BrickCost)


def test_a_broken_network_is_an_error_that_names_it(tmp_path: Path) -> None:
    bundle = write_tiny_bundle(tmp_path / 'tiny')
    (bundle / 'small.onnx').write_bytes(b'nothing')
    with pytest.raises(EncodingError, match=r'small\.onnx'):
        list(measure_bricks(bundle, ['camera.small'], ['cpu']))


def test_the_precision_of_each_brick_is_that_of_its_files(tmp_path: Path) -> None:
    content = yaml.safe_load((MODELS / 'fused_people/manifest.yaml').read_text())
    content['recogniser'] = yaml.safe_load((MODELS / 'flight_people/manifest.yaml').read_text())[
        'recogniser'
    ]
    content['recogniser']['stages'][1]['precision'] = 'int8'
    for stage in content['radar']['levels']['small']['stages']:
        stage['precision'] = 'int8'
    content['fusion']['fuse']['precision'] = 'fp16'
    (tmp_path / 'manifest.yaml').write_text(yaml.safe_dump(content))
    found = {name: precision_of(tmp_path, name) for name in bricks_of(tmp_path)}
    assert found['recogniser'] == found['fusion'] == 'mixed'
    assert found['radar.small'] == 'int8'
    assert found['camera.large'] == 'fp32'


def test_a_brick_that_there_is_not_is_refused(tmp_path: Path) -> None:
    bundle = write_tiny_bundle(tmp_path / 'tiny')
    with pytest.raises(EncodingError, match='recogniser'):
        open_brick(bundle, 'recogniser')
    with pytest.raises(EncodingError, match='processor only'):
        open_brick(bundle, 'fusion', 'cuda')
