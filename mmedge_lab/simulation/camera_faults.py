"""What a camera's lens does to hard flights, and of whom its pictures can show anything."""

from __future__ import annotations

import math
from functools import cached_property

import cv2
import numpy as np

from mmedge_lab.simulation.hardships import within
from mmedge_lab.simulation.scenario import SeedStream, generator
from mmedge_lab.simulation.textures import Floats, Image
from mmedge_lab.simulation.view import Lens, view_at
from mmedge_lab.simulation.world import World
from mmedge_ros.core.data_types import Box, FloatArray

# A pixel that keeps less of its contrast shows nothing.
_BLIND = 0.35
# What is on the lens is far out of focus, px.
_SOFT, _SMEARED = 5.0, 16.0
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
        self._camera = world.rig.camera
        light = world.light
        self._level = min(light.ambient + 0.5 * light.sun, 1.0)

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
        kept = self.kept(t)[y0 : max(y1, y0 + 1), x0 : max(x1, x0 + 1)]
        return bool((kept < _BLIND).mean() <= 0.5)

    def kept(self, t: float) -> FloatArray:
        """Return the share (H, W) of its contrast that dirt and glare leave a picture."""
        hard = self._world.hard
        kept = np.ones((self._camera.height, self._camera.width))
        if hard is not None and hard.lens.dirt:
            kept = self._dirt[0]
        glow = self._glow(t)
        return kept if glow is None else kept * (1.0 - glow / 255.0)

    def strike(self, picture: Image, t: float) -> Image:
        """Return a picture (H, W, 3) as it comes through what is on the lens at ``t`` s."""
        hard = self._world.hard
        if hard is None:
            return picture
        if within(hard.lens.covered, t):
            return self._cover
        if hard.lens.dirt:
            picture = self._through_dirt(picture)
        glow = self._glow(t)
        if glow is not None:
            kept = cv2.merge([255 - glow] * 3)
            light = cv2.merge([cv2.convertScaleAbs(glow, alpha=share) for share in _WARM])
            picture = np.asarray(
                cv2.add(cv2.multiply(picture, kept, scale=1.0 / 255.0), light), np.uint8
            )
        return picture

    @property
    def _random(self) -> np.random.Generator:
        return generator(self._world.seed, SeedStream.LENS)

    @cached_property
    def _cover(self) -> Image:
        """A cap, or a leaf that some light shines through: no edges, hardly any detail."""
        random = self._random
        colour = _CAP if random.random() < 0.5 else _LEAF * self._level
        shades = random.uniform(0.8, 1.2, (3, 4, 1)) * colour
        size = (self._camera.width, self._camera.height)
        return np.asarray(
            np.rint(cv2.resize(shades, size, interpolation=cv2.INTER_CUBIC)), np.uint8
        )

    @cached_property
    def _dirt(self) -> tuple[FloatArray, FloatArray, FloatArray, float]:
        """Shares (H, W) of the picture, of a smeared one and of dirt, and that of the veil."""
        assert self._world.hard is not None
        amount, random = self._world.hard.lens.dirt, self._random
        wide, high = self._camera.width, self._camera.height
        dirt, smears = np.zeros((high, wide), np.uint8), np.zeros((high, wide), np.uint8)

        def places(count: int) -> list[list[int]]:
            return [[int(x), int(y)] for x, y in random.integers(0, (wide, high), (count, 2))]

        for place in places(round(50 * amount)):
            level = int(255 * random.uniform(0.5, 1.0))
            cv2.circle(dirt, place, int(3 * math.exp(random.uniform(0.0, 2.2))), level, -1)
        for x, y in places(round(4 * amount)):  # splashes of mud
            size = random.integers(25, 75, 2).tolist()
            cv2.ellipse(dirt, (x, y), size, float(random.uniform(0, 180)), 0, 360, 250, -1)
        for begin, end in zip(places(3), places(3), strict=True):
            cv2.line(smears, begin, end, int(255 * random.uniform(0.5, 0.9)), 70)
        covered = np.asarray(cv2.GaussianBlur(dirt, (0, 0), _SOFT) / 255.0, np.float64)
        blurred = np.asarray(
            cv2.GaussianBlur(smears, (0, 0), _SMEARED) * (amount / 255.0), np.float64
        )
        veil = 0.25 * amount
        through = (1.0 - covered) * (1.0 - veil)
        return through * (1.0 - blurred), through * blurred, covered, veil

    @cached_property
    def _dirt_layers(self) -> tuple[Image, Image, Image]:
        kept, smeared, covered, _ = self._dirt
        layers = [cv2.merge([cv2.convertScaleAbs(m, alpha=255.0)] * 3) for m in (kept, smeared)]
        mud = np.rint(covered[..., None] * _MUD * self._level).astype(np.uint8)
        return np.asarray(layers[0], np.uint8), np.asarray(layers[1], np.uint8), mud

    def _through_dirt(self, picture: Image) -> Image:
        kept, smeared, mud = self._dirt_layers
        size = (picture.shape[1], picture.shape[0])
        coarse = cv2.resize(
            picture, (size[0] // _COARSE, size[1] // _COARSE), interpolation=cv2.INTER_AREA
        )
        spread = cv2.multiply(cv2.resize(coarse, size), smeared, scale=1.0 / 255.0)
        seen = cv2.add(cv2.multiply(picture, kept, scale=1.0 / 255.0), spread)
        # The veil scatters light from all over the picture into each of its pixels.
        scattered = self._dirt[3] * np.array(cv2.mean(coarse))
        return np.asarray(cv2.add(cv2.add(seen, mud), scattered), np.uint8)

    @cached_property
    def _lens(self) -> Lens:
        return Lens(self._camera)

    @cached_property
    def _light_around(self) -> Floats:
        """Shares of stray light around its source, which is in the middle."""
        assert self._world.hard is not None
        amount, random = self._world.hard.lens.glare, self._random
        x = np.arange(-(self._camera.width + _BESIDE), self._camera.width + _BESIDE)
        y = np.arange(-(self._camera.height + _BESIDE), self._camera.height + _BESIDE)
        away = np.hypot(x[None], y[:, None]).astype(np.float32)
        angle = np.arctan2(y[:, None], x[None]).astype(np.float32) - random.uniform(0.0, 3.0)
        beyond = np.maximum(away - (14.0 + 30.0 * amount), 0.0)
        halo = 0.7 * np.exp(-beyond / (40.0 + 80.0 * amount))
        # Six blades of the diaphragm make six streaks.
        streaks = 0.5 * amount * np.abs(np.cos(3.0 * angle)) ** 60 * np.exp(-beyond / 150.0)
        veil = amount * (0.08 + 0.3 / (1.0 + (away / 220.0) ** 2))
        disc = beyond == 0.0
        return np.asarray(np.where(disc, 1.0, np.minimum(halo + streaks + veil, 1.0)), np.float32)

    def _glow(self, t: float) -> Image | None:
        """Return how much (H, W) of 255 stray light takes of the picture; None for none."""
        hard = self._world.hard
        if hard is None or not hard.lens.glare:
            return None
        view = view_at(self._world, self._lens, t)
        source = view.to_optical.rotate(self._world.light.sun_direction)
        wide, high = self._camera.width, self._camera.height
        place = self._lens.project(source[None])[0]
        nearest = np.clip(place, 0.0, (wide - 1, high - 1))
        strength = math.exp(-math.dist(place, nearest) / _FADE)
        if strength < 0.02:
            return None
        x, y = np.rint(np.clip(place, -_BESIDE, np.add((wide, high), _BESIDE - 1))).astype(int)
        top, left = high + _BESIDE - y, wide + _BESIDE - x
        crop = self._light_around[top : top + high, left : left + wide]
        return np.asarray(cv2.convertScaleAbs(crop, alpha=255.0 * strength), np.uint8)
