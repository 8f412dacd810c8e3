"""Two detectors become one bundle with three levels that fly."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from painted_flight import write_painted_pictures, write_painted_set

from mmedge_lab.training.checkpoint import save_checkpoint
from mmedge_lab.training.detector_training import (
    SCALES,
    DetectorSettings,
    join_levels,
    load_detector,
)
from mmedge_lab.training.epoch_training import prepare_torch
from mmedge_lab.training.picture_sources import CLASSES
from mmedge_ros.encoding.bundle.model_bundle import load_bundle, open_detector
from mmedge_ros.encoding.ultralytics_network import new_network


@pytest.fixture(scope='module')
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two detectors that have learned nothing, and what is joined of them."""
    place = tmp_path_factory.mktemp('levels')
    prepare_torch(place, 1)
    torch.manual_seed(0)
    for width, scale in SCALES.items():
        (place / width).mkdir()
        save_checkpoint(
            place / width / f'{width}.pt',
            {
                'settings': DetectorSettings(width=width).plain(),
                'average': new_network(CLASSES, scale).state_dict(),
                'epoch': 1,
            },
        )
    write_painted_set(place / 'set', flights=1, pictures=2)
    write_painted_pictures(place / 'pictures', 2)
    progress: list[float] = []
    join_levels(
        [place / 'pictures'],
        place / 'narrow',
        place / 'wide',
        place / 'people',
        lambda share, words: progress.append(share),
        place / 'set',
    )
    assert progress == sorted(progress)
    return place


def test_every_level_opens_with_its_own_input_and_figures(place: Path) -> None:
    bundle = load_bundle(place / 'people')
    assert tuple(bundle.levels) == ('small', 'medium', 'large')
    sizes = {
        level: open_detector(place / 'people', level=level).input_size for level in bundle.levels
    }
    assert sizes == {'small': (416, 320), 'medium': (640, 480), 'large': (640, 480)}
    assert set(bundle.content['metrics']) == set(sizes)
    assert 'validation' in bundle.content['metrics']['small']
    assert not [path for path in place.iterdir() if path.name.startswith('.')]


def test_a_later_training_begins_with_what_the_bundle_holds(place: Path) -> None:
    kept = load_detector(place / 'people', 'wide').network.state_dict()
    whole = load_detector(place / 'wide', 'wide').network.state_dict()
    assert set(kept) == set(whole)
    for name, value in whole.items():
        np.testing.assert_allclose(kept[name].numpy(), value.numpy(), rtol=1e-3, atol=1e-6)
