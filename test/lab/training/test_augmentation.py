"""Changed pictures: whatever is done to them, their boxes stay on what was painted.

Their batches are complete, in a random but repeatable order, and the same from any epoch on.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from painted_flight import write_painted_flight

from mmedge_lab.training import TrainingError
from mmedge_lab.training.augmentation import Augmentation, BatchSource, augmented, joined
from mmedge_lab.training.picture_set import Labelled, PictureSet, write_picture_set

SIZE = (320, 240)
CROP = (208, 160)
PLAIN = Augmentation(mosaic=0.0, gain=0.0, gamma=0.0, tint=0.0)
MOSAIC = Augmentation(mosaic=1.0, gain=0.0, gamma=0.0, tint=0.0)


def labelled(box: tuple[float, float, float, float] = (60.0, 90.0, 90.0, 150.0)) -> Labelled:
    """A red bar on black, and something to ignore beside it."""
    image = np.zeros((240, 320, 3), np.uint8)
    x0, y0, x1, y1 = (int(v) for v in box)
    image[y0:y1, x0:x1] = (0, 0, 255)
    ignored = np.array([[3, 200.0, 40.0, 240.0, 80.0]], np.float32)
    return Labelled(image, np.array([[0, *box]], np.float32), ignored)


def red_extent(picture: Labelled) -> list[float]:
    rows, columns = np.nonzero((picture.image[..., 2] > 127) & (picture.image[..., 1] < 60))
    return [columns.min(), rows.min(), columns.max() + 1, rows.max() + 1]


@given(st.integers(0, 10_000))
def test_a_box_follows_its_object_within_a_pixel(seed: int) -> None:
    picture = augmented([labelled()], 0, SIZE, CROP, PLAIN, np.random.default_rng(seed))
    assert picture.image.shape == (160, 208, 3)
    if len(picture.objects):
        np.testing.assert_allclose(picture.objects[0, 1:], red_extent(picture), atol=1.1)


@given(st.integers(0, 10_000))
def test_boxes_stay_inside_and_have_an_area(seed: int) -> None:
    for settings in (PLAIN, MOSAIC):
        picture = augmented([labelled()] * 4, 0, SIZE, CROP, settings, np.random.default_rng(seed))
        for rows in (picture.objects, picture.ignored):
            assert (rows[:, 1:3] < rows[:, 3:5]).all()
            assert (rows[:, 1:] >= 0.0).all()
            assert (rows[:, 3:] <= np.array(CROP)).all()


@given(st.integers(0, 10_000))
def test_what_is_cut_off_is_ignored_but_never_lost(seed: int) -> None:
    picture = augmented(
        [labelled((0.0, 0.0, 30.0, 60.0))], 0, SIZE, CROP, PLAIN, np.random.default_rng(seed)
    )
    reds = int(np.count_nonzero(picture.image[..., 2] > 200))
    people = len(picture.objects) + int((picture.ignored[:, 0] == 0).sum())
    assert people == 1 or reds <= 4


def test_a_mosaic_shows_its_picture_and_three_others() -> None:
    class Asked(list[Labelled]):
        def __getitem__(self, place: Any) -> Any:
            asked.append(place)
            return super().__getitem__(place)

    asked: list[int] = []
    augmented(Asked([labelled()] * 100), 7, SIZE, CROP, MOSAIC, np.random.default_rng(1))
    assert asked[0] == 7
    assert len(asked) == 4


@given(st.integers(0, 10_000))
def test_an_aimed_picture_shows_its_object(seed: int) -> None:
    settings = Augmentation(0.5, 1.5, aimed=1.0, mosaic=0.0, gain=0.0, gamma=0.0, tint=0.0)
    rng = np.random.default_rng(seed)
    made = augmented([labelled()], 0, SIZE, CROP, settings, rng)
    people = len(made.objects) + int((made.ignored[:, 0] == 0).sum())
    assert people == 1


@given(st.integers(0, 10_000))
def test_a_picture_smaller_than_the_crop_is_all_in_it(seed: int) -> None:
    settings = Augmentation(0.3, 0.6, mosaic=0.0, gain=0.0, gamma=0.0, tint=0.0)
    rng = np.random.default_rng(seed)
    made = augmented([labelled()], 0, SIZE, CROP, settings, rng)
    assert len(made.objects) == 1
    assert len(made.ignored) == 1


def test_light_changes_the_picture_and_leaves_the_boxes() -> None:
    settings = Augmentation(mosaic=0.0, smallest=1.0, largest=1.0, mirrored=0.0)
    rng = np.random.default_rng(2)
    picture = augmented([labelled()], 0, SIZE, SIZE, settings, rng)
    np.testing.assert_allclose(picture.objects, labelled().objects, atol=1e-4)
    assert (picture.image != labelled().image).any()


@pytest.fixture(scope='module')
def pictures(tmp_path_factory: pytest.TempPathFactory) -> PictureSet:
    folder = tmp_path_factory.mktemp('batches')
    flight = write_painted_flight(folder / 'flight', pictures=7)
    return write_picture_set([flight], folder / 'set', 7)


def source(pictures: PictureSet, batch: int = 3, seed: int = 1) -> BatchSource:
    return BatchSource(pictures, (160, 120), (96, 64), batch, seed, Augmentation())


def test_a_batch_holds_rgb_pictures_and_numbered_boxes(pictures: PictureSet) -> None:
    batches = list(source(pictures).epoch(0))
    assert len(batches) == len(source(pictures)) == 2
    for batch in batches:
        assert batch.pictures.shape == (3, 3, 64, 96)
        assert batch.pictures.dtype == np.uint8
        assert batch.objects.shape[1] == batch.ignored.shape[1] == 6
        assert set(batch.objects[:, 0].tolist()) <= {0.0, 1.0, 2.0}


def test_colours_change_places_from_bgr_to_rgb() -> None:
    image = np.zeros((4, 6, 3), np.uint8)
    image[..., 0] = 200  # blue
    rows = np.zeros((1, 5), np.float32)
    batch = joined([Labelled(image, rows, rows[:0])])
    assert (batch.pictures[0, 2] == 200).all()
    assert (batch.pictures[0, 0] == 0).all()


def test_an_epoch_is_the_same_whatever_was_made_before(pictures: PictureSet) -> None:
    whole = source(pictures)
    list(whole.epoch(0))
    for one, two in zip(whole.epoch(1), source(pictures).epoch(1), strict=True):
        np.testing.assert_array_equal(one.pictures, two.pictures)
        np.testing.assert_array_equal(one.objects, two.objects)


@pytest.mark.parametrize('other', ['epoch', 'seed'])
def test_epochs_and_seeds_differ(pictures: PictureSet, other: str) -> None:
    first = next(source(pictures).epoch(0))
    if other == 'epoch':
        second = next(source(pictures).epoch(1))
    else:
        second = next(source(pictures, seed=2).epoch(0))
    assert (first.pictures != second.pictures).any()


def test_a_damaged_picture_ends_the_epoch_with_its_name(tmp_path: Path) -> None:
    flight = write_painted_flight(tmp_path / 'flight', pictures=2)
    pictures = write_picture_set([flight], tmp_path / 'set', 2)
    (pictures.folder / 'images/000001.jpg').unlink()
    with pytest.raises(TrainingError, match=r'000001\.jpg'):
        list(source(pictures, batch=2).epoch(0))
