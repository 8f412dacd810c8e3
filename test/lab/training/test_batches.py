"""Batches: complete, in a random but repeatable order, and the same from any epoch on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from painted_flight import write_painted_flight

from mmedge_lab.training import TrainingError
from mmedge_lab.training.augmentation import Augmentation
from mmedge_lab.training.batches import BatchSource, joined
from mmedge_lab.training.picture_set import Labelled, PictureSet, write_picture_set

SIZE, CROP = (160, 120), (96, 64)


@pytest.fixture(scope='module')
def pictures(tmp_path_factory: pytest.TempPathFactory) -> PictureSet:
    folder = tmp_path_factory.mktemp('batches')
    flight = write_painted_flight(folder / 'flight', pictures=7)
    return write_picture_set([flight], folder / 'set', 7)


def source(pictures: PictureSet, batch: int = 3, seed: int = 1) -> BatchSource:
    return BatchSource(pictures, SIZE, CROP, batch, seed, Augmentation())


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


def test_fewer_pictures_than_a_batch_are_refused_by_nobody(pictures: PictureSet) -> None:
    (batch,) = source(pictures, batch=7).epoch(0)
    assert len(batch.pictures) == 7


def test_a_damaged_picture_ends_the_epoch_with_its_name(tmp_path: Path) -> None:
    flight = write_painted_flight(tmp_path / 'flight', pictures=2)
    pictures = write_picture_set([flight], tmp_path / 'set', 2)
    (pictures.folder / 'images/000001.jpg').unlink()
    with pytest.raises(TrainingError, match=r'000001\.jpg'):
        list(source(pictures, batch=2).epoch(0))
