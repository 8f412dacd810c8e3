"""Changed pictures: whatever is done to them, their boxes stay on what was painted."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from painted_flight import KINDS

from mmedge_lab.training.augmentation import Augmentation, augmented
from mmedge_lab.training.picture_set import Labelled

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
    picture = augmented(lambda _: labelled(), 0, 1, SIZE, CROP, PLAIN, np.random.default_rng(seed))
    assert picture.image.shape == (160, 208, 3)
    if len(picture.objects):
        np.testing.assert_allclose(picture.objects[0, 1:], red_extent(picture), atol=1.1)


@given(st.integers(0, 10_000))
def test_boxes_stay_inside_and_have_an_area(seed: int) -> None:
    for settings in (PLAIN, MOSAIC):
        picture = augmented(
            lambda _: labelled(), 0, 4, SIZE, CROP, settings, np.random.default_rng(seed)
        )
        for rows in (picture.objects, picture.ignored):
            assert (rows[:, 1:3] < rows[:, 3:5]).all()
            assert (rows[:, 1:] >= 0.0).all()
            assert (rows[:, 3:] <= np.array(CROP)).all()


@given(st.integers(0, 10_000))
def test_what_is_cut_off_is_ignored_but_never_lost(seed: int) -> None:
    picture = augmented(
        lambda _: labelled((0.0, 0.0, 30.0, 60.0)), 0, 1, SIZE, CROP, PLAIN,
        np.random.default_rng(seed),
    )  # fmt: skip
    reds = int(np.count_nonzero(picture.image[..., 2] > 200))
    people = len(picture.objects) + int((picture.ignored[:, 0] == 0).sum())
    assert people == 1 or reds <= 4


def test_the_same_generator_gives_the_same_picture() -> None:
    settings = Augmentation()
    one, two = (
        augmented(lambda _: labelled(), 0, 4, SIZE, CROP, settings, np.random.default_rng(5))
        for _ in range(2)
    )
    np.testing.assert_array_equal(one.image, two.image)
    np.testing.assert_array_equal(one.objects, two.objects)


def test_a_mosaic_holds_four_pictures_and_asks_for_each() -> None:
    asked: list[int] = []

    def load(number: int) -> Labelled:
        asked.append(number)
        return labelled()

    augmented(load, 7, 100, SIZE, CROP, MOSAIC, np.random.default_rng(1))
    assert asked[0] == 7
    assert len(asked) == 4
    assert all(0 <= number < 100 for number in asked)


@given(st.integers(0, 10_000))
def test_an_unscaled_picture_is_a_part_of_what_the_detector_gets(seed: int) -> None:
    settings = Augmentation(1.0, 1.0, mirrored=0.0, mosaic=0.0, gain=0.0, gamma=0.0, tint=0.0)
    whole = Labelled(
        np.random.default_rng(0).integers(0, 255, (240, 320, 3), np.uint8),
        labelled().objects,
        labelled().ignored,
    )
    made = augmented(lambda _: whole, 0, 1, SIZE, CROP, settings, np.random.default_rng(seed))
    if len(made.objects):
        box = whole.objects[0, 1:]
        if np.allclose(made.objects[0, 3:] - made.objects[0, 1:3], box[2:] - box[:2], atol=1e-3):
            shift = made.objects[0, 1:3] - box[:2]
            np.testing.assert_allclose(made.objects[0, 1:], box + np.tile(shift, 2), atol=1e-3)
            assert (shift <= 1e-3).all()  # nothing is padded where there is picture enough


@given(st.integers(0, 10_000))
def test_an_aimed_picture_shows_its_object(seed: int) -> None:
    settings = Augmentation(0.5, 1.5, aimed=1.0, mosaic=0.0, gain=0.0, gamma=0.0, tint=0.0)
    rng = np.random.default_rng(seed)
    made = augmented(lambda _: labelled(), 0, 1, SIZE, CROP, settings, rng)
    people = len(made.objects) + int((made.ignored[:, 0] == 0).sum())
    assert people == 1


@given(st.integers(0, 10_000))
def test_a_picture_smaller_than_the_crop_is_all_in_it(seed: int) -> None:
    settings = Augmentation(0.3, 0.6, mosaic=0.0, gain=0.0, gamma=0.0, tint=0.0)
    rng = np.random.default_rng(seed)
    made = augmented(lambda _: labelled(), 0, 1, SIZE, CROP, settings, rng)
    assert len(made.objects) == 1
    assert len(made.ignored) == 1


def test_light_changes_the_picture_and_leaves_the_boxes() -> None:
    settings = Augmentation(mosaic=0.0, smallest=1.0, largest=1.0, mirrored=0.0)
    rng = np.random.default_rng(2)
    picture = augmented(lambda _: labelled(), 0, 1, SIZE, SIZE, settings, rng)
    np.testing.assert_allclose(picture.objects, labelled().objects, atol=1e-4)
    assert (picture.image != labelled().image).any()


def test_every_kind_that_is_painted_is_a_class() -> None:
    from mmedge_lab.training.picture_set import CLASSES

    assert set(KINDS) == set(CLASSES)
