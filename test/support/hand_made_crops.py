"""Crops of painted objects in place of simulated ones: a top and a bottom of plain colour."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from mmedge_lab.training.crop_set import CROP_SIZE, CropSet

_COLOURS = np.array(
    [[20, 20, 20], [120, 120, 120], [230, 230, 230], [40, 40, 210], [40, 70, 110], [40, 210, 230],
     [60, 170, 50], [210, 80, 40]]
)  # fmt: skip


def painted_crops(scenes: int, objects: int = 8, views: int = 2) -> CropSet:
    """Persons of the first scenes, each object of a top and trousers of its own."""
    rng = np.random.default_rng(0)
    count = scenes * objects
    number = np.repeat(np.arange(count), views)
    tops, bottoms = number % 8, number // 8 % 8
    width, height = CROP_SIZE
    crops = rng.integers(90, 140, (len(number), height, width, 3))
    crops[:, 16:36, 14:34] = _COLOURS[tops][:, None, None]
    crops[:, 36:58, 14:34] = _COLOURS[bottoms][:, None, None]
    crops += rng.integers(-12, 13, crops.shape)
    zero = np.zeros_like(number)
    facts = np.stack([tops, bottoms, zero, zero], axis=1).astype(np.int8)
    return CropSet(
        np.clip(crops, 0, 255).astype(np.uint8),
        facts,
        np.full(len(number), 60.0, np.float32),
        zero.astype(np.int8),
        (number // objects).astype(np.int32),
        (number % objects).astype(np.int32),
    )


def write_crops(folder: Path, scenes: int, objects: int = 8) -> Path:
    """Write them as `mmedge lab train recogniser --crops` keeps them."""
    folder.mkdir(parents=True, exist_ok=True)
    np.savez(folder / 'crops_00000.npz', **painted_crops(scenes, objects)._asdict())
    return folder


def coloured_crops(folder: Path, scenes: int) -> Path:
    """Write crops of three plain colours, six looks at an object of each in every scene."""
    label = np.tile(np.repeat(np.arange(3), 6), scenes)
    rng = np.random.default_rng(0)
    crops = rng.integers(20, 60, (len(label), *CROP_SIZE[::-1], 3))
    crops[np.arange(len(label)), :, :, label] += 150
    zero = np.zeros_like(label)
    parts = CropSet(
        crops.astype(np.uint8),
        np.stack([label, zero, zero, zero], axis=1).astype(np.int8),
        np.full(len(label), 60.0, np.float32),
        zero.astype(np.int8),
        np.repeat(np.arange(scenes), 18).astype(np.int32),
        label.astype(np.int32),
    )
    folder.mkdir(parents=True, exist_ok=True)
    np.savez(folder / 'crops_00000.npz', **parts._asdict())
    return folder
