"""Mean colours are regressed onto classes, on the scenes that a recogniser is taught with."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mmedge_lab.judging.colour_features import colour_features
from mmedge_lab.simulation.appearance import MoverLook
from mmedge_lab.training import TrainingError
from mmedge_lab.training.colour_ridge import colour_ridge
from mmedge_lab.training.crop_set import SeenCrop, crop_set
from mmedge_lab.training.recogniser_labels import ATTRIBUTES, CLASSES, facts_of

PAINTS = {'red': (30, 30, 200), 'green': (30, 160, 30), 'blue': (200, 40, 30)}


def dressed(top: str, bottom: str, surroundings: int = 90) -> np.ndarray:
    """A crop as it is kept: an object in two colours with room around it."""
    crop = np.full((72, 48, 3), surroundings, np.uint8)
    crop[13:36, 9:39] = PAINTS[top]
    crop[36:59, 9:39] = PAINTS[bottom]
    return crop


def test_colours_of_tops_and_trousers_are_told_apart(tmp_path: Path) -> None:
    seen = [
        SeenCrop(
            dressed(top, bottom, 40 * turn),
            facts_of(MoverLook('person', top, bottom)),
            *(60.0, 0, turn, 1),
        )
        for turn in range(5)
        for top in PAINTS
        for bottom in PAINTS
    ]
    np.savez(tmp_path / 'crops_00000.npz', **crop_set(seen)._asdict())
    crop = dressed('green', 'blue')[13:59, 9:39]
    said = colour_ridge(tmp_path)(colour_features(crop)[None])[0]
    bottoms = said[len(CLASSES) : len(CLASSES) + len(ATTRIBUTES['bottom'])]
    assert CLASSES[int(said[: len(CLASSES)].argmax())] == 'person green'
    assert ATTRIBUTES['bottom'][int(bottoms.argmax())] == 'blue'


def test_a_folder_without_crops_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match='no object'):
        colour_ridge(tmp_path)
