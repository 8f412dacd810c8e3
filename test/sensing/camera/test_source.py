"""What can never work is refused at once; what may come later is not."""

from __future__ import annotations

from pathlib import Path

import pytest
from camera_fakes import BEGIN_NS, Waiting

from mmedge_ros.clock import VirtualClock
from mmedge_ros.sensing import SensingError
from mmedge_ros.sensing.camera.device import CameraOpener, CameraParameters
from mmedge_ros.sensing.camera.source import camera_opener, given_calibration

CAMERA_INFO = """
image_width: 64
image_height: 48
camera_matrix: {rows: 3, cols: 3, data: [50, 0, 32, 0, 50, 24, 0, 0, 1]}
"""


def opener(**parameters: object) -> CameraOpener:
    clock = VirtualClock(BEGIN_NS)
    p = CameraParameters(**parameters)  # type: ignore[arg-type]
    return camera_opener(p, clock, Waiting(clock))


@pytest.mark.parametrize(
    ('parameters', 'words'),
    [
        ({'source': 'file', 'device': '/no/such'}, 'name a video file'),
        ({'source': 'gstreamer', 'device': 'videotestsrc'}, 'GStreamer'),
    ],
    ids=['file', 'gstreamer'],
)
def test_what_can_never_work_is_refused_at_once(parameters: dict[str, object], words: str) -> None:
    with pytest.raises(SensingError, match=words):
        opener(**parameters)


def test_a_file_that_is_no_film_is_refused_at_once(tmp_path: Path) -> None:
    path = tmp_path / 'film.mp4'
    path.write_bytes(b'no film' * 1000)
    with pytest.raises(SensingError, match='cannot be read as a video'):
        opener(source='file', device=str(path))
    with pytest.raises(SensingError, match='holds no pictures'):
        opener(source='file', device=str(tmp_path))


def test_a_device_that_is_not_there_yet_is_no_reason_to_give_up() -> None:
    open_camera = opener(device='/dev/not plugged in yet')
    with pytest.raises(SensingError, match='is the camera plugged in'):
        open_camera()


def test_a_calibration_file_must_hold_a_camera(tmp_path: Path) -> None:
    path = tmp_path / 'camera.yaml'
    assert given_calibration(CameraParameters()) is None
    path.write_text(CAMERA_INFO)
    camera = given_calibration(CameraParameters(calibration_file=str(path)))
    assert camera is not None
    assert (camera.width, camera.height) == (64, 48)
    path.write_text(
        'transforms: [{parent: a, child: b, translation: [0, 0, 0], rotation: [0, 0, 0, 1]}]'
    )
    with pytest.raises(SensingError, match='holds no camera'):
        given_calibration(CameraParameters(calibration_file=str(path)))
    with pytest.raises(SensingError, match='No such file'):
        given_calibration(CameraParameters(calibration_file=str(tmp_path / 'gone.yaml')))
