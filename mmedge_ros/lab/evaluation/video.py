"""A run as a video: each picture with the result known at that instant.

The result is the newest decision published when the picture became available. The video shows
people, which a report does not.
"""

from __future__ import annotations

import os
from bisect import insort
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from mmedge_ros.data_types import CAMERA, NS_PER_S, Decision, FloatArray, UnitFeatures
from mmedge_ros.fusion.decision_fusion import DecisionFusionParameters
from mmedge_ros.geometry.ego_motion import carried
from mmedge_ros.lab.evaluation import EvaluationError
from mmedge_ros.lab.evaluation.radar_depths import RadarScans, sensor_geometry
from mmedge_ros.lab.evaluation.trajectories import sensor_pose
from mmedge_ros.pipeline.unit_intake import plausible_stamp
from mmedge_ros.records.run_record import RunRecord
from mmedge_ros.replay.recording import Recording
from mmedge_ros.sensing import SensingError
from mmedge_ros.sensing.camera.image import decode_image
from mmedge_ros.viewing.drawing import (
    WARNING,
    WHITE,
    Colour,
    Picture,
    annotate,
    draw_returns,
    status_bar,
)

VIDEO = 'video.mp4'

# Smaller pictures are enlarged until labels can be read, larger ones make needless work.
_NARROWEST, _WIDEST, _TALLEST = 640, 1280, 1280
_BAR_HEIGHT = 24
_DEFAULT_RATE = 20.0
_SLOWEST_RATE, _FASTEST_RATE = 1.0, 240.0
# MPEG-4 part 2: the one every OpenCV wheel can encode, and every player but browsers shows.
_CODEC = 'mp4v'


class TimedPicture(NamedTuple):
    """A picture (H, W, 3) uint8 BGR, when it was measured and when it was there to be used."""

    stamp_ns: int
    available_ns: int
    picture: Picture


def recorded_pictures(recording: Recording) -> Iterator[TimedPicture]:
    """Return the pictures by the time they were available; damaged ones are left out."""
    for unit in recording.units():
        if unit.modality != CAMERA:
            continue
        try:
            picture = decode_image(unit.payload)
        except SensingError:
            continue
        is_true = plausible_stamp(unit.stamp_ns, unit.available_ns)
        stamp_ns = unit.stamp_ns if is_true else unit.available_ns
        yield TimedPicture(stamp_ns, unit.available_ns, picture)


class _Layout(NamedTuple):
    """Size of the video in pixels, without and with the status bar; both sides are even."""

    width: int
    picture_height: int
    height: int


def write_video(
    record: RunRecord,
    pictures: Iterable[TimedPicture],
    path: Path,
    on_progress: Callable[[float], None] | None = None,
) -> int:
    """Write the video of a run; an earlier one is replaced once the new one is complete.

    :param pictures: those of the recording, by the time they were available
    :param on_progress: called with the share of the pictures written
    :return: the number of frames
    :raises EvaluationError: when there is no picture or the video cannot be written
    """
    # The ending tells OpenCV the container.
    part = path.with_name(f'.{path.stem}.{os.getpid()}.part{path.suffix}')
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # Asked for here: OpenCV does not say why a file cannot be opened.
        part.touch()
        try:
            frames = _write(record, pictures, part, on_progress)
            if _readable_frames(part) != frames:
                raise EvaluationError(
                    f'the video {path} could not be written in full; is there room on its disk?'
                )
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)
    except OSError as err:
        raise EvaluationError(
            f'cannot write the video {path}: {err.strerror}; name a folder that can be written'
        ) from err
    return frames


def _write(
    record: RunRecord,
    pictures: Iterable[TimedPicture],
    path: Path,
    on_progress: Callable[[float], None] | None,
) -> int:
    overlay = _Overlay(record)
    writer, layout, frames = None, _Layout(0, 0, 0), 0
    total = max(len(record.camera_stamps_ns), 1)
    try:
        for shot in pictures:
            if writer is None:
                layout = _layout(shot.picture)
                writer = _open(path, frame_rate(record.camera_stamps_ns), layout)
            writer.write(overlay.frame(shot, layout))
            frames += 1
            if on_progress:
                on_progress(min(frames / total, 1.0))
    except cv2.error as err:
        raise EvaluationError(f'OpenCV cannot write the video {path}: {err}') from err
    finally:
        if writer is not None:
            writer.release()
    if not frames:
        raise EvaluationError(
            f'{record.bag} holds no picture that can be decoded: there is nothing to show in a '
            'video; leave out --video'
        )
    return frames


def _open(path: Path, rate: float, layout: _Layout) -> cv2.VideoWriter:
    code = cv2.VideoWriter.fourcc(*_CODEC)
    writer = cv2.VideoWriter(str(path), cv2.CAP_FFMPEG, code, rate, (layout.width, layout.height))
    if not writer.isOpened():
        raise EvaluationError(
            f'OpenCV {cv2.__version__} cannot encode {_CODEC} video here; install '
            'opencv-python-headless from PyPI (it brings FFmpeg), or leave out --video'
        )
    return writer


def _readable_frames(path: Path) -> int:
    """Count the frames of a video by its index, which is written last."""
    reader = cv2.VideoCapture(str(path), cv2.CAP_FFMPEG)
    try:
        return int(reader.get(cv2.CAP_PROP_FRAME_COUNT)) if reader.isOpened() else -1
    finally:
        reader.release()


def frame_rate(stamps_ns: Sequence[int]) -> float:
    """Return the pictures per second, Hz: by the median step, whatever gaps there are."""
    steps = [later - earlier for earlier, later in pairwise(stamps_ns) if later > earlier]
    rate = NS_PER_S / median(steps) if steps else _DEFAULT_RATE
    return min(max(rate, _SLOWEST_RATE), _FASTEST_RATE)


def _layout(picture: Picture) -> _Layout:
    height, width = picture.shape[:2]
    scale = min(max(1.0, _NARROWEST / width), _WIDEST / width, _TALLEST / height)
    # The encoder halves the colour's resolution, so that sides must be even.
    across, down = (max(2, 2 * round(side * scale / 2)) for side in (width, height))
    bar = 2 * round(max(_BAR_HEIGHT, across / 32) / 2)
    return _Layout(across, down, down + bar)


class _Overlay:
    """Draws the frames of a run in the order of time."""

    def __init__(self, record: RunRecord) -> None:
        self._record = record
        self._decisions = sorted(record.decisions, key=lambda decision: decision.published_ns)
        self._measured = {id(decision) for decision in record.decisions[record.warmup :]}
        self._scans = RadarScans(record)
        self._geometry = sensor_geometry(record)
        self._moving_speed = DecisionFusionParameters().moving_speed
        self._published = 0
        self._newest: Decision | None = None
        self._latencies: list[float] = []
        self._begin_ns: int | None = None

    def frame(self, shot: TimedPicture, layout: _Layout) -> Picture:
        """Return one frame of the video."""
        self._advance(shot.available_ns)
        self._begin_ns = shot.available_ns if self._begin_ns is None else self._begin_ns
        drawn, scale, offset = _fitted(shot.picture, layout)
        self._draw_radar(drawn, shot.stamp_ns, scale)
        if self._newest is not None:
            drawn = annotate(drawn, shot.stamp_ns, self._newest, self._origin(), scale)
        frame = np.zeros((layout.height, layout.width, 3), np.uint8)
        x, y = offset
        frame[y : y + drawn.shape[0], x : x + drawn.shape[1]] = drawn
        bar = layout.height - layout.picture_height
        words = self._status((shot.available_ns - self._begin_ns) / NS_PER_S, shot.available_ns)
        frame[layout.picture_height :] = status_bar(layout.width, bar, words)
        return frame

    def _advance(self, now_ns: int) -> None:
        """Take in what was published by then."""
        while (
            self._published < len(self._decisions)
            and self._decisions[self._published].published_ns <= now_ns
        ):
            decision = self._decisions[self._published]
            self._published += 1
            if self._newest is None or decision.window_end_ns >= self._newest.window_end_ns:
                self._newest = decision
            if id(decision) in self._measured:
                insort(self._latencies, decision.latency)

    def _origin(self) -> FloatArray | None:
        """Where ranges are measured from, in the frame of the newest decision."""
        newest = self._newest
        if newest is None or newest.frame_id != self._record.frame_id:
            return None
        return sensor_pose(self._record, newest.state_ns, newest.frame_id).translation

    def _draw_radar(self, picture: Picture, stamp_ns: int, scale: float) -> None:
        scans = self._scans.before(stamp_ns)
        if self._geometry is None or self._geometry.camera is None or not scans:
            return
        returns = np.concatenate([_placeable(scan) for scan in scans]).astype(np.float64)
        in_frame = self._geometry.radar_pose.apply(returns[:, :3])
        optical = self._geometry.camera_pose.inverse().apply(in_frame)
        pixels, in_view = self._geometry.camera.project(optical)
        speeds = np.concatenate([self._over_ground(scan) for scan in scans])
        with np.errstate(invalid='ignore'):  # NaN where a radar gives no velocity
            moving = np.abs(speeds) >= self._moving_speed
        # The middle of pixel 0 lies at half a pixel, in every scale.
        draw_returns(picture, (pixels[in_view] + 0.5) * scale - 0.5, moving[in_view])

    def _over_ground(self, scan: UnitFeatures) -> FloatArray:
        """Velocities (N,) of a scan's returns without the drone's own, where that is known."""
        returns = _placeable(scan).astype(np.float64)
        state = self._record.ego.nearest(scan.stamp_ns) if self._record.ego else None
        if state is None or self._geometry is None:
            return returns[:, 3]
        geometry = carried(self._geometry, state, self._record.frame_id)
        rays = returns[:, :3] / np.maximum(np.linalg.norm(returns[:, :3], axis=1), 1e-6)[:, None]
        own = np.zeros(3) if geometry.radar_velocity is None else geometry.radar_velocity
        return np.asarray(returns[:, 3] + geometry.radar_pose.rotate(rays) @ own)

    def _status(self, elapsed: float, now_ns: int) -> list[tuple[str, Colour]]:
        words = [(f'{elapsed:.1f} s', WHITE)]
        decision = self._newest
        if decision is None:
            return [*words, ('no decision yet', WARNING)]
        missing = ' and '.join(sorted({*decision.lost}))
        age_ms = (now_ns - decision.state_ns) / 1e6
        count = len(self._latencies)
        middle = self._latencies[(count - 1) // 2 : count // 2 + 1]
        return [
            *words,
            *([(f'{missing} missing', WARNING)] if missing else []),
            (f'decision {age_ms:.0f} ms old', WHITE),
            *(
                [(f'latency p50 {1e3 * sum(middle) / len(middle):.1f} ms', WHITE)]
                if middle
                else []
            ),
        ]


def _placeable(scan: UnitFeatures) -> NDArray[np.float32]:
    return scan.returns[np.isfinite(scan.returns[:, :3]).all(axis=1)]


def _fitted(picture: Picture, layout: _Layout) -> tuple[Picture, float, tuple[int, int]]:
    """Bring a picture to the video's size, black beside it where its shape is another.

    :return: the picture, its scale, and where its upper left corner lies
    """
    height, width = picture.shape[:2]
    scale = min(layout.width / width, layout.picture_height / height)
    size = (max(1, round(width * scale)), max(1, round(height * scale)))
    method = cv2.INTER_AREA if scale < 1.0 else cv2.INTER_LINEAR
    fitted = picture.copy()
    if size != (width, height):
        fitted = np.asarray(cv2.resize(picture, size, interpolation=method), np.uint8)
    offset = ((layout.width - size[0]) // 2, (layout.picture_height - size[1]) // 2)
    return fitted, scale, offset
