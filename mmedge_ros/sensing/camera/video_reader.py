"""Video files and folders of pictures, picture by picture with their times; no clock.

Pictures come as a player shows them: turned upright by the file's rotation, with square pixels. A
video's times are those of its container, so that a variable frame rate stays what it was. OpenCV
reads both; its FFmpeg gives exact times also behind B-frames, edit lists and late beginnings.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Protocol

import cv2
import numpy as np

from mmedge_ros.core.data_types import NS_PER_S
from mmedge_ros.core.untrusted_files import brief, read_bounded
from mmedge_ros.sensing import SensingError
from mmedge_ros.sensing.camera.image import MAX_PIXELS, Picture, quick_format
from mmedge_ros.sensing.camera.opencv import Capture, OpenCapture, is_there, open_capture

PICTURE_SUFFIXES = ('.jpg', '.jpeg', '.png')
# Pace of files that name none, or one that no camera has.
USUAL_RATE = 20.0
_FASTEST = 480.0
# Containers may claim any time; beyond this step it is damaged, and the pictures follow at once.
_LONGEST_STEP_NS = 3600 * NS_PER_S
_FAR_MS = 1e12
MAX_PICTURE_BYTES = 200_000_000
# Shapes that differ by less than this are the same picture in another resolution.
_SAME_SHAPE = 0.02
# A video is cut if it lacks this share of the time its header promises, and this long.
_CUT_SHARE, _CUT_NS = 0.05, NS_PER_S // 2
# FFmpeg's name for silence: what it writes about damaged files our own words say better.
_LOG_LEVEL, _QUIET = 'OPENCV_FFMPEG_LOGLEVEL', '-8'
_LOG_ERRORS = 2  # of OpenCV's levels
_QUARTER_TURNS = (90, 270)


class TimedPictures(Protocol):
    """Pictures of one size in the order of time.

    ``size`` is the width and height of what `retrieve` returns, ``shown_size`` that of the file's
    pictures as a player shows them, both in pixels. ``rate`` is nominal, in Hz.
    ``promised_ns`` is the time of the last picture as far as the file says so beforehand.
    ``problems`` say what could not be used; they grow while pictures are read.
    """

    size: tuple[int, int]
    shown_size: tuple[int, int]
    rate: float
    promised_ns: int
    problems: list[str]

    def grab(self) -> int | None:
        """Go to the next picture; its time in ns from the first, rising; None at the end."""

    def retrieve(self) -> Picture:
        """Return the picture (H, W, 3) uint8 BGR that was grabbed last.

        :raises SensingError: when this one is damaged
        """

    def close(self) -> None:
        """Release the file; closing twice does no harm."""


def open_pictures(path: Path, rate: float = 30.0, longest_side: int = 0) -> TimedPictures:
    """Open a video file, or a folder of pictures at this rate (Hz).

    :param longest_side: larger pictures are scaled down to this (px); 0 for none
    :raises SensingError: when it cannot be read
    """
    if path.is_dir():
        return FolderReader(path, rate, longest_side)
    return VideoReader(path, longest_side)


class VideoReader:
    """A video file; see `TimedPictures`.

    :raises SensingError: when it cannot be read
    """

    def __init__(
        self, path: Path, longest_side: int = 0, opened: OpenCapture = open_capture
    ) -> None:
        self.problems: list[str] = []
        self._path = path
        self._capture = _open_video(path, opened)
        width, height, rate, count = (
            self._capture.get(number)
            for number in (
                cv2.CAP_PROP_FRAME_WIDTH,
                cv2.CAP_PROP_FRAME_HEIGHT,
                cv2.CAP_PROP_FPS,
                cv2.CAP_PROP_FRAME_COUNT,
            )
        )
        has_rate = 0.0 < rate <= _FASTEST
        self.rate = rate if has_rate else USUAL_RATE
        # Some containers name a clock of 2000 Hz; divided by the same it still gives the length.
        length = count / rate if rate > 0.0 and count > 0.0 else 0.0
        self.promised_ns = round(min(length, 1e6) * NS_PER_S)
        self._time_ns = self._shift_ns = self._count = 0
        self._is_waiting = False
        try:
            self._begin(width, height, longest_side)
        except SensingError:
            self.close()
            raise

    def grab(self) -> int | None:
        if self._is_waiting:
            self._is_waiting = False
            return 0
        try:
            if not self._capture.grab():
                self._check_end()
                return None
        except cv2.error as error:
            self._report(
                f'{self._path.name}: broken after {self._count} pictures ({brief(error)})'
            )
            return None
        self._count += 1
        self._time_ns = self._next_time()
        return self._time_ns

    def retrieve(self) -> Picture:
        try:
            there, picture = self._capture.retrieve()
        except cv2.error as error:
            raise SensingError(f'{self._path}: damaged picture ({brief(error)})') from error
        if not there or picture is None or picture.ndim != 3:
            raise SensingError(f'{self._path}: damaged picture')
        if self._is_upside_down:
            picture = cv2.rotate(picture, cv2.ROTATE_180)
        return fitted(np.asarray(picture, np.uint8), self._stored, self.size)

    def close(self) -> None:
        self._capture.release()

    def _begin(self, width: float, height: float, longest_side: int) -> None:
        """Look at the first picture: only it says how OpenCV turns them."""
        if not 0.0 <= width * height <= MAX_PIXELS:
            raise SensingError(
                f'{self._path}: pictures of {width:.0f} x {height:.0f} px; the limit is '
                f'{MAX_PIXELS} pixels'
            )
        try:
            picture = self._capture.retrieve()[1] if self._capture.grab() else None
        except cv2.error:
            picture = None
        if picture is None or picture.ndim != 3 or not picture.size:
            raise SensingError(
                f'{self._path} holds no picture that can be read: cut, or in a format that this '
                f'OpenCV does not know (AV1, for one); `ffmpeg -i {self._path.name} -c:v libx264 '
                'new.mp4` makes one that it knows'
            )
        self._stored = picture.shape[1], picture.shape[0]
        lies = int(self._capture.get(cv2.CAP_PROP_ORIENTATION_META)) % 360 in _QUARTER_TURNS
        # OpenCV 4.6, that of Debian 12 and Ubuntu 24.04, turns the other way round.
        self._is_upside_down = lies and cv2.__version__.startswith('4.6.')
        self.shown_size = _with_square_pixels(self._stored, self._capture, lies)
        self.size = limited(self.shown_size, longest_side)
        self._count, self._is_waiting = 1, True

    def _next_time(self) -> int:
        """Return the present picture's time; where the container has none, a period later."""
        given = self._capture.get(cv2.CAP_PROP_POS_MSEC)
        time_ns = self._shift_ns + (round(given * 1e6) if abs(given) < _FAR_MS else 0)
        if 0 < time_ns - self._time_ns <= _LONGEST_STEP_NS:
            return time_ns
        expected_ns = self._time_ns + round(NS_PER_S / self.rate)
        self._shift_ns += expected_ns - time_ns
        self._report(
            f'{self._path.name}: its times stand still or jump; from {self._time_ns / 1e9:.2f} s '
            f'on some pictures were put {1.0 / self.rate:.3g} s after the one before'
        )
        return expected_ns

    def _check_end(self) -> None:
        missing_ns = self.promised_ns - self._time_ns
        if missing_ns > max(_CUT_SHARE * self.promised_ns, _CUT_NS):
            self._report(
                f'{self._path.name} ends after {self._count} pictures and '
                f'{self._time_ns / NS_PER_S:.1f} s, though its header promises '
                f'{self.promised_ns / NS_PER_S:.1f} s: cut or damaged'
            )

    def _report(self, problem: str) -> None:
        if not any(known[:40] == problem[:40] for known in self.problems):
            self.problems.append(problem)


class FolderReader:
    """A folder of JPEG and PNG files in the order of their names; see `TimedPictures`.

    Files that cannot be read are noted and passed over, and so are pictures of another shape
    than the first; their instants stay empty.

    :raises SensingError: when there is no picture
    """

    def __init__(self, path: Path, rate: float, longest_side: int = 0) -> None:
        self.problems: list[str] = []
        self.rate = rate
        self._files = picture_files(path)
        self._next = 0
        self.promised_ns = self._time_of(len(self._files) - 1)
        self.shown_size = self._first_size(path)
        self.size = limited(self.shown_size, longest_side)

    def grab(self) -> int | None:
        if self._next >= len(self._files):
            return None
        self._next += 1
        return self._time_of(self._next - 1)

    def retrieve(self) -> Picture:
        file = self._files[self._next - 1]
        try:
            return fitted(read_picture(file), self.shown_size, self.size)
        except SensingError as error:
            raise SensingError(f'{file.name}: {error}') from error

    def close(self) -> None:
        """Nothing stays open between pictures."""

    def _time_of(self, number: int) -> int:
        return round(number * NS_PER_S / self.rate)

    def _first_size(self, path: Path) -> tuple[int, int]:
        reason = ''
        for file in self._files:
            try:
                height, width = read_picture(file).shape[:2]
            except SensingError as error:
                reason = reason or f'{file.name}: {error}'
            else:
                return width, height
        raise SensingError(
            f'{path}: not one of its {len(self._files)} pictures can be read ({reason})'
        )


def picture_files(folder: Path) -> list[Path]:
    """Return the pictures of a folder, numbers in their names in numerical order.

    Folders and pipes of such a name are passed over: from a pipe one could wait for ever.

    :raises SensingError: when there are none
    """
    try:
        named = [f for f in folder.iterdir() if f.suffix.lower() in PICTURE_SUFFIXES]
        files = [f for f in named if f.is_file() or not f.exists()]
    except OSError as error:
        raise SensingError(f'{folder}: {error.strerror or error}') from error
    if not files:
        raise SensingError(f'{folder} holds no pictures ({", ".join(PICTURE_SUFFIXES)})')
    return sorted(files, key=_natural_order)


def read_picture(file: Path) -> Picture:
    """Return a JPEG or PNG file as (H, W, 3) BGR, turned as its orientation tag says.

    :raises SensingError: when it is damaged, or none
    """
    data = read_bounded(file, MAX_PICTURE_BYTES, SensingError)
    kind = quick_format(SimpleNamespace(data=data, format=file.suffix))
    try:
        picture = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR)
    except cv2.error as error:
        raise SensingError(f'damaged {kind.encoding} picture ({brief(error)})') from error
    if picture is None:
        raise SensingError(f'damaged {kind.encoding} picture: the decoder refuses it')
    return np.asarray(picture, np.uint8)


def limited(size: tuple[int, int], longest_side: int) -> tuple[int, int]:
    """Scale a size down until its longer side keeps the limit; 0 is no limit."""
    scale = min(1.0, longest_side / max(size)) if longest_side else 1.0
    return max(1, round(size[0] * scale)), max(1, round(size[1] * scale))


def fitted(picture: Picture, expected: tuple[int, int], size: tuple[int, int]) -> Picture:
    """Scale a picture to ``size``.

    :param expected: size of a picture that is like the others
    :raises SensingError: when it has another shape
    """
    height, width = picture.shape[:2]
    if (width, height) == size:
        return picture
    if abs(math.log(width * expected[1] / (height * expected[0]))) > _SAME_SHAPE:
        raise SensingError(
            f'{width} x {height} px, another shape than the first picture '
            f'({expected[0]} x {expected[1]} px)'
        )
    method = cv2.INTER_AREA if width > size[0] else cv2.INTER_LINEAR
    return np.asarray(cv2.resize(picture, size, interpolation=method), np.uint8)


def _open_video(path: Path, opened: OpenCapture) -> Capture:
    if not is_there(path):
        raise SensingError(f'{path} does not exist')
    backend = cv2.CAP_ANY
    if cv2.videoio_registry.hasBackend(cv2.CAP_FFMPEG):
        backend = cv2.CAP_FFMPEG  # others neither turn pictures nor give exact times
    try:
        with _quiet_decoder():
            capture = opened(str(path), backend)
    except cv2.error as error:
        raise SensingError(f'{path} cannot be read as a video ({brief(error)})') from error
    if not capture.isOpened():
        capture.release()
        raise SensingError(
            f'{path} cannot be read as a video; give one that ffmpeg can decode, or a folder of '
            'pictures'
        )
    return capture


@contextmanager
def _quiet_decoder() -> Iterator[None]:
    """Keep FFmpeg and OpenCV from writing to the terminal what our errors say in words."""
    os.environ.setdefault(_LOG_LEVEL, _QUIET)
    log: Any = getattr(cv2.utils, 'logging', cv2)  # there since OpenCV 4.7
    level = log.getLogLevel()
    log.setLogLevel(min(level, _LOG_ERRORS))
    try:
        yield
    finally:
        log.setLogLevel(level)


def _with_square_pixels(stored: tuple[int, int], capture: Capture, lies: bool) -> tuple[int, int]:
    """Return the size at which pixels are square, by the container's pixel aspect ratio.

    :param lies: whether the container holds the picture lying on its side
    """
    across, down = (capture.get(n) for n in (cv2.CAP_PROP_SAR_NUM, cv2.CAP_PROP_SAR_DEN))
    ratio = across / down if across > 0.0 and down > 0.0 else 1.0
    if not 0.1 < ratio < 10.0:
        return stored
    width, height = stored
    if lies:
        return width, max(1, round(height * ratio))
    return max(1, round(width * ratio)), height


def _natural_order(file: Path) -> list[tuple[int, str]]:
    """Split a name into texts and numbers, so that 2.jpg comes before 10.jpg."""
    parts = re.split('([0-9]+)', file.name)
    # Every second part is a number; one of a thousand digits need not be exact.
    return [(int(p[:18]) if n % 2 else 0, p) for n, p in enumerate(parts)]
