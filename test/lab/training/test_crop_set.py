"""Crops of scenes are kept, show what they say, and are cut with room around the box."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mmedge_lab.simulation.scenario import LIGHTS, find_scenario
from mmedge_lab.simulation.standard_sets import scene_set
from mmedge_lab.training.crop_set import (
    CROP_SIZE,
    CropSet,
    fitted_on,
    judged,
    learned,
    write_crops,
)
from mmedge_lab.training.scene_pictures import SCENES_EACH, draw_scenes
from mmedge_lab.worker_processes import OnShare


@pytest.fixture(scope='module')
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, CropSet]:
    folder = tmp_path_factory.mktemp('crops')
    return folder, write_crops(folder, 1)


def test_the_crops_of_a_scene_say_of_what_they_are(made: tuple[Path, CropSet]) -> None:
    crops = made[1]
    assert crops.crops.shape[1:] == (CROP_SIZE[1], CROP_SIZE[0], 3)
    assert len({len(part) for part in crops}) == 1
    assert crops.heights.min() >= 14.0
    assert set(crops.scenes.tolist()) == {0}
    for number in np.unique(crops.objects):
        of_one = crops.facts[crops.objects == number]
        assert (of_one == of_one[0]).all(), 'an object looks the same in all pictures'


def test_what_was_cut_short_goes_on_where_it_was(made: tuple[Path, CropSet]) -> None:
    folder, crops = made
    before = {path: path.stat().st_mtime_ns for path in folder.iterdir()}
    again = write_crops(folder, 1)
    assert {path: path.stat().st_mtime_ns for path in folder.iterdir()} == before
    np.testing.assert_array_equal(again.crops, crops.crops)


SCENES = 1400


def one_crop_of_each_scene() -> CropSet:
    scenes = np.arange(SCENES, dtype=np.int32)
    lights = [LIGHTS.index(find_scenario(scene.scenario).light) for scene in scene_set(SCENES)]
    return CropSet(
        np.zeros((SCENES, 1, 1, 3), np.uint8),
        np.zeros((SCENES, 4), np.int8),
        np.full(SCENES, 30.0, np.float32),
        np.array(lights, np.int8),
        scenes,
        np.zeros(SCENES, np.int32),
    )


def test_every_scene_learns_or_fits_or_judges() -> None:
    crops = one_crop_of_each_scene()
    parts = [part(crops).scenes for part in (learned, fitted_on, judged)]
    assert sorted(np.concatenate(parts).tolist()) == list(range(SCENES))
    assert [round(len(part) / SCENES, 2) for part in parts] == [0.7, 0.2, 0.1]


def write_half(first: int, scenes: object, on_share: OnShare) -> None:
    on_share(0.5)


def test_scenes_that_are_there_count_as_drawn() -> None:
    said: list[tuple[float, str]] = []
    draw_scenes(
        scene_set(4 * SCENES_EACH),
        write_half,
        1,
        lambda share, words: said.append((share, words)),
        is_done=lambda first: first < 2 * SCENES_EACH,
    )
    assert said[0] == (0.625, '50 of 80 scenes')
    assert said[-1] == (1.0, '80 of 80 scenes')
