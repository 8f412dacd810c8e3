"""A run as a recording of Rerun (rerun.io), to go through it in its viewer.

Pictures with boxes, tracks in space with velocity and uncertainty, radar returns, latency and ages
lie on one timeline, in seconds from the first reading. `rerun-sdk` is an optional package that
nothing else needs; it is imported when a file is written.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from mmedge_ros.data_types import NS_PER_S, RADAR, Decision, Track, UnitFeatures
from mmedge_ros.geometry.ego_motion import carried
from mmedge_ros.geometry.rotations import rotation_vector
from mmedge_ros.geometry.sensor_poses import SensorGeometry
from mmedge_ros.geometry.transforms import Transform
from mmedge_ros.records.run_record import RunRecord
from mmedge_ros.viewing import ViewingError
from mmedge_ros.viewing.drawing import Picture, colour_of

# When a picture was measured, when it was there to be used (ns), and the picture itself.
ShownPicture = tuple[int, int, Picture]

_TIME = 'time'
_CAMERA = 'world/camera'
_PICTURE = f'{_CAMERA}/picture'
_JPEG_QUALITY = 80
_RETURN_COLOUR = (150, 150, 150)


def open_rerun() -> Any:
    """Import rerun.

    :raises ViewingError: with the remedy where it is not installed
    """
    try:
        return importlib.import_module('rerun')
    except ImportError as error:
        raise ViewingError(
            f'a file for Rerun needs the package rerun-sdk, which is not here ({error}); '
            '`.venv/bin/pip install rerun-sdk` brings it (MIT or Apache-2.0)'
        ) from error


def write_rerun(
    record: RunRecord,
    pictures: Iterable[ShownPicture],
    path: Path,
    rerun: Any,
    on_progress: Callable[[float], None] | None = None,
) -> None:
    """Write a run; an earlier file is replaced once the new one is complete.

    :param pictures: those of the recording, by the time they were available; none without a camera
    :param rerun: the module, from `open_rerun`
    :param on_progress: called with the share of the pictures written
    :raises ViewingError: when the file cannot be written
    """
    part = path.with_name(f'.{path.stem}.{os.getpid()}.part{path.suffix}')
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part.touch()  # asked for here: a writer in the background does not say why it cannot
        try:
            _Writer(record, rerun, part).write(pictures, on_progress)
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        raise ViewingError(
            f'cannot write {path}: {error.strerror}; name a file in a folder that can be written'
        ) from error


class _Writer:
    """Puts the parts of a run where the viewer looks for them."""

    def __init__(self, record: RunRecord, rerun: Any, path: Path) -> None:
        self._record = record
        self._rr = rerun
        self._stream = rerun.RecordingStream('mmedge_ros')
        self._stream.save(str(path))
        stamps = [*record.camera_stamps_ns[:1], *(u.stamp_ns for u in record.features[:1])]
        self._begin_ns = min(stamps, default=0)
        self._geometry = _geometry_of(record)

    def write(
        self, pictures: Iterable[ShownPicture], on_progress: Callable[[float], None] | None
    ) -> None:
        self._lay_out()
        for decision in self._record.decisions:
            self._decision(decision)
        for unit in self._record.features:
            if unit.modality == RADAR:
                self._returns(unit)
        total = max(len(self._record.camera_stamps_ns), 1)
        for count, (stamp_ns, _, picture) in enumerate(pictures, 1):
            self._picture(stamp_ns, picture)
            if on_progress:
                on_progress(min(count / total, 1.0))
        self._stream.disconnect()  # waits until everything is in the file

    def _lay_out(self) -> None:
        rr, camera = self._rr, self._record.camera
        self._stream.log('world', rr.ViewCoordinates.RIGHT_HAND_Z_UP, static=True)
        if camera is not None:
            pinhole = rr.Pinhole(
                image_from_camera=camera.k, resolution=[camera.width, camera.height]
            )
            self._stream.log(_CAMERA, pinhole, static=True)
            self._pose(self._begin_ns, static=True)
        views = importlib.import_module(f'{rr.__name__}.blueprint')
        self._stream.send_blueprint(
            views.Blueprint(
                views.Vertical(
                    views.Horizontal(
                        views.Spatial2DView(origin=_CAMERA, name='camera'),
                        views.Spatial3DView(origin='world', name='tracks and radar'),
                    ),
                    views.Horizontal(
                        views.TimeSeriesView(origin='latency', name='latency, ms'),
                        views.TimeSeriesView(origin='age', name='ages, ms'),
                    ),
                    row_shares=[3, 1],
                ),
                views.TimePanel(timeline=_TIME),
            )
        )

    def _decision(self, decision: Decision) -> None:
        rr, tracks = self._rr, decision.tracks
        self._at(decision.state_ns)
        colours = [_colour(track) for track in tracks]
        labels = [f'{track.id} {track.label}' for track in tracks]
        seen = [n for n, track in enumerate(tracks) if track.box is not None]
        self._stream.log(
            f'{_PICTURE}/tracks',
            rr.Boxes2D(
                array=np.array([tracks[n].box for n in seen], np.float32).reshape(-1, 4),
                array_format=rr.Box2DFormat.XYXY,
                labels=[labels[n] for n in seen],
                colors=[colours[n] for n in seen],
            ),
        )
        positions = np.array([t.position for t in tracks], np.float32).reshape(-1, 3)
        velocities = np.array([t.velocity for t in tracks], np.float32).reshape(-1, 3)
        self._stream.log(
            'world/tracks', rr.Points3D(positions, labels=labels, colors=colours, radii=0.15)
        )
        self._stream.log(
            'world/tracks/velocity',
            rr.Arrows3D(origins=positions, vectors=velocities, colors=colours),
        )
        shapes = [_ellipsoid(track) for track in tracks]
        self._stream.log(
            'world/tracks/uncertainty',
            rr.Ellipsoids3D(
                centers=positions,
                half_sizes=np.array([half for half, _ in shapes]).reshape(-1, 3),
                rotation_axis_angles=[self._turn(vector) for _, vector in shapes],
                colors=colours,
            ),
        )
        self._stream.log('latency/decision', rr.Scalars(1e3 * decision.latency))
        for modality, newest_ns in sorted(decision.newest_ns.items()):
            age_ms = (decision.published_ns - newest_ns) / 1e6
            self._stream.log(f'age/{modality}', rr.Scalars(age_ms))

    def _returns(self, unit: UnitFeatures) -> None:
        returns = unit.returns[np.isfinite(unit.returns[:, :3]).all(axis=1)]
        geometry = self._geometry_at(unit.stamp_ns)
        places = geometry.radar_pose.apply(returns[:, :3]) if geometry else returns[:, :3]
        self._at(unit.stamp_ns)
        points = self._rr.Points3D(places, colors=_RETURN_COLOUR, radii=0.06)
        self._stream.log('world/radar', points)

    def _picture(self, stamp_ns: int, picture: Picture) -> None:
        self._pose(stamp_ns)
        self._at(stamp_ns)
        # Without copies and colour conversions; 1280 x 720 px take about 100 kB.
        jpeg = cv2.imencode('.jpg', picture, [cv2.IMWRITE_JPEG_QUALITY, _JPEG_QUALITY])[1]
        image = self._rr.EncodedImage(contents=jpeg.tobytes(), media_type='image/jpeg')
        self._stream.log(_PICTURE, image)

    def _pose(self, stamp_ns: int, static: bool = False) -> None:
        """Say where the camera is; one that does not move is said once."""
        geometry = self._geometry_at(stamp_ns)
        if geometry is None or static != (self._record.ego is None):
            return
        if not static:
            self._at(stamp_ns)
        pose = geometry.camera_pose
        moved = self._rr.Transform3D(translation=pose.translation, mat3x3=pose.rotation)
        self._stream.log(_CAMERA, moved, static=static)

    def _geometry_at(self, stamp_ns: int) -> SensorGeometry | None:
        ego = self._record.ego
        state = ego.nearest(stamp_ns) if ego else None
        if self._geometry is None or state is None:
            return self._geometry
        return carried(self._geometry, state, self._record.frame_id)

    def _at(self, stamp_ns: int) -> None:
        self._stream.set_time(_TIME, duration=(stamp_ns - self._begin_ns) / NS_PER_S)

    def _turn(self, vector: NDArray[np.float64]) -> Any:
        angle = float(np.linalg.norm(vector))
        axis = vector / angle if angle else (1.0, 0.0, 0.0)
        return self._rr.RotationAxisAngle(axis=axis, radians=angle)


def _geometry_of(record: RunRecord) -> SensorGeometry | None:
    """Return where the sensors are; None without any calibration."""
    if record.camera_pose is None and record.radar_pose is None:
        return None
    still = Transform.identity()
    return SensorGeometry(
        record.frame_id, record.camera, record.camera_pose or still, record.radar_pose or still
    )


def _colour(track: Track) -> tuple[int, ...]:
    return tuple(round(255 * share) for share in colour_of(track.id))


def _ellipsoid(track: Track) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return half axes (3,) m of one standard deviation, and the rotation vector (3,) of them."""
    values, axes = np.linalg.eigh(np.nan_to_num(track.covariance[:3, :3]))
    axes[:, 0] *= np.sign(np.linalg.det(axes))
    return np.sqrt(np.maximum(values, 0.0)), rotation_vector(axes)
