"""Surfaces made of noise: what grass, asphalt, gravel, paving, walls and leaves look like.

Tiles repeat without a seam. Colours are albedos, BGR uint8.
"""

from __future__ import annotations

import math
from typing import TypeVar, cast

import cv2
import numpy as np
from numpy.typing import NDArray

from mmedge_ros.core.data_types import FloatArray

Image = NDArray[np.uint8]
Floats = NDArray[np.float32]
Pixels = TypeVar('Pixels', Image, Floats)

TILE = 1024


def noise_tile(
    random: np.random.Generator, size: int, slope: float, coarse: float, fine: float = 1.5
) -> Floats:
    """Return noise (size, size) of mean 0 and deviation 1 that repeats.

    Its amplitude falls with frequency to the power of ``slope``; waves longer than ``coarse``
    or shorter than ``fine`` pixels are left out.
    """
    # What changes slowly is made small and enlarged; what changes fast repeats sooner.
    if fine >= 8.0:
        tile = noise_tile(random, size // 4, slope, coarse / 4.0, fine / 4.0)
        # With a margin from the other side, so that it repeats as it did.
        around = np.pad(tile, 2, mode='wrap')
        side = 4 * len(around)
        larger = cv2.resize(around, (side, side), interpolation=cv2.INTER_CUBIC)
        return np.asarray(larger[8:-8, 8:-8], np.float32)
    if coarse <= size / 8.0 and size > 256:
        return np.tile(noise_tile(random, size // 2, slope, coarse, fine), (2, 2))
    spectrum = np.fft.rfft2(random.standard_normal((size, size), np.float32))
    frequency = np.hypot(np.fft.fftfreq(size)[:, None], np.fft.rfftfreq(size)[None])
    frequency[0, 0] = 1.0
    weight = frequency**-slope * (frequency >= 1.0 / coarse) * (frequency <= 1.0 / fine)
    noise = np.fft.irfft2(spectrum * weight, s=(size, size))
    return np.asarray(noise / max(float(noise.std()), 1e-9), np.float32)


def pyramid(picture: Pixels, least: int) -> list[Pixels]:
    """Return a picture and ever smaller ones of it, until a side has ``least`` pixels or fewer."""
    pictures = [picture]
    while min(pictures[-1].shape[:2]) > least:
        size = (pictures[-1].shape[1] // 2, pictures[-1].shape[0] // 2)
        smaller = cv2.resize(pictures[-1], size, interpolation=cv2.INTER_AREA)
        pictures.append(cast(Pixels, smaller))
    return pictures


def surface_tile(surface: str, resolution: float, random: np.random.Generator) -> Image:
    """Return a tile (TILE, TILE, 3) of a ground's surface at ``resolution`` m per pixel."""
    make = {'grass': _grass, 'asphalt': _asphalt, 'gravel': _gravel, 'paving': _paving}[surface]
    return _colours(make(resolution, random))


def _grass(resolution: float, random: np.random.Generator) -> Floats:
    base = np.array([48.0, 104.0, 88.0]) * random.uniform(0.85, 1.1)
    dry = np.array([70.0, 118.0, 128.0])
    blades = noise_tile(random, TILE, 0.35, 0.25 / resolution, 1.2)
    clumps = noise_tile(random, TILE, 1.1, 3.0 / resolution, 0.2 / resolution)
    patches = noise_tile(random, TILE, 1.6, TILE, 1.5 / resolution)
    yellow = random.uniform(0.1, 0.45) + 0.16 * patches + 0.08 * clumps
    colour = base + (dry - base) * np.clip(yellow, 0.0, 1.0)[..., None]
    level = 1.0 + 0.15 * blades + 0.07 * clumps + 0.05 * patches
    return np.asarray(colour * level[..., None], np.float32)


def _asphalt(resolution: float, random: np.random.Generator) -> Floats:
    base = np.array([98.0, 97.0, 95.0]) * random.uniform(0.75, 1.2)
    grain = noise_tile(random, TILE, 0.1, 0.12 / resolution, 1.0)
    stains = noise_tile(random, TILE, 1.7, TILE, 0.5 / resolution)
    level = 1.0 + 0.07 * grain + 0.06 * stains
    cracks = np.abs(noise_tile(random, TILE, 1.5, 6.0 / resolution, 0.1 / resolution)) < 0.012
    level -= 0.22 * cv2.GaussianBlur(cracks.astype(np.float32), (3, 3), 0.0)
    return np.asarray(base * level[..., None], np.float32)


def _gravel(resolution: float, random: np.random.Generator) -> Floats:
    base = np.array([128.0, 146.0, 158.0]) * random.uniform(0.85, 1.1)
    stones = noise_tile(random, TILE, 0.2, 0.1 / resolution + 2.0, 1.0)
    worn = noise_tile(random, TILE, 1.4, 8.0 / resolution, 0.3 / resolution)
    return np.asarray(base * (1.0 + 0.13 * stones + 0.07 * worn)[..., None], np.float32)


def _paving(resolution: float, random: np.random.Generator) -> Floats:
    base = np.array([138.0, 146.0, 150.0]) * random.uniform(0.8, 1.1)
    # Whole slabs per tile, so that it repeats.
    count = max(1, round(TILE * resolution / random.choice((0.3, 0.5, 0.6))))
    slab = np.arange(TILE) * count / TILE
    shade = random.normal(0.0, 0.055, (count, count)).astype(np.float32)
    index = slab.astype(int)
    level = 1.0 + shade[np.ix_(index, index)]
    joint = (slab % 1.0) < max(0.03, 1.0 * count / TILE)
    level[joint] -= 0.16
    level[:, joint] -= 0.16
    level += 0.045 * noise_tile(random, TILE, 0.3, 0.3 / resolution, 1.0)
    level += 0.05 * noise_tile(random, TILE, 1.6, TILE, 0.5 / resolution)
    return np.asarray(base * level[..., None], np.float32)


def wall_texture(
    width: float, height: float, colour: tuple[int, int, int], lit: float,
    random: np.random.Generator,
) -> tuple[Image, NDArray[np.float32]]:  # fmt: skip
    """Return a wall (H, W, 3) seen from outside, first row on top, and what it emits.

    Walls over 3.2 m get windows, of which a share of ``lit`` shines; lower ones are boards or
    corrugated steel. The emission (H, W) is 0..1.

    :param width: of the wall, m; ``height`` too
    """
    scale = min(24.0, 640.0 / max(width, height))
    size = (max(2, round(height * scale)), max(2, round(width * scale)))
    grain = noise_tile(random, 256, 0.5, 64)
    rows, columns = np.arange(size[0]) % 256, np.arange(size[1]) % 256
    level = 1.0 + 0.035 * grain[np.ix_(rows, columns)]
    # Rain leaves walls darker at the foot.
    level -= 0.1 * np.linspace(0.0, 1.0, size[0], dtype=np.float32)[:, None] ** 6
    wall = np.asarray(np.array(colour, np.float32) * level[..., None], np.float32)
    glow = np.zeros(size, np.float32)
    if height > 3.2:
        _storeys(wall, glow, width, height, scale, lit, random)
    elif height > 2.0:
        ribs = 1.0 + 0.12 * np.sin(np.arange(size[1]) * (2.0 * math.pi / (0.3 * scale)))
        wall *= ribs[None, :, None].astype(np.float32)
    return _colours(wall), glow


def _storeys(
    wall: Floats, glow: Floats, width: float, height: float, scale: float, lit: float,
    random: np.random.Generator,
) -> None:  # fmt: skip
    storeys = max(1, round(height / 3.1))
    storey = height / storeys
    spacing = random.uniform(2.0, 3.4)
    columns = max(1, int(width / spacing))
    wide, high = random.uniform(0.9, 1.4), random.uniform(1.2, 1.7)
    frame = (215, 215, 215) if random.random() < 0.7 else (60, 60, 65)
    glass = np.array([92.0, 80.0, 70.0]) * random.uniform(0.6, 1.2)
    door = int(random.integers(columns))
    for row in range(storeys):
        sill = height - (storey * row + 0.9)
        for column in range(columns):
            x = (column + 0.5) * width / columns
            pane = glass * random.uniform(0.6, 1.3)
            bottom, tall = sill, high
            if row == 0 and column == door:
                bottom, tall, pane = height, 2.1, np.array([50.0, 60.0, 85.0])
            box = np.array([x - 0.5 * wide, bottom - tall, x + 0.5 * wide, bottom]) * scale
            x0, y0, x1, y1 = (int(v) for v in np.rint(box))
            cv2.rectangle(wall, (x0 - 1, y0 - 1), (x1 + 1, y1 + 1), frame, -1)
            cv2.rectangle(wall, (x0, y0), (x1, y1), pane.tolist(), -1)
            if tall == high:
                cv2.line(wall, ((x0 + x1) // 2, y0), ((x0 + x1) // 2, y1), frame, 1)
                if random.random() < lit:
                    cv2.rectangle(glow, (x0, y0), (x1, y1), random.uniform(0.45, 1.0), -1)


def lattice_noise(
    lattice: Floats, cell: float, origin: FloatArray, resolution: float, shape: tuple[int, int]
) -> Floats:
    """Return noise (shape) with cells of ``cell`` m, anchored in the world.

    ``origin`` (2,) m is where pixel (0, 0) lies; y grows with the rows.
    """
    step = resolution / cell
    matrix = np.array([[step, 0.0, origin[0] / cell], [0.0, step, origin[1] / cell]])
    flags = cv2.INTER_CUBIC | cv2.WARP_INVERSE_MAP
    size = (shape[1], shape[0])
    sampled = cv2.warpAffine(lattice, matrix, size, flags=flags, borderMode=cv2.BORDER_WRAP)
    return np.asarray(sampled, np.float32)


def _colours(values: Floats) -> Image:
    return np.asarray(np.clip(np.rint(values), 0, 255), np.uint8)
