"""What is on the lens in hard flights, and whether a person can be seen through it."""

from __future__ import annotations

import math
from functools import cached_property

import cv2
import numpy as np

from mmedge_lab.simulation.hardships import LensFaults, within
from mmedge_lab.simulation.scenario import SeedStream, generator
from mmedge_lab.simulation.textures import Floats, Image
from mmedge_lab.simulation.view import Lens, view_at
from mmedge_lab.simulation.world import World
from mmedge_ros.core.data_types import Box, FloatArray

# A pixel that keeps less of its contrast shows nothing.
_BLIND = 0.35
# What is on the lens is far out of focus, px.
_SOFT, _SMEARED = 5.0, 16.0
_VEIL = 0.25  # of the picture's contrast that a very dirty lens takes everywhere
_COARSE = 16  # px that a smear spreads things over
_MUD = np.array([48.0, 62.0, 78.0])
_LEAF = np.array([22.0, 50.0, 42.0])
_CAP = np.array([3.0, 3.0, 3.0])
# Light from so far outside of the picture still falls into it, px; it fades by e over ``_FADE``.
_BESIDE, _FADE = 200, 160.0
_WARM = (0.93, 0.98, 1.0)


class CameraFaults:
    """The faults of one world's camera; without hardships it has none."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._size = (world.rig.camera.width, world.rig.camera.height)
        self._on_lens = world.hard.lens if world.hard else LensFaults()
        self._level = min(world.light.ambient + 0.5 * world.light.sun, 1.0)

    def clear(self, t: float, box: Box | None, distance: float) -> bool:
        """Tell whether the camera is up at ``t`` s and its picture could show what is in a box.

        :param box: in the picture, pixels; None asks for the rest alone
        :param distance: of the person from the camera, m
        """
        hard = self._world.hard
        if hard is None:
            return True
        blind = hard.unlit or within((*hard.camera_silent, *hard.lens.covered), t)
        if blind or distance > hard.fog:
            return False
        if box is None:
            return True
        x0, y0, x1, y1 = (round(edge) for edge in box)
        # A box that rounds to no pixel at all is judged by the nearest one.
        x0, y0 = min(x0, self._size[0] - 1), min(y0, self._size[1] - 1)
        kept = self.kept(t, (slice(y0, max(y1, y0 + 1)), slice(x0, max(x1, x0 + 1))))
        return bool((kept < _BLIND).mean() <= 0.5)

    def kept(self, t: float, part: tuple[slice, slice] = (slice(None),) * 2) -> FloatArray:
        """Return the share (H, W) of its contrast that dirt and glare leave part of a picture."""
        clean = np.full(self._size[::-1], 255, np.uint8)
        kept = (self._dirt[0][..., 0] if self._on_lens.dirt else clean)[part] / 255.0
        glow = self._glow(t)
        return kept if glow is None else kept * (1.0 - glow[part] / 255.0)

    def strike(self, picture: Image, t: float) -> Image:
        """Return a picture (H, W, 3) as it comes through what is on the lens at ``t`` s."""
        if within(self._on_lens.covered, t):
            return self._cover
        if self._on_lens.dirt:
            picture = self._through_dirt(picture)
        glow = self._glow(t)
        if glow is not None:
            kept = cv2.merge([255 - glow] * 3)
            light = cv2.merge([cv2.convertScaleAbs(glow, alpha=share) for share in _WARM])
            picture = np.asarray(
                cv2.add(cv2.multiply(picture, kept, scale=1.0 / 255.0), light), np.uint8
            )
        return picture

    @cached_property
    def _cover(self) -> Image:
        """A cap, or a leaf that some light shines through: no edges, hardly any detail."""
        random = generator(self._world.seed, SeedStream.LENS)
        colour = _CAP if random.random() < 0.5 else _LEAF * self._level
        shades = np.rint(random.uniform(0.8, 1.2, (3, 4, 1)) * colour)
        return np.asarray(cv2.resize(shades, self._size, interpolation=cv2.INTER_CUBIC), np.uint8)

    @cached_property
    def _dirt(self) -> tuple[Image, Image, Image]:
        """Shares of 255 (H, W, 3) of the picture and of a smeared one, and dirt in its light."""
        amount, random = self._on_lens.dirt, generator(self._world.seed, SeedStream.LENS)
        dirt, smears = np.zeros((2, *self._size[::-1]), np.uint8)

        def places(count: float) -> list[list[int]]:
            chosen = random.integers(0, self._size, (round(count), 2))
            return [[int(x), int(y)] for x, y in chosen]

        for place in places(50 * amount):
            level = int(255 * random.uniform(0.5, 1.0))
            cv2.circle(dirt, place, int(3 * math.exp(random.uniform(0.0, 2.2))), level, -1)
        for x, y in places(4 * amount):  # splashes of mud
            size = random.integers(25, 75, 2).tolist()
            cv2.ellipse(dirt, (x, y), size, float(random.uniform(0, 180)), 0, 360, 250, -1)
        for begin, end in zip(places(3), places(3), strict=True):
            cv2.line(smears, begin, end, int(255 * amount * random.uniform(0.5, 0.9)), 70)
        covered, smeared = (
            np.asarray(cv2.GaussianBlur(mask, (0, 0), sigma)[..., None] / 255.0, np.float64)
            for mask, sigma in ((dirt, _SOFT), (smears, _SMEARED))
        )
        through = (1.0 - covered) * (1.0 - _VEIL * amount)
        shares = through * (1.0 - smeared), through * smeared, covered * _MUD * self._level / 255.0
        kept, spread, mud = (
            np.rint(255.0 * share * np.ones(3)).astype(np.uint8) for share in shares
        )
        return kept, spread, mud

    def _through_dirt(self, picture: Image) -> Image:
        kept, smeared, mud = self._dirt
        wide, high = self._size
        coarse = cv2.resize(
            picture, (wide // _COARSE, high // _COARSE), interpolation=cv2.INTER_AREA
        )
        spread = cv2.multiply(cv2.resize(coarse, (wide, high)), smeared, scale=1.0 / 255.0)
        seen = cv2.add(cv2.multiply(picture, kept, scale=1.0 / 255.0), spread)
        # The veil scatters light from all over the picture into each of its pixels.
        scattered = _VEIL * self._on_lens.dirt * np.array(cv2.mean(coarse))
        return np.asarray(cv2.add(cv2.add(seen, mud), scattered), np.uint8)

    @cached_property
    def _lens(self) -> Lens:
        return Lens(self._world.rig.camera)

    @cached_property
    def _light_around(self) -> Floats:
        """Shares of stray light around its source, which is in the middle."""
        amount, random = self._on_lens.glare, generator(self._world.seed, SeedStream.LENS)
        x, y = (np.arange(-(n + _BESIDE), n + _BESIDE, dtype=np.float32) for n in self._size)
        away = np.hypot(x[None], y[:, None])
        angle = np.arctan2(y[:, None], x[None]) - random.uniform(0.0, 3.0)
        beyond = np.maximum(away - (14.0 + 30.0 * amount), 0.0)
        halo = 0.7 * np.exp(-beyond / (40.0 + 80.0 * amount))
        # Six blades of the diaphragm make six streaks.
        streaks = 0.5 * amount * np.abs(np.cos(3.0 * angle)) ** 60 * np.exp(-beyond / 150.0)
        veil = amount * (0.08 + 0.3 / (1.0 + (away / 220.0) ** 2))
        disc = beyond == 0.0
        return np.asarray(np.where(disc, 1.0, np.minimum(halo + streaks + veil, 1.0)), np.float32)

    def _glow(self, t: float) -> Image | None:
        """Return how much (H, W) of 255 stray light takes of the picture; None for none."""
        if not self._on_lens.glare:
            return None
        view = view_at(self._world, self._lens, t)
        source = view.to_optical.rotate(self._world.light.sun_direction)
        wide, high = self._size
        place = self._lens.project(source[None])[0]
        nearest = np.clip(place, 0.0, (wide - 1, high - 1))
        strength = math.exp(-math.dist(place, nearest) / _FADE)
        if strength < 0.02:
            return None
        x, y = np.rint(np.clip(place, -_BESIDE, np.add((wide, high), _BESIDE - 1))).astype(int)
        top, left = high + _BESIDE - y, wide + _BESIDE - x
        crop = self._light_around[top : top + high, left : left + wide]
        return np.asarray(cv2.convertScaleAbs(crop, alpha=255.0 * strength), np.uint8)
