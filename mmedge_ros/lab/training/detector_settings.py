"""What a detector's training is: everything that decides its result."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from mmedge_ros.lab.training.augmentation import Augmentation

# Depth, width and greatest number of channels of a YOLO26, by width: 0.34 M parameters take
# 8 ms for a picture of 640 x 480 px on one core, as long as YOLOX-nano; 1.0 M take 15 ms.
SCALES = {'narrow': (0.33, 0.125, 512), 'wide': (0.5, 0.1875, 768)}
FLOAT32, BFLOAT16 = 'float32', 'bfloat16'


@dataclass(frozen=True)
class DetectorSettings:
    """Two trainings with equal settings on one machine give the same network.

    ``size`` is width and height of the detector's input. It is trained on parts of pictures of
    the size ``crop``: a third of the work, and nothing in them is smaller. ``pictures`` tells
    about how many are taken from the set. ``plain_epochs`` at the end do without mosaics, so
    that the last the network sees looks like what it will see. ``threads`` is part of it
    because sums depend on their order. ``precision`` is that of convolutions and what lies
    between them; weights, normalisation statistics and losses are float32 in any case.
    """

    level: str = 'small'
    width: str = 'narrow'
    size: tuple[int, int] = (640, 480)
    crop: tuple[int, int] = (320, 256)
    pictures: int = 3600
    epochs: int = 16
    plain_epochs: int = 5
    batch: int = 16
    seed: int = 0
    learning_rate: float = 2e-3
    weight_decay: float = 5e-4
    threads: int = 2
    precision: str = FLOAT32
    augmentation: Augmentation = field(default_factory=Augmentation)

    def plain(self) -> dict[str, Any]:
        """Return plain values, as a checkpoint and a manifest hold them."""
        values = asdict(self)
        return {**values, 'size': list(self.size), 'crop': list(self.crop)}


def detector_settings(
    *,
    epochs: int,
    seed: int,
    pictures: int,
    threads: int,
    width: str = 'narrow',
    precision: str = FLOAT32,
) -> DetectorSettings:
    """Return settings that differ from the usual ones in what a user decides.

    :param threads: 0 takes one for each core, 8 at most
    :param width: one of `SCALES`
    """
    level = {'narrow': 'small', 'wide': 'large'}[width]
    usual = DetectorSettings(
        level, width, seed=seed, pictures=pictures, epochs=epochs, precision=precision
    )
    share = usual.plain_epochs / DetectorSettings.epochs
    plain = max(1, round(share * epochs))
    return replace(usual, plain_epochs=plain, threads=threads or min(os.cpu_count() or 1, 8))
