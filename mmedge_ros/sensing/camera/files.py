"""Video files and folders of pictures that stand in for a camera, at their own pace."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace

from mmedge_ros.core.clock import Clock
from mmedge_ros.core.data_types import NS_PER_S
from mmedge_ros.core.untrusted_files import read_bounded, shown
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
from mmedge_ros.sensing.camera.opencv import OpenCapture, is_there, open_capture
from mmedge_ros.sensing.camera.video_reader import (
    MAX_PICTURE_BYTES,
    USUAL_RATE,
    VideoReader,
    picture_files,
)


class Pacer:
    """Hands out the instants at which a stand-in exposes its pictures.

    A picture that would be more than one period late is missed, as with a camera.
    """

    def __init__(self, rate: float, clock: Clock, wait: Wait) -> None:
        self._period_ns = round(NS_PER_S / rate)
        self._clock = clock
        self._wait = wait
        self._begin_ns: int | None = None

    def exposure(self, due: Iterator[int]) -> Exposure | None:
        """Wait for the next instant that can be kept, and say how many were missed before it.

        :param due: instants in ns from the first, rising; each that is taken has gone by
        """
        for missed, time_ns in enumerate(due):
            now_ns = self._clock.monotonic_ns()
            if self._begin_ns is None:
                self._begin_ns = now_ns - time_ns
            due_ns = self._begin_ns + time_ns
            if now_ns - due_ns >= self._period_ns:
                continue
            self._wait(max(due_ns - now_ns, 0) / NS_PER_S)
            now_ns, available_ns = self._clock.monotonic_ns(), self._clock.now_ns()
            return Exposure(available_ns - max(now_ns - due_ns, 0), available_ns, missed)
        return None


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
        self._reader = VideoReader(path, opened=opened)
        self.format = CameraFormat(*self._reader.shown_size, self._reader.rate)
        self._times = self._played()
        self._pacer = Pacer(self.format.rate, clock, wait)

    def grab(self) -> Exposure | None:
        """Wait until the next picture is due; pictures that are overdue are passed over."""
        return self._pacer.exposure(self._times)

    def retrieve(self) -> Shot:
        return Shot(BGR, self._reader.retrieve())

    def close(self) -> None:
        self._reader.close()

    def _played(self) -> Iterator[int]:
        """Go from picture to picture, in a loop from the last to the first; yield their times."""
        begin_ns = 0
        while True:
            last_ns = 0
            while (time_ns := self._reader.grab()) is not None:
                if not is_there(self._path):
                    raise SensingError(f'{self._path} does not exist')
                last_ns = time_ns
                yield begin_ns + time_ns
            if not self._loop:
                return
            begin_ns += last_ns + round(NS_PER_S / self._reader.rate)
            self._reader.close()
            self._reader = VideoReader(self._path, opened=self._opened)


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
        self._present = files[0]
        self.format = CameraFormat(rate=rate or USUAL_RATE)
        self._times = self._played(files, loop)
        self._pacer = Pacer(self.format.rate, clock, wait)

    def grab(self) -> Exposure | None:
        return self._pacer.exposure(self._times)

    def retrieve(self) -> Shot:
        data = read_bounded(self._present, MAX_PICTURE_BYTES, SensingError)
        message = SimpleNamespace(data=data, format=self._present.suffix)
        try:
            if self._compressed:
                return Shot(quick_format(message).encoding, data)
            return Shot(BGR, decode_image(message))
        except SensingError as error:
            raise SensingError(f'{self._present}: {error}') from error

    def close(self) -> None:
        """Nothing stays open between pictures."""

    def _played(self, files: Sequence[Path], loop: bool) -> Iterator[int]:
        number = 0
        while loop or number < len(files):
            self._present = files[number % len(files)]
            yield round(number * NS_PER_S / self.format.rate)
            number += 1


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
