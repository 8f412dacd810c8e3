"""Video files and folders of pictures that stand in for a camera, at their own pace."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace

import cv2
import numpy as np

from mmedge_ros.clock import Clock
from mmedge_ros.data_types import NS_PER_S
from mmedge_ros.geometry.projection import CameraModel
from mmedge_ros.sensing import SensingError
from mmedge_ros.sensing.camera.device import (
    BGR,
    CameraFormat,
    CameraParameters,
    Exposure,
    Shot,
    Wait,
)
from mmedge_ros.sensing.camera.image import decode_image, quick_format
from mmedge_ros.sensing.camera.opencv import (
    Capture,
    OpenCapture,
    agreed_format,
    is_there,
    open_capture,
)
from mmedge_ros.untrusted_files import read_bounded, shown

PICTURE_SUFFIXES = ('.jpg', '.jpeg', '.png')
# Pace of files that name none.
_USUAL_RATE = 20.0
_MAX_PICTURE_BYTES = 200_000_000


class Pacer:
    """Hands out the instants at which a stand-in exposes its pictures.

    A picture that would be more than one period late is missed, as with a camera.
    """

    def __init__(self, rate: float, clock: Clock, wait: Wait) -> None:
        self._period_ns = round(NS_PER_S / rate)
        self._clock = clock
        self._wait = wait
        self._due_ns: int | None = None

    def next(self) -> Exposure:
        """Wait for the next instant and return it, with the number of those that were missed."""
        now_ns = self._clock.monotonic_ns()
        due_ns = now_ns if self._due_ns is None else self._due_ns + self._period_ns
        missed = max((now_ns - due_ns) // self._period_ns, 0)
        self._due_ns = due_ns = due_ns + missed * self._period_ns
        self._wait(max(due_ns - now_ns, 0) / NS_PER_S)
        now_ns, available_ns = self._clock.monotonic_ns(), self._clock.now_ns()
        return Exposure(available_ns - max(now_ns - due_ns, 0), available_ns, missed)


class VideoFile:
    """A video file; see CameraDevice. To take the file away is to pull the camera's plug.

    :raises SensingError: when it cannot be read
    """

    def __init__(
        self,
        path: Path,
        loop: bool,
        clock: Clock,
        wait: Wait,
        opened: OpenCapture = open_capture,
    ) -> None:
        self.name = str(path)
        self.calibration: CameraModel | None = None
        self.notes: tuple[str, ...] = ()
        self._path = path
        self._loop = loop
        self._opened = opened
        self._played = 0
        self._capture = self._open()
        self.format = agreed_format(self._capture)
        if not self.format.rate:
            self.format = self.format._replace(rate=_USUAL_RATE)
            self.notes = (f'it names no rate, {_USUAL_RATE:g} Hz are taken',)
        self._pacer = Pacer(self.format.rate, clock, wait)

    def grab(self) -> Exposure | None:
        """Wait until the next picture is due; pictures that are overdue are passed over."""
        exposure = self._pacer.next()
        self._check_presence()
        for _ in range(exposure.missed + 1):
            if not self._advance():
                return None
        return exposure

    def retrieve(self) -> Shot:
        try:
            there, picture = self._capture.retrieve()
        except cv2.error as error:
            raise SensingError(f'{self.name}: damaged picture ({error})') from error
        if not there or picture is None or picture.ndim != 3:
            raise SensingError(f'{self.name}: damaged picture')
        return Shot(BGR, np.asarray(picture, np.uint8))

    def close(self) -> None:
        self._capture.release()

    def _advance(self) -> bool:
        """Go to the next picture, in a loop from the last to the first."""
        if not self._capture.grab():
            if not self._loop:
                return False
            if not self._played:
                raise SensingError(f'{self.name} holds no picture that can be read')
            self._capture.release()
            self._capture, self._played = self._open(), 0
            return self._advance()
        self._played += 1
        return True

    def _check_presence(self) -> None:
        if not is_there(self._path):
            raise SensingError(f'{self._path} does not exist')

    def _open(self) -> Capture:
        self._check_presence()
        try:
            capture = self._opened(str(self._path), cv2.CAP_ANY)
        except cv2.error as error:
            raise SensingError(f'{self._path} cannot be read as a video ({error})') from error
        if not capture.isOpened():
            capture.release()
            raise SensingError(
                f'{self._path} cannot be read as a video; give one that ffmpeg can decode, or a '
                'folder of pictures'
            )
        return capture


class PictureFolder:
    """A folder of JPEG and PNG files in the order of their names; see CameraDevice.

    :param compressed: hand over the files' bytes instead of decoding them
    :raises SensingError: when there are none
    """

    def __init__(
        self, path: Path, rate: float, loop: bool, compressed: bool, clock: Clock, wait: Wait
    ) -> None:
        self.name = str(path)
        self.calibration: CameraModel | None = None
        self.notes: tuple[str, ...] = ()
        self._compressed = compressed
        files = picture_files(path)
        self._files = _repeated(files) if loop else iter(files)
        self._present = files[0]
        self.format = CameraFormat(rate=rate or _USUAL_RATE)
        self._pacer = Pacer(self.format.rate, clock, wait)

    def grab(self) -> Exposure | None:
        exposure = self._pacer.next()
        for _ in range(exposure.missed + 1):
            file = next(self._files, None)
            if file is None:
                return None
            self._present = file
        return exposure

    def retrieve(self) -> Shot:
        data = read_bounded(self._present, _MAX_PICTURE_BYTES, SensingError)
        message = SimpleNamespace(data=data, format=self._present.suffix)
        try:
            if self._compressed:
                return Shot(quick_format(message).encoding, data)
            return Shot(BGR, decode_image(message))
        except SensingError as error:
            raise SensingError(f'{self._present}: {error}') from error

    def close(self) -> None:
        """Nothing stays open between pictures."""


def picture_files(folder: Path) -> list[Path]:
    """Return the pictures of a folder, numbers in their names in numerical order.

    :raises SensingError: when there are none
    """
    try:
        files = [f for f in folder.iterdir() if f.suffix.lower() in PICTURE_SUFFIXES]
    except OSError as error:
        raise SensingError(f'{folder}: {error.strerror or error}') from error
    if not files:
        raise SensingError(f'{folder} holds no pictures ({", ".join(PICTURE_SUFFIXES)})')
    return sorted(files, key=_natural_order)


def open_file(p: CameraParameters, clock: Clock, wait: Wait) -> VideoFile | PictureFolder:
    """Open a video file or a folder of pictures. Raises SensingError when it cannot be played."""
    path = Path(p.device)
    if path.is_dir():
        return PictureFolder(path, p.rate, p.loop, p.compressed, clock, wait)
    return VideoFile(path, p.loop, clock, wait)


def check_file(device: str) -> None:
    """Find out whether there is anything to play. Raises SensingError with the remedy."""
    if not device or not is_there(Path(device)):
        raise SensingError(
            f'the camera is to be a file, but {shown(device)} is none; '
            'name a video file or a folder of pictures in "device"'
        )


def _repeated(files: Sequence[Path]) -> Iterator[Path]:
    while True:
        yield from files


def _natural_order(file: Path) -> list[tuple[int, str]]:
    """Split a name into texts and numbers, so that 2.jpg comes before 10.jpg."""
    parts = re.split('([0-9]+)', file.name)
    # Every second part is a number; one of a thousand digits need not be exact.
    return [(int(p[:18]) if n % 2 else 0, p) for n, p in enumerate(parts)]
