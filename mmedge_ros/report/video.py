"""A run as a video: each picture with the result known at that instant.

The result is the newest decision published when the picture became available.
"""

from __future__ import annotations

import os
from bisect import insort
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import NamedTuple

import cv2
import numpy as np

from mmedge_ros.core.data_types import NS_PER_S, Decision
from mmedge_ros.core.run_record import RunRecord
from mmedge_ros.report import ReportError
from mmedge_ros.report.timed_pictures import RunOverlay, TimedPicture
from mmedge_ros.viewing.drawing import WARNING, WHITE, Colour, Picture, legend, status_bar

VIDEO = 'video.webm'

# Smaller pictures are enlarged until labels can be read, larger ones make needless work.
_NARROWEST, _WIDEST, _TALLEST = 640, 1280, 1280
_BAR_HEIGHT = 24
_DEFAULT_RATE = 20.0
_SLOWEST_RATE, _FASTEST_RATE = 1.0, 240.0
# The one that browsers and phones play and that every OpenCV wheel can encode.
_CODEC = 'VP80'
# Half of the bits would go into the sensor's noise, and OpenCV lets nobody choose the bit rate.
_SMOOTHING = 0.8


class WrittenVideo(NamedTuple):
    """A video that was written: its pictures, length in s and size in bytes."""

    frames: int
    seconds: float
    size: int

    @property
    def words(self) -> str:
        return f'{self.seconds:.1f} s, {self.size / 1e6:.1f} MB'


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
) -> WrittenVideo:
    """Write the video of a run; an earlier one is replaced once the new one is complete.

    :param pictures: those of the recording, by the time they were available
    :param on_progress: called with the share of the pictures written
    :raises ReportError: when there is no picture or the video cannot be written
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
                raise ReportError(
                    f'the video {path} could not be written in full; is there room on its disk?'
                )
            size = part.stat().st_size
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)
    except OSError as err:
        raise ReportError(
            f'cannot write the video {path}: {err.strerror}; name a folder that can be written'
        ) from err
    return WrittenVideo(frames, frames / frame_rate(record.camera_stamps_ns), size)


def _write(
    record: RunRecord,
    pictures: Iterable[TimedPicture],
    path: Path,
    on_progress: Callable[[float], None] | None,
) -> int:
    writer, draw, frames = None, None, 0
    total = max(len(record.camera_stamps_ns), 1)
    try:
        for shot in pictures:
            if writer is None or draw is None:
                layout = _layout(shot.picture)
                draw = _Frames(record, layout)
                writer = _open(path, frame_rate(record.camera_stamps_ns), layout)
            writer.write(draw.frame(shot))
            frames += 1
            if on_progress:
                on_progress(min(frames / total, 1.0))
    except cv2.error as err:
        raise ReportError(f'OpenCV cannot write the video {path}: {err}') from err
    finally:
        if writer is not None:
            writer.release()
    if not frames:
        raise ReportError(
            f'{record.bag} holds no picture that can be decoded: there is nothing to show in a '
            'video; leave out --video'
        )
    return frames


def _open(path: Path, rate: float, layout: _Layout) -> cv2.VideoWriter:
    code, size = cv2.VideoWriter.fourcc(*_CODEC), (layout.width, layout.height)
    with _native_messages_off():
        writer = cv2.VideoWriter(str(path), cv2.CAP_FFMPEG, code, rate, size)
    if not writer.isOpened():
        raise ReportError(
            f'OpenCV {cv2.__version__} cannot encode {_CODEC} video here; install '
            'opencv-python-headless from PyPI (it brings FFmpeg), or leave out --video'
        )
    return writer


@contextmanager
def _native_messages_off() -> Iterator[None]:
    """Keep from the terminal that OpenCV misses a tag, which WebM does not use."""
    terminal, nothing = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nothing, 2)
        yield
    finally:
        os.dup2(terminal, 2)
        os.close(terminal)
        os.close(nothing)


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


class _Frames:
    """Draws the frames of a run in the order of time."""

    def __init__(self, record: RunRecord, layout: _Layout) -> None:
        self._overlay = RunOverlay(record)
        self._layout = layout
        self._legend = legend(record.truth is not None)
        self._waiting = sorted(record.decisions[record.warmup :], key=lambda d: -d.published_ns)
        self._latencies: list[float] = []
        self._begin_ns: int | None = None

    def frame(self, shot: TimedPicture) -> Picture:
        """Return the next frame of the video."""
        now_ns, layout = shot.available_ns, self._layout
        while self._waiting and self._waiting[-1].published_ns <= now_ns:
            insort(self._latencies, self._waiting.pop().latency)
        self._begin_ns = now_ns if self._begin_ns is None else self._begin_ns
        decision = self._overlay.known_at(now_ns)
        smooth = np.asarray(cv2.GaussianBlur(shot.picture, (3, 3), _SMOOTHING), np.uint8)
        size = layout.width, layout.picture_height
        drawn = self._overlay.frame(shot._replace(picture=smooth), decision, *size, radar=True)
        words = [(f'{(now_ns - self._begin_ns) / NS_PER_S:.1f} s', WHITE)]
        words += self._status(decision, now_ns)
        bar = status_bar(layout.width, layout.height - layout.picture_height, words)
        return np.concatenate([drawn, bar])

    def _status(self, decision: Decision | None, now_ns: int) -> list[tuple[str, Colour]]:
        if decision is None:
            return [('no decision yet', WARNING)]
        missing = ' and '.join(sorted({*decision.lost}))
        count = len(self._latencies)
        middle = self._latencies[(count - 1) // 2 : count // 2 + 1]
        latency = [f'latency p50 {1e3 * sum(middle) / len(middle):.1f} ms'] if middle else []
        return [
            *([(f'{missing} missing', WARNING)] if missing else []),
            (f'decision {(now_ns - decision.state_ns) / 1e6:.0f} ms old', WHITE),
            *((words, WHITE) for words in latency),
            *self._legend,
        ]
