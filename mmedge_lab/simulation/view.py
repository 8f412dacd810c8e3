"""From the world into the picture: a pinhole canvas first, the lens's distortion after it.

Everything is painted on a canvas without distortion, a little larger than the picture, on which
straight edges stay straight and the ground is one homography. One fixed resampling then bends
the canvas into the picture exactly as the camera model projects points.

Canvas and picture pixels count from the centre of the upper left pixel.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import cv2
import numpy as np
from numpy.typing import NDArray

from mmedge_lab.simulation import SimulationError
from mmedge_lab.simulation.textures import Image
from mmedge_lab.simulation.world import World
from mmedge_ros.core.data_types import Box, FloatArray
from mmedge_ros.geometry.projection import CameraModel
from mmedge_ros.geometry.transforms import Transform

# Points nearer to the camera's plane than this are moved away from it, in metres.
NEAR = 0.05
# What lies farther off the axis than this (tangent) is moved there: never in a picture.
_WIDEST = 3.0
# A rolling-shutter sensor of this class reads out 480 rows in so many s.
READOUT = 0.008
_GRID = 4
_MARGIN = 3
# Bits after the point of coordinates that OpenCV draws.
SHIFT = 4
# Points that outline a sphere: exact to its sides, above and below, and elsewhere within 3.5 %
# of its radius.
OUTLINE_POINTS = 12
_CIRCLE = np.linspace(0.0, 2.0 * math.pi, OUTLINE_POINTS, endpoint=False)


class Lens:
    """One camera's canvas and how it becomes a picture."""

    def __init__(self, camera: CameraModel) -> None:
        self.camera = camera
        plane = _plane_of_pixels(camera)
        low = plane.reshape(-1, 2).min(axis=0)
        high = plane.reshape(-1, 2).max(axis=0)
        if not np.isfinite(low).all() or max(-low.min(), high.max()) > _WIDEST:
            raise SimulationError(
                'the camera looks wider than a flat canvas can hold; draw one with less than '
                f'{math.degrees(math.atan(_WIDEST)):.0f} degrees off its axis'
            )
        self.focal = float(camera.k[0, 0])
        size = np.ceil((high - low) * self.focal).astype(int) + 2 * _MARGIN
        self.width, self.height = int(size[0]), int(size[1])
        self.centre = -low * self.focal + _MARGIN
        maps = (plane * self.focal + self.centre).astype(np.float32)
        self._maps = maps
        # Whole and 32nds of pixels apart, which is what resampling is fastest with.
        self._whole, self._parts = cv2.convertMaps(
            np.ascontiguousarray(maps[..., 0]), np.ascontiguousarray(maps[..., 1]), cv2.CV_16SC2
        )
        # 255 where the canvas is part of the picture.
        self.inside: Image = np.zeros((self.height, self.width), np.uint8)
        border = np.concatenate([maps[0], maps[:, -1], maps[-1, ::-1], maps[::-1, 0]])
        cv2.fillPoly(self.inside, [np.rint(border).astype(np.int32)], 255)
        self._limit = _limit(camera)

    @cached_property
    def _rolling(self) -> NDArray[np.float32]:
        """How far (3, H, W, 2) px things move until a row is read, for each rad/s of turning."""
        x, y = np.moveaxis((self._maps - self.centre) / self.focal, -1, 0)
        # What stands still at (x, y, 1) goes by -turn x (x, y, 1), seen in perspective.
        flow = np.array([[x * y, 1.0 + y * y], [-1.0 - x * x, -x * y], [y, -x]])
        row = (np.arange(len(x)) - 0.5 * (len(x) - 1)) / len(x)
        moved = self.focal * READOUT * row[:, None] * flow
        return np.ascontiguousarray(np.moveaxis(moved, 1, -1), np.float32)

    def rolled(self, box: Box, turn: FloatArray | None) -> Box:
        """Return where a box comes out whose rows were read while the camera turned."""
        if turn is None:
            return box
        edges = np.array(box)
        x, y = 0.5 * (edges[:2] + edges[2:])
        size = np.array([self.camera.width, self.camera.height])
        places = np.array([[edges[0], y], [x, edges[1]], [edges[2], y], [x, edges[3]]])
        columns, rows = np.clip(places, 0.0, size - 1).astype(int).T
        moved = (turn @ self._rolling[:, rows, columns].reshape(3, -1)).reshape(4, 2)
        ends = np.tile(size, 2)
        # Edges that the picture cuts stay there.
        within = (edges > 0.0) & (edges < ends)
        edges = edges + within * moved[range(4), [0, 1, 0, 1]]
        return Box(*np.clip(edges, 0.0, ends).tolist())

    def bend(self, canvas: Image, turn: FloatArray | None = None) -> Image:
        """Return the picture of a canvas, ``turn`` as `View` has it."""
        columns, rows = self._whole, self._parts
        if turn is not None:
            rolling = np.tensordot(turn.astype(np.float32), self._rolling, 1)
            columns, rows = cv2.split(self._maps - rolling)
        bent = cv2.remap(canvas, columns, rows, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
        return np.asarray(bent, np.uint8)

    def project(self, points: FloatArray) -> FloatArray:
        """Return picture pixels (N, 2) of points (N, 3) in the optical frame, never NaN.

        Points beside or behind the camera come out far outside the picture.
        """
        depth = np.maximum(points[:, 2:], NEAR)
        plane = points[:, :2] / depth
        radius = np.hypot(plane[:, 0], plane[:, 1])[:, None]
        plane = plane * np.minimum(1.0, self._limit / np.maximum(radius, 1e-9))
        pixels, _ = self.camera.project(np.column_stack([plane, np.ones(len(plane))]))
        return pixels


def _limit(camera: CameraModel) -> float:
    """Return how far off the axis (tangent) the camera model still projects."""
    radii = np.linspace(_WIDEST, 0.0, 301)
    points = np.column_stack([radii, np.zeros_like(radii), np.ones_like(radii)])
    pixels, _ = camera.project(points)
    return float(radii[np.flatnonzero(np.isfinite(pixels[:, 0]))[0]])


def _plane_of_pixels(camera: CameraModel) -> FloatArray:
    """Return (H, W, 2), where in the undistorted plane z = 1 the pixels look.

    The model is inverted on a grid and interpolated, good to a hundredth of a pixel.
    """
    columns = np.arange(-1, camera.width // _GRID + 2) * _GRID + 0.5 * (_GRID - 1)
    rows = np.arange(-1, camera.height // _GRID + 2) * _GRID + 0.5 * (_GRID - 1)
    x, y = np.meshgrid(columns, rows)
    rays = camera.bearing(np.column_stack([x.ravel(), y.ravel()]))
    plane = (rays[:, :2] / rays[:, 2:]).reshape(len(rows), len(columns), 2)
    size = (len(columns) * _GRID, len(rows) * _GRID)
    fine = cv2.resize(plane, size, interpolation=cv2.INTER_LINEAR)
    inner = fine[_GRID : _GRID + camera.height, _GRID : _GRID + camera.width]
    return np.asarray(inner, np.float64)


@dataclass(frozen=True, eq=False)
class View:
    """The camera at one instant.

    ``to_optical`` maps odom to the optical frame; ``position`` (3,) m is the camera's in odom.
    It turns by ``turn`` (3,) rad/s in its own axes while rows are read one after the other; None
    where all are read at once.
    """

    lens: Lens
    to_optical: Transform
    position: FloatArray
    turn: FloatArray | None = None

    def canvas(self, optical: FloatArray) -> FloatArray:
        """Return canvas pixels (..., 2) of points (..., 3) in the optical frame."""
        plane = optical[..., :2] / np.maximum(optical[..., 2:], NEAR)
        plane = np.minimum(np.maximum(plane, -_WIDEST), _WIDEST)
        return np.asarray(plane * self.lens.focal + self.lens.centre, np.float64)

    def canvas_of(self, points: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return canvas pixels (..., 2) and depths (...) m of points (..., 3) in odom."""
        optical = points @ self.to_optical.rotation.T + self.to_optical.translation
        return self.canvas(optical), optical[..., 2]

    def pixels_per_metre(self, depth: float) -> float:
        """Return the scale of the canvas at a depth in m."""
        return self.lens.focal / max(depth, NEAR)

    def matrix(self) -> FloatArray:
        """Return (3, 4): homogeneous points of odom to homogeneous canvas pixels."""
        f, (u, v) = self.lens.focal, self.lens.centre
        k = np.array([[f, 0.0, u], [0.0, f, v], [0.0, 0.0, 1.0]])
        move = np.column_stack([self.to_optical.rotation, self.to_optical.translation])
        return np.asarray(k @ move, np.float64)


def view_at(world: World, lens: Lens, t: float) -> View:
    """Return what the world's camera looks through at an instant."""
    drone = world.path.state(t)
    pose = drone.pose.compose(world.rig.camera_pose)
    turn = None if world.hard is None else pose.rotation.T @ drone.angular_velocity
    return View(lens, pose.inverse(), pose.translation, turn)


def sphere_outlines(centres: FloatArray, radii: FloatArray) -> FloatArray:
    """Return (N, K, 3): the circle on each sphere that a viewer at the origin sees as its rim.

    A viewer inside of a sphere sees no rim; it gets one of a sphere half as large as its
    distance.
    """
    distance = np.linalg.norm(centres, axis=1)
    distance = np.maximum(distance, 1e-6)
    towards = np.where(distance[:, None] > 1e-6, centres / distance[:, None], [[0.0, 0.0, 1.0]])
    radii = np.minimum(radii, 0.5 * distance)
    sine = radii / distance
    # Any axis that is not along the view will do to span the circle's plane.
    upright = np.where(np.abs(towards[:, 1:2]) < 0.9, [[0.0, 1.0, 0.0]], [[1.0, 0.0, 0.0]])
    across = np.cross(towards, upright)
    across /= np.linalg.norm(across, axis=1, keepdims=True)
    along = np.cross(towards, across)
    middle = centres * (1.0 - sine * sine)[:, None]
    rim = (radii * np.sqrt(1.0 - sine * sine))[:, None, None]
    circle = (
        np.cos(_CIRCLE)[None, :, None] * across[:, None]
        + np.sin(_CIRCLE)[None, :, None] * along[:, None]
    )
    return np.asarray(middle[:, None] + rim * circle, np.float64)


def fixed_point(pixels: FloatArray) -> NDArray[np.int32]:
    """Return canvas pixels as OpenCV's drawing functions take them with ``shift=SHIFT``."""
    return np.rint(pixels * (1 << SHIFT)).astype(np.int32)
