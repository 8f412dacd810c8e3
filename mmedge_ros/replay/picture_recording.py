"""Video files and folders of pictures read as recordings of a camera.

Pictures come as messages on topics of their own, with a camera_info of nominal intrinsics beside
each, so that everything that replays a bag replays a video. Their stamps are the times of the
video plus a second, because in ROS a stamp of 0 says that there is none.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rosbags.typesys import Stores, get_typestore

from mmedge_ros.core.data_types import NS_PER_S
from mmedge_ros.core.parameter import parameter
from mmedge_ros.geometry.projection import CameraModel
from mmedge_ros.replay import BagError
from mmedge_ros.replay.bag_scan import Record
from mmedge_ros.replay.bag_storage import METADATA, Report, TopicInfo
from mmedge_ros.sensing import SensingError
from mmedge_ros.sensing.camera.image import Picture
from mmedge_ros.sensing.camera.video_reader import (
    PICTURE_SUFFIXES,
    TimedPictures,
    open_pictures,
)

FRAME_ID = 'camera_color_optical_frame'
_IMAGE, _IMAGE_TYPE = '/camera/image', 'sensor_msgs/msg/Image'
_INFO, _INFO_TYPE = '/camera/camera_info', 'sensor_msgs/msg/CameraInfo'
# Networks see pictures of 640 px at most; larger ones cost time and memory for nothing.
LONGEST_SIDE = 1280
BEGIN_NS = NS_PER_S
_RESULT = 'report.json'
_BAGS = frozenset({'.mcap', '.db3', '.bag'})


@dataclass(frozen=True)
class PictureParameters:
    """What a video file or a folder of pictures does not say of itself."""

    fov: float = parameter(
        70.0,
        'angle of view of a video across the longer side of its pictures, for ranges and '
        'positions; 70 is about that of a phone, a drone has 70 to 85',
        'deg',
        5.0,
        150.0,
    )
    fps: float = parameter(30.0, 'pictures per second of a folder of pictures', 'Hz', 0.1, 480.0)


def holds_pictures(path: Path) -> bool:
    """Whether a path is to be read as a video or a folder of pictures, and not as a bag.

    :raises BagError: for the folder of a report, whose pictures are not those of a camera
    """
    if not path.is_dir():
        return path.is_file() and path.suffix.lower() not in _BAGS
    if (path / METADATA).exists():
        return False
    if (path / _RESULT).exists():
        raise BagError(f'{path} is what a replay wrote; name the recording that was replayed')
    suffixes = {file.suffix.lower() for file in path.iterdir()}
    return not suffixes & _BAGS and not suffixes.isdisjoint(PICTURE_SUFFIXES)


class PicturePart:
    """A video file or a folder of pictures as a piece of a recording; see `Part`.

    ``shown_size`` is the size of its pictures as a player shows them, ``size`` that of the
    messages', in pixels.

    :raises BagError: when it cannot be read
    """

    def __init__(self, path: Path, parameters: PictureParameters, report: Report) -> None:
        self.definitions: dict[str, tuple[str, str]] = {}
        self.begin_ns = BEGIN_NS
        self._path = path
        self.parameters = parameters
        self._report = report
        self._times_ns: tuple[int, ...] = ()
        pictures = self._open()
        self.size, self.shown_size = pictures.size, pictures.shown_size
        self._promised_ns, rate = pictures.promised_ns, pictures.rate
        pictures.close()
        self._types = get_typestore(Stores.ROS2_KILTED)
        self._nominal = nominal_camera(self.size, parameters.fov)
        self._info = self._info_fields(self._nominal)
        # A guess until all was read once; that there are some is what matters.
        count = max(round(self._promised_ns / NS_PER_S * rate), 1)
        self.topics: tuple[TopicInfo, ...] = (
            TopicInfo(_INFO, _INFO_TYPE, count),
            TopicInfo(_IMAGE, _IMAGE_TYPE, count),
        )

    @property
    def end_ns(self) -> int:
        """The last picture's time; until all were read once, what the file promises."""
        return self._times_ns[-1] if self._times_ns else BEGIN_NS + self._promised_ns

    @property
    def scale(self) -> float:
        """How much larger the file's own pictures are."""
        return max(self.shown_size) / max(self.size)

    def calibrated(self, given: CameraModel | None) -> tuple[CameraModel, str]:
        """Return the camera's model for the messages' pictures, and what to say of it.

        :param given: of a calibration file, for the file's own pictures; None for nominal values
        """
        size = f'{self.shown_size[0]} x {self.shown_size[1]} px'
        scaled = f', replayed at {self.size[0]} x {self.size[1]}' if self.scale > 1.0 else ''
        about = f'camera only: pictures of {size}{scaled}'
        if given is None:
            return self._nominal, (
                f'{about}. It brings no calibration: a lens without distortion of '
                f'{self.parameters.fov:g} degrees across the longer side is assumed (--fov, '
                '--calibration), level and at rest, so that ranges, positions and speeds are '
                'guesses from the heights of boxes'
            )
        if (given.width, given.height) == self.shown_size:
            given = given.scaled(*self.size)
        return given, f'{about}. Ranges are guesses from the heights of boxes'

    def messages(self, names: frozenset[str]) -> Iterator[Record]:
        pictures = self._open()
        left_out, first = 0, ''
        try:
            for time_ns in self._times_of(pictures):
                if _INFO in names:
                    yield self._record(time_ns, _INFO, _INFO_TYPE, self._info)
                if _IMAGE not in names:
                    continue
                try:
                    picture = pictures.retrieve()
                except SensingError as error:
                    left_out, first = left_out + 1, first or str(error)
                else:
                    yield self._record(time_ns, _IMAGE, _IMAGE_TYPE, _image_fields(picture))
        finally:
            pictures.close()
        if left_out:
            others = f', and {left_out - 1} more' if left_out > 1 else ''
            self._report(f'a picture was left out: {first}{others}')

    def times_ns(self) -> Iterator[int]:
        """Yield the pictures' times; none is decoded twice, or at all once they are known."""
        if self._times_ns:
            yield from self._times_ns
            return
        pictures = self._open()
        try:
            yield from self._times_of(pictures)
        finally:
            pictures.close()

    def close(self) -> None:
        """Nothing stays open between readings."""

    def _open(self) -> TimedPictures:
        try:
            return open_pictures(self._path, self.parameters.fps, LONGEST_SIDE)
        except SensingError as error:
            raise BagError(f'{error}, and it is no recording (.mcap, .db3) either') from error

    def _times_of(self, pictures: TimedPictures) -> Iterator[int]:
        times = []
        while (time_ns := pictures.grab()) is not None:
            times.append(BEGIN_NS + time_ns)
            yield times[-1]
        self._times_ns = tuple(times)
        for problem in pictures.problems:
            self._report(problem)

    def _record(self, time_ns: int, topic: str, msgtype: str, fields: dict[str, Any]) -> Record:
        types = self._types.types
        stamp = types['builtin_interfaces/msg/Time'](*divmod(time_ns, NS_PER_S))
        header = types['std_msgs/msg/Header'](stamp, FRAME_ID)
        message = types[msgtype](header=header, **fields)
        return Record(time_ns, topic, msgtype, bytes(self._types.serialize_cdr(message, msgtype)))

    def _info_fields(self, camera: CameraModel) -> dict[str, Any]:
        region = self._types.types['sensor_msgs/msg/RegionOfInterest']
        return {
            'height': camera.height,
            'width': camera.width,
            'distortion_model': 'plumb_bob',
            'd': np.zeros(5),
            'k': camera.k.reshape(-1),
            'r': np.eye(3).reshape(-1),
            'p': np.column_stack([camera.k, np.zeros(3)]).reshape(-1),
            'binning_x': 0,
            'binning_y': 0,
            'roi': region(0, 0, 0, 0, do_rectify=False),
        }


def _image_fields(picture: Picture) -> dict[str, Any]:
    height, width = picture.shape[:2]
    return {
        'height': height,
        'width': width,
        'encoding': 'bgr8',
        'is_bigendian': 0,
        'step': 3 * width,
        'data': picture.reshape(-1),
    }


def nominal_camera(size: tuple[int, int], fov: float) -> CameraModel:
    """Return a camera without distortion that looks through the middle of its pictures.

    :param fov: angle of view across the longer side, deg
    """
    width, height = size
    focal = max(size) / 2.0 / math.tan(math.radians(fov) / 2.0)
    return CameraModel.nominal(width, height, focal)
