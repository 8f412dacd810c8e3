"""Changed pictures: whatever is done to them, their boxes stay on what was painted.

Their batches are complete, in a random but repeatable order, and the same from any epoch on.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from painted_flight import write_painted_pictures

from mmedge_lab.training.augmentation import Augmentation, Augmenter, BatchSource
from mmedge_lab.training.picture_set import Domain, Labelled, PictureSet

SIZE = (320, 240)
CROP = (208, 160)
PLAIN = Augmentation(
    sized=0.0,
    mosaic=0.0,
    gain=0.0,
    gamma=0.0,
    tint=0.0,
    grey=0.0,
    blurred=0.0,
    noisy=0.0,
    packed=0.0,
)


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
    picture = Augmenter(SIZE, CROP, PLAIN, np.random.default_rng(seed))([labelled()], 0)
    assert picture.image.shape == (160, 208, 3)
    if len(picture.objects):
        np.testing.assert_allclose(picture.objects[0, 1:], red_extent(picture), atol=1.1)


@given(st.integers(0, 10_000))
def test_what_is_cut_off_is_ignored_but_never_lost(seed: int) -> None:
    made = Augmenter(SIZE, CROP, PLAIN, np.random.default_rng(seed))
    picture = made([labelled((0.0, 0.0, 30.0, 60.0))], 0)
    reds = int(np.count_nonzero(picture.image[..., 2] > 200))
    people = len(picture.objects) + int((picture.ignored[:, 0] == 0).sum())
    assert people == 1 or reds <= 4


@given(st.integers(0, 10_000))
def test_a_picture_smaller_than_the_crop_is_all_in_it(seed: int) -> None:
    settings = replace(PLAIN, smallest=0.3, largest=0.6)
    rng = np.random.default_rng(seed)
    made = Augmenter(SIZE, CROP, settings, rng)([labelled()], 0)
    assert len(made.objects) == 1
    assert len(made.ignored) == 1


@pytest.fixture(scope='module')
def pictures(tmp_path_factory: pytest.TempPathFactory) -> PictureSet:
    return write_painted_pictures(tmp_path_factory.mktemp('batches') / 'set', 7)


def source(pictures: PictureSet, batch: int = 3, seed: int = 1, whole: float = 0.0) -> BatchSource:
    return BatchSource(pictures, (160, 120), (96, 64), batch, seed, Augmentation(whole=whole))


def test_a_batch_holds_rgb_pictures_and_numbered_boxes(pictures: PictureSet) -> None:
    batches = list(source(pictures).epoch(0))
    assert len(batches) == len(source(pictures)) == 2
    for batch in batches:
        assert batch.pictures.shape == (3, 3, 64, 96)
        assert batch.pictures.dtype == np.uint8
        assert batch.objects.shape[1] == batch.ignored.shape[1] == 6
        assert set(batch.objects[:, 0].tolist()) <= {0.0, 1.0, 2.0}


def test_objects_of_any_size_are_shown_as_small_and_as_tall_as_fits() -> None:
    settings = replace(PLAIN, aimed=1.0, sized=1.0)
    heights = []
    for seed in range(200):
        made = Augmenter(SIZE, CROP, settings, np.random.default_rng(seed))([labelled()], 0)
        heights += (made.objects[:, 4] - made.objects[:, 2]).tolist()
    assert 9.0 <= min(heights) < 15.0
    assert 110.0 < max(heights) <= 121.0  # twice the 60 px that it has


def test_some_batches_show_a_quarter_of_the_pictures_at_twice_the_size(
    pictures: PictureSet,
) -> None:
    shapes = [b.pictures.shape for b in source(pictures, whole=1.0).epoch(0)]
    assert shapes == [(1, 3, 128, 192)] * 2


@pytest.mark.parametrize('way', ['grey', 'blurred', 'noisy', 'packed'])
def test_a_picture_can_be_spoilt_without_moving_its_objects(way: str) -> None:
    rng = [np.random.default_rng(5) for _ in range(2)]
    plain = Augmenter(SIZE, CROP, PLAIN, rng[0])([labelled()], 0)
    spoilt = Augmenter(SIZE, CROP, replace(PLAIN, **{way: 1.0}), rng[1])([labelled()], 0)
    np.testing.assert_array_equal(spoilt.objects, plain.objects)
    assert spoilt.image.shape == plain.image.shape
    assert (spoilt.image != plain.image).any()


def test_a_simulated_picture_is_not_spoilt_further() -> None:
    rng = [np.random.default_rng(5) for _ in range(2)]
    everything = replace(PLAIN, grey=1.0, blurred=1.0, noisy=1.0, packed=1.0)
    simulated = labelled()._replace(domain=Domain.SIMULATED)
    plain, made = (
        Augmenter(SIZE, CROP, settings, of)([simulated], 0)
        for settings, of in zip((PLAIN, everything), rng, strict=True)
    )
    np.testing.assert_array_equal(made.image, plain.image)


def test_an_epoch_is_the_same_whatever_was_made_before(pictures: PictureSet) -> None:
    whole = source(pictures)
    list(whole.epoch(0))
    for one, two in zip(whole.epoch(1), source(pictures).epoch(1), strict=True):
        np.testing.assert_array_equal(one.pictures, two.pictures)
        np.testing.assert_array_equal(one.objects, two.objects)
