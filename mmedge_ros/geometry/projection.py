"""The camera's pinhole and fisheye models, both ways between points and pixels.

Equations: OpenCV, "Camera Calibration and 3D Reconstruction" (plumb_bob and
rational_polynomial) and "Fisheye camera model" (equidistant); ROS names them in
sensor_msgs/distortion_models.hpp.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mmedge_ros.core.data_types import FloatArray
from mmedge_ros.geometry import GeometryError

# Names as in sensor_msgs, with the counts of coefficients they are used with.
_COEFFICIENTS = {
    'plumb_bob': (0, 4, 5),
    'rational_polynomial': (0, 8, 12, 14),
    'equidistant': (0, 4),
    'none': (0,),
}
_MAX_SIDE = 65_536

# A point this near the camera's plane has no meaningful pixel.
_MIN_DEPTH = 1e-3
# Field angles that the limit of the model is searched on; beyond 89 degrees a planar model
# ends. A step is a tenth of a degree.
_FIELD_ANGLES = np.radians(np.linspace(0.0, 89.0, 891))
_NEWTON_STEPS = 8
_NEWTON_DELTA = 1e-6
# In normalised image coordinates: far less than a hundredth of a pixel.
_CONVERGED = 1e-7
_SHIFTS = _NEWTON_DELTA * np.array([[0, 0], [1, 0], [-1, 0], [0, 1], [0, -1]])


@dataclass(frozen=True, eq=False)
class CameraModel:
    """Intrinsic calibration of one camera.

    ``k`` is the (3, 3) camera matrix in pixels, ``d`` the distortion coefficients in the
    order of camera_info. Pixel (0, 0) is the centre of the upper left pixel.

    :raises GeometryError: if the numbers describe no camera
    """

    width: int
    height: int
    k: FloatArray
    d: FloatArray
    model: str = 'plumb_bob'

    def __post_init__(self) -> None:
        if not (0 < self.width <= _MAX_SIDE and 0 < self.height <= _MAX_SIDE):
            raise GeometryError(
                f'camera of {self.width} x {self.height} px; both must be 1 to {_MAX_SIDE}'
            )
        if self.k.shape != (3, 3) or not np.isfinite(self.k).all():
            raise GeometryError(f'camera matrix {self.k.tolist()} is not 3 x 3 finite numbers')
        if self.k[0, 0] <= 0 or self.k[1, 1] <= 0 or self.k[2, 2] != 1:
            raise GeometryError(
                f'camera is not calibrated: its matrix is {self.k.tolist()}; calibrate it, or '
                'give a calibration file'
            )
        counts = _COEFFICIENTS.get(self.model)
        if counts is None:
            raise GeometryError(
                f'distortion model {self.model!r} is not one of {", ".join(_COEFFICIENTS)}'
            )
        if self.d.ndim != 1 or len(self.d) not in counts or not np.isfinite(self.d).all():
            raise GeometryError(
                f'{self.model} takes {" or ".join(map(str, counts))} finite distortion '
                f'coefficients, not {self.d.tolist()}'
            )
        if np.any(self.d[12:]):
            raise GeometryError(f'a tilted sensor is not supported: {self.d[12:].tolist()} rad')

    @classmethod
    def nominal(cls, width: int, height: int, focal: float) -> CameraModel:
        """Make a model without distortion that looks through the middle of its pictures.

        :param focal: focal length, px
        :raises GeometryError: for wrong sizes
        """
        # Pixel (0, 0) is the centre of the upper left pixel.
        k = np.array([[focal, 0, (width - 1) / 2], [0, focal, (height - 1) / 2], [0, 0, 1.0]])
        return cls(width, height, k, np.zeros(0), 'none')

    @classmethod
    def from_camera_info(cls, message: Any, rectified: bool = False) -> CameraModel:
        """Make a model from a (duck-typed) sensor_msgs/CameraInfo.

        ``rectified``: the pictures are image_rect, so the projection matrix applies and
        nothing is distorted. Binning and region of interest are accounted for.

        :raises GeometryError: for an uncalibrated camera or wrong sizes
        """
        numbers = _floats(message.p, 12, 'p') if rectified else _floats(message.k, 9, 'k')
        k = numbers.reshape(3, -1)[:, :3].copy()
        d = np.zeros(0) if rectified else _floats(message.d, None, 'd')
        model = 'none' if rectified or not len(d) else str(message.distortion_model)
        width, height = int(message.width), int(message.height)
        roi = getattr(message, 'roi', None)
        if roi is not None and roi.width and roi.height:
            k[:2, 2] -= (roi.x_offset, roi.y_offset)
            width, height = int(roi.width), int(roi.height)
        bins = np.array(
            [max(int(getattr(message, f'binning_{axis}', 1)), 1) for axis in 'xy'], np.int64
        )
        # A pixel of the binned picture is centred between those it was made of.
        k[:2, 2] = (k[:2, 2] + 0.5) / bins - 0.5
        k[0, :2] /= bins[0]
        k[1, 1] /= bins[1]
        return cls(width // int(bins[0]), height // int(bins[1]), k, d, model)

    def scaled(self, width: int, height: int) -> CameraModel:
        """Return the model for the same pictures in another size, px."""
        across, down = width / self.width, height / self.height
        k = self.k.copy()
        # The middle of pixel 0 lies at half a pixel, in every scale.
        k[:2, 2] = (k[:2, 2] + 0.5) * (across, down) - 0.5
        k[0, :2] *= across
        k[1, 1] *= down
        return CameraModel(width, height, k, self.d, self.model)

    def project(self, points_optical: ArrayLike) -> tuple[FloatArray, NDArray[np.bool_]]:
        """Return pixels (N, 2) of (N, 3) points in the optical frame, and which are in view.

        Pixels outside the picture are returned as they are; points behind the camera, or so
        far to the side that the distortion model would fold them back, get NaN.

        :raises GeometryError: if the points are not (N, 3)
        """
        points = _rows(points_optical, 3, 'points')
        pixels = np.full((len(points), 2), np.nan)
        with np.errstate(over='ignore', invalid='ignore', divide='ignore'):
            plane = points[:, :2] / points[:, 2:]
            radius = np.hypot(plane[:, 0], plane[:, 1])
            seen = (points[:, 2] > _MIN_DEPTH) & (radius < self._field_of_view[0][-1])
            pixels[seen] = self._distort(plane[seen]) @ self.k[:2, :2].T + self.k[:2, 2]
        size = (self.width, self.height)
        # Pixel centres are whole numbers, so the picture reaches from -0.5 to size - 0.5.
        in_view = seen & ((pixels >= -0.5) & (pixels < np.subtract(size, 0.5))).all(axis=1)
        return pixels, in_view

    def bearing(self, pixels: ArrayLike) -> FloatArray:
        """Return unit vectors (N, 3) in the optical frame towards (N, 2) pixels.

        NaN where the model has no ray: outside the picture of a sound calibration, or more
        than 89 degrees off the axis.

        :raises GeometryError: if the pixels are not (N, 2)
        """
        wanted = _rows(pixels, 2, 'pixels') - self.k[:2, 2]
        wanted = wanted @ self._inverse_k
        plane = self._undistort(wanted)
        rays = np.column_stack([plane, np.ones(len(plane))])
        return np.asarray(rays / np.linalg.norm(rays, axis=1, keepdims=True), np.float64)

    @cached_property
    def _inverse_k(self) -> FloatArray:
        return np.asarray(np.linalg.inv(self.k[:2, :2]).T)

    @cached_property
    def _field_of_view(self) -> tuple[FloatArray, FloatArray]:
        """Radii in the undistorted plane, and distorted, up to where the model folds back."""
        radii = np.tan(_FIELD_ANGLES)
        distorted = radii * self._radial(radii)
        falls = np.flatnonzero(~(np.diff(distorted) > 0))
        end = int(falls[0]) + 1 if len(falls) else len(radii)
        return radii[: max(end, 2)], distorted[: max(end, 2)]

    def _radial(self, radius: FloatArray) -> FloatArray:
        """Return distorted over undistorted radius."""
        if not len(self.d):
            return np.ones_like(radius)
        squared = radius * radius
        if self.model == 'equidistant':
            angle = np.arctan(radius)
            bent = angle * np.polyval([*self.d[::-1], 1.0], angle * angle)
            return np.where(radius > 1e-9, bent / np.maximum(radius, 1e-9), 1.0)
        k1, k2, k3 = self.d[0], self.d[1], self.d[4] if len(self.d) > 4 else 0.0
        factor = ((k3 * squared + k2) * squared + k1) * squared + 1.0
        if len(self.d) >= 8:
            with np.errstate(divide='ignore', invalid='ignore'):
                k4, k5, k6 = self.d[5:8]
                factor = factor / (((k6 * squared + k5) * squared + k4) * squared + 1.0)
        return np.asarray(factor, np.float64)

    def _distort(self, plane: FloatArray) -> FloatArray:
        """Map (N, 2) points of the undistorted plane z = 1 to the distorted one."""
        squared = np.einsum('ij,ij->i', plane, plane)
        bent = plane * self._radial(np.sqrt(squared))[:, None]
        if len(self.d) and self.model != 'equidistant':
            p1, p2 = self.d[2:4]
            x, y = plane.T
            bent[:, 0] += 2 * p1 * x * y + p2 * (squared + 2 * x * x)
            bent[:, 1] += p1 * (squared + 2 * y * y) + 2 * p2 * x * y
        if len(self.d) >= 12:  # thin prism
            bent += np.outer(squared, self.d[8:12:2]) + np.outer(squared**2, self.d[9:12:2])
        return bent

    def _undistort(self, wanted: FloatArray) -> FloatArray:
        """Invert ``_distort`` by Newton's method, begun at the radial part's inverse."""
        if not len(self.d):
            return wanted
        radii, distorted = self._field_of_view
        length = np.hypot(wanted[:, 0], wanted[:, 1])
        start = np.interp(length, distorted, radii) / np.maximum(length, 1e-12)
        plane = wanted * np.where(length > 1e-12, start, 1.0)[:, None]
        count = len(plane)
        with np.errstate(over='ignore', invalid='ignore', divide='ignore'):
            for _ in range(_NEWTON_STEPS):
                # Each point and its neighbours along both axes, all at once.
                bent = self._distort((_SHIFTS[:, None] + plane).reshape(-1, 2))
                here, right, left, below, above = bent.reshape(5, count, 2)
                error = here - wanted
                if not (np.abs(error) > _CONVERGED / 10).any():
                    break
                # Columns of the Jacobian, each (N, 2).
                along_x = (right - left) / (2 * _NEWTON_DELTA)
                along_y = (below - above) / (2 * _NEWTON_DELTA)
                area = along_x[:, 0] * along_y[:, 1] - along_y[:, 0] * along_x[:, 1]
                plane = plane - np.column_stack(
                    [
                        (along_y[:, 1] * error[:, 0] - along_y[:, 0] * error[:, 1]) / area,
                        (along_x[:, 0] * error[:, 1] - along_x[:, 1] * error[:, 0]) / area,
                    ]
                )
            else:
                error = self._distort(plane) - wanted
            missed = np.abs(error).max(axis=1, initial=0.0)
            outside = np.hypot(plane[:, 0], plane[:, 1]) > radii[-1]
        plane[~(missed < _CONVERGED) | outside] = np.nan
        return plane


def _rows(values: ArrayLike, columns: int, name: str) -> FloatArray:
    rows = np.asarray(values, np.float64)
    if rows.ndim != 2 or rows.shape[1] != columns:
        raise GeometryError(f'{name} have shape {rows.shape}; expected (N, {columns})')
    return rows


def _floats(values: Any, count: int | None, name: str) -> FloatArray:
    try:
        numbers = np.array(values, np.float64).reshape(-1)
    except (TypeError, ValueError) as error:
        raise GeometryError(f'camera_info {name} = {values!r} is not a list of numbers') from error
    if count is not None and len(numbers) != count:
        raise GeometryError(f'camera_info {name} has {len(numbers)} numbers; expected {count}')
    return numbers
