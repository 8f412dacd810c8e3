"""Training pictures of random scenes: real renderings, two scenes of them."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from mmedge_lab.simulation.standard_sets import STANDARD_SETS, hard_scene_set, scene_set
from mmedge_lab.training import TrainingError
from mmedge_lab.training.picture_set import open_pictures
from mmedge_lab.training.scene_pictures import PAIRS, write_scene_pictures


@pytest.fixture(scope='module')
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp('scenes') / 'set'
    write_scene_pictures(folder, scene_set(1))
    return folder


def test_a_scene_gives_pairs_of_consecutive_pictures_with_boxes(folder: Path) -> None:
    pictures = open_pictures(folder)
    assert len(pictures) == 2 * PAIRS
    assert pictures.objects['person'] > 0
    shown = [pictures.load(number) for number in range(len(pictures))]
    assert {picture.image.shape for picture in shown} == {(480, 640, 3)}
    change = [
        float(np.abs(one.image.astype(int) - two.image).mean()) for one, two in pairwise(shown)
    ]
    # The second picture of a pair looks like the first, the next pair does not.
    assert max(change[::2]) < min(change[1::2])


def test_a_set_that_grows_keeps_its_pictures(folder: Path) -> None:
    before = open_pictures(folder)
    first = folder / 'images' / '000000.jpg'
    written = first.stat().st_mtime_ns
    shares: list[float] = []
    grown = write_scene_pictures(
        folder, scene_set(2), report=lambda share, words: shares.append(share)
    )
    assert (len(before), len(grown)) == (2 * PAIRS, 4 * PAIRS)
    assert grown.digest != before.digest
    assert grown.objects['person'] > before.objects['person']
    assert first.stat().st_mtime_ns == written
    assert shares[-1] == 1.0


def test_who_cannot_be_seen_in_a_hard_scene_need_not_be_found(tmp_path: Path) -> None:
    dark = [scene for scene in hard_scene_set(5) if scene.condition == 'dark']
    pictures = write_scene_pictures(tmp_path / 'set', dark)
    assert pictures.objects['person'] == 0
    assert sum(len(picture.ignored) for picture in pictures.pictures) > 0
    with pytest.raises(TrainingError, match='holds something else'):
        write_scene_pictures(tmp_path / 'set', scene_set(1))


def test_no_scene_shares_a_seed_with_a_flight_and_scenarios_take_turns() -> None:
    scenes = (*scene_set(), *hard_scene_set())
    flown = {flight.seed for flights in STANDARD_SETS.values() for flight in flights}
    seeds = [scene.seed for scene in scenes]
    assert len(set(seeds)) == len(seeds)
    assert not flown & set(seeds)
    assert len({scene.scenario for scene in scenes[:60]}) == 60
    assert scene_set(7) == scenes[:7]
