"""How far ahead every pixel of a canvas meets ground that is not flat.

From the eye the ground is looked at along azimuths: of each, the highest elevation so far is what
can be seen, and what lies lower and farther is hidden. Over azimuth and elevation the inverse
distance is nearly linear, so that a coarse table of it is interpolated well.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass

import cv2
import numpy as np

from mmedge_lab.simulation.painting_order import Standing
from mmedge_lab.simulation.textures import Floats, Image
from mmedge_lab.simulation.view import Lens, View
from mmedge_lab.simulation.world import Terrain
from mmedge_ros.core.data_types import FloatArray

_GRID = 8  # px between rays
_COLUMN, _ROW = 0.02, 0.002  # rad between azimuths and elevations of the table
_CREST = 0.04  # of the inverse distance: more is no slope
NOTHING = 400.0  # m: farther is no ground
_NEAREST, _SAMPLES = 0.4, 256
_MARGIN = 14  # px, half of the longest smear


class GroundDepth:
    """Depths of a terrain on canvases of one lens."""

    def __init__(self, terrain: Terrain, lens: Lens) -> None:
        self._terrain = terrain
        self._shape = (lens.height, lens.width)
        v, u = ((np.arange(math.ceil(n / _GRID) + 2) - 0.5) * _GRID - 0.5 for n in self._shape)
        x, y = np.meshgrid((u - lens.centre[0]) / lens.focal, (v - lens.centre[1]) / lens.focal)
        self._rays = np.stack([x, y, np.ones_like(x)], axis=-1)
        self._away = np.geomspace(_NEAREST, NOTHING, _SAMPLES)

    def at(self, view: View) -> VisibleGround:
        """Find what of the ground is seen."""
        rays = self._rays @ view.to_optical.rotation
        ahead = view.to_optical.rotation[2]
        bearing = math.atan2(ahead[1], ahead[0])
        azimuth = np.arctan2(rays[..., 1], rays[..., 0]) - bearing
        azimuth = (azimuth + math.pi) % (2.0 * math.pi) - math.pi
        level = np.hypot(rays[..., 0], rays[..., 1])
        elevation = np.arctan2(rays[..., 2], level)
        left, low = float(azimuth.min()), float(elevation.min())
        columns = np.arange(left, float(azimuth.max()) + _COLUMN, _COLUMN)
        rows = np.arange(low, float(elevation.max()) + _ROW, _ROW)
        table = self._table(view.position, bearing + columns, rows)
        grid = np.stack([(azimuth - left) / _COLUMN, (elevation - low) / _ROW, level], axis=-1)
        size = (grid.shape[1] * _GRID, grid.shape[0] * _GRID)
        fine = cv2.resize(grid.astype(np.float32), size, interpolation=cv2.INTER_LINEAR)
        height, width = self._shape
        column, row, level = cv2.split(fine[_GRID : _GRID + height, _GRID : _GRID + width])
        near, step = (
            cv2.remap(table, column, row, how, borderMode=cv2.BORDER_REPLICATE)
            for how in (cv2.INTER_LINEAR, cv2.INTER_NEAREST)
        )
        # Between a crest and what is behind it there is nothing.
        cv2.copyTo(step, (np.abs(near - step) > _CREST * step).view(np.uint8), near)
        depths = 1.0 / np.maximum(near * level, np.float32(1.0 / NOTHING))
        return VisibleGround(depths.astype(np.float32), view)

    def _table(self, eye: FloatArray, azimuths: FloatArray, elevations: FloatArray) -> Floats:
        """Return the inverse distance (R, C) 1/m along the ground, 0 for the sky."""
        towards = np.column_stack([np.cos(azimuths), np.sin(azimuths)])
        places = eye[:2] + towards[:, None] * self._away[:, None]
        seen = np.arctan2(self._terrain.heights(places) - eye[2], self._away)
        seen = np.maximum.accumulate(seen, axis=1)
        # All azimuths in one row: each has a span of its own, ends at the sky above its horizon
        # and begins with the nearest ground.
        top = seen[:, -1:] + 1e-9
        knots = np.hstack([np.full_like(top, -2.0), seen, top, np.full_like(top, 2.0)])
        inverse = np.concatenate([[1.0 / _NEAREST], 1.0 / self._away, [0.0, 0.0]])
        spans = 10.0 * np.arange(len(azimuths))[:, None]
        found = np.interp(
            (elevations + spans).ravel(), (knots + spans).ravel(), np.tile(inverse, len(spans))
        )
        return np.ascontiguousarray(found.reshape(len(spans), -1).T, np.float32)


@dataclass(frozen=True, eq=False)
class VisibleGround:
    """A terrain from a view: ``depths`` (H, W) m, ``NOTHING`` where there is none."""

    depths: Floats
    view: View

    def shows(self, point: FloatArray) -> bool:
        """Tell whether no ground is before a point (3,) m on it."""
        place, ahead = self.view.canvas_of(point)
        row, column = np.clip(place[::-1], 0, np.subtract(self.depths.shape, 1)).astype(int)
        return bool(self.depths[row, column] > _limit(float(ahead)))

    @contextmanager
    def spared(self, canvas: Image, standing: Standing) -> Iterator[None]:
        """Keep a thing that is painted meanwhile off the ground before it."""
        ends = np.clip([standing.left - _MARGIN, standing.right + _MARGIN], 0, canvas.shape[1])
        columns = slice(*ends.astype(int).tolist())
        place = np.append(standing.place, standing.height)
        ahead = float(self.view.to_optical.apply(place)[2]) - standing.reach
        nearer = (self.depths[:, columns] < np.float32(_limit(ahead))).view(np.uint8)
        before = canvas[:, columns].copy()
        yield
        if before.size:
            cv2.copyTo(before, nearer, canvas[:, columns])


def _limit(ahead: float) -> float:
    """Return how near (m) ground must be to hide what is ``ahead`` m deep."""
    # The ground under a pixel grows with the square of the depth.
    return ahead - 0.3 - 6e-4 * ahead * ahead


def spared(
    ground: VisibleGround | None, canvas: Image, standing: Standing
) -> AbstractContextManager[None]:
    """Keep a thing that is painted meanwhile off ground before it, if it is not flat."""
    return nullcontext() if ground is None else ground.spared(canvas, standing)
