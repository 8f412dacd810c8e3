"""Batches of training pictures, made by a thread while the network works on the one before."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmedge_lab.training.augmentation import Augmentation, augmented
from mmedge_lab.training.epoch_training import made_ahead
from mmedge_lab.training.picture_set import Labelled, PictureSet, picture_numbers


class Batch(NamedTuple):
    """``pictures`` (B, 3, H, W) uint8 RGB, and rows of picture, class, x0, y0, x1, y1 (px).

    ``objects`` (N, 6) are to be detected, ``ignored`` (M, 6) are not judged.
    """

    pictures: NDArray[np.uint8]
    objects: NDArray[np.float32]
    ignored: NDArray[np.float32]


@dataclass(frozen=True)
class BatchSource:
    """Makes the batches of any epoch; the same for the same seed, whatever was made before.

    ``size`` is the detector's input, ``crop`` the part of it that one picture shows. So many
    ``threads`` make batches.
    """

    pictures: PictureSet
    size: tuple[int, int]
    crop: tuple[int, int]
    batch: int
    seed: int
    augmentation: Augmentation
    threads: int = 1

    def __len__(self) -> int:
        """Batches in an epoch; pictures that do not fill the last one wait for the next."""
        return max(1, len(self.pictures) // self.batch)

    def epoch(self, epoch: int, mosaic: bool = True) -> Iterator[Batch]:
        """Return the batches of one epoch.

        :raises TrainingError: if a picture is missing or damaged
        """
        numbers = picture_numbers(len(self.pictures), self.seed, epoch)
        groups = [list(islice(numbers, self.batch)) for _ in range(len(self))]
        return made_ahead(
            lambda k: self._batch(epoch, k, groups[k], mosaic), len(groups), self.threads
        )

    def _batch(self, epoch: int, place: int, numbers: Sequence[int], mosaic: bool) -> Batch:
        settings = self.augmentation if mosaic else replace(self.augmentation, mosaic=0.0)
        # Mosaics take their parts from the batch: reading a picture takes longer than the rest.
        loaded = [self.pictures.load(number) for number in numbers]
        made = [
            augmented(
                loaded.__getitem__,
                position,
                len(loaded),
                self.size,
                self.crop,
                settings,
                np.random.default_rng((self.seed, epoch, place, position)),
            )
            for position in range(len(loaded))
        ]
        return joined(made)


def joined(samples: Sequence[Labelled]) -> Batch:
    """Put pictures of one size into one batch."""
    stacked = np.stack([sample.image for sample in samples])
    pictures = np.ascontiguousarray(stacked[..., ::-1].transpose(0, 3, 1, 2))
    objects = [_numbered(place, sample.objects) for place, sample in enumerate(samples)]
    ignored = [_numbered(place, sample.ignored) for place, sample in enumerate(samples)]
    return Batch(pictures, np.concatenate(objects), np.concatenate(ignored))


def _numbered(place: int, rows: NDArray[np.float32]) -> NDArray[np.float32]:
    column = np.full((len(rows), 1), place, np.float32)
    return np.concatenate((column, rows), axis=1)
