"""The camera node: pictures, obedience, and what it says when the camera is pulled."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import cv2
import numpy as np
import pytest
from camera_fakes import calibration, picture
from live_graph import Bystander, Stage
from sensor_msgs.msg import CameraInfo, CompressedImage, Image

from mmedge_ros.geometry.projection import CameraModel
from mmedge_ros.ros.messages import names, qos
from mmedge_ros.ros.messages.conversions import from_time
from mmedge_ros.ros.messages.sensor_output import to_camera_info
from mmedge_ros.ros.nodes import camera as camera_module
from mmedge_ros.ros.nodes.camera import CameraNode
from mmedge_ros.sensing.camera.device import BGR, CameraFormat, Exposure, Shot
from mmedge_ros.sensing.camera.image import decode_image

SECOND = 1_000_000_000
RATE = 50.0


class UsbCamera:
    """A camera in real time."""

    name = '/dev/video7'
    notes = ()
    format = CameraFormat(64, 48, RATE, 'MJPG')
    calibration = calibration()

    def grab(self) -> Exposure:
        threading.Event().wait(1.0 / RATE)
        now_ns = time.time_ns()
        return Exposure(now_ns - 5_000_000, now_ns)

    def retrieve(self) -> Shot:
        return Shot(BGR, picture(100))

    def close(self) -> None:
        pass


class Shoot(Stage):
    """A camera node in this process, and a bystander who looks at its pictures."""

    def __init__(self, bystander: Bystander, *arguments: str) -> None:
        given = [a for argument in arguments for a in ('-p', argument)]
        super().__init__(bystander, CameraNode(cli_args=['--ros-args', *given]))
        self.pictures: list[Image] = []
        self.infos: list[CameraInfo] = []
        for kind, topic, heard in (
            (Image, names.CAMERA_IMAGE, self.pictures),
            (CompressedImage, names.CAMERA_IMAGE_COMPRESSED, self.pictures),
            (CameraInfo, names.CAMERA_INFO, self.infos),
        ):
            bystander.node.create_subscription(kind, topic, heard.append, qos.SENSOR)

    def level(self) -> bytes:
        status = self.bystander.diagnostics.get('camera')
        return status.level if status is not None else b''


@pytest.fixture(scope='module')
def video(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp('video') / 'film.avi'
    writer = cv2.VideoWriter(str(path), cv2.VideoWriter.fourcc(*'MJPG'), 25.0, (64, 48))
    for number in range(25):
        writer.write(picture(5 * number))
    writer.release()
    return path


def test_pictures_are_stamped_by_exposure_and_their_calibration_lies_beside_them(
    ros: None, bystander: Bystander, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(camera_module, 'camera_opener', lambda *_: UsbCamera)
    stage = Shoot(bystander)
    stage.wait_until(lambda: len(stage.pictures) > 10 and stage.infos)
    shown = decode_image(stage.pictures[-1])
    assert (shown.shape, int(shown.mean())) == ((48, 64, 3), 100)
    assert stage.pictures[-1].header.frame_id == 'camera_color_optical_frame'
    ages = [time.time_ns() - from_time(p.header.stamp) for p in stage.pictures]
    assert min(ages) >= 5_000_000
    assert CameraModel.from_camera_info(stage.infos[0]).k.tolist() == calibration().k.tolist()
    assert {from_time(i.header.stamp) for i in stage.infos} & {
        from_time(p.header.stamp) for p in stage.pictures
    }
    stage.wait_until(lambda: stage.level() == b'\x00')
    assert stage.bystander.figure('camera', 'device') == '/dev/video7'
    stage.end()


def test_a_video_file_is_a_camera(ros: None, bystander: Bystander, video: Path) -> None:
    stage = Shoot(
        bystander, 'source:=file', f'device:={video}', 'image_transport:=compressed', 'loop:=true'
    )
    try:
        stage.wait_until(lambda: len(stage.pictures) >= 8)
    finally:
        stage.end()
    assert {p.format for p in stage.pictures} == {'jpeg'}
    # A picture that a busy machine has no time for is left out; its place stays empty.
    periods = np.diff([from_time(p.header.stamp) for p in stage.pictures]) * 25 / SECOND
    assert periods.min() == pytest.approx(1.0, abs=0.02)
    assert periods == pytest.approx(np.round(periods), abs=0.02)


@pytest.mark.parametrize('model', ['none', 'plumb_bob', 'equidistant'])
def test_a_calibration_survives_the_message(model: str) -> None:
    count = {'none': 0, 'plumb_bob': 5, 'equidistant': 4}[model]
    camera = CameraModel(640, 480, calibration(640, 480).k, np.full(count, 0.01), model)
    read = CameraModel.from_camera_info(to_camera_info(camera, SECOND, 'lens'))
    assert (read.width, read.height) == (640, 480)
    assert read.k.tolist() == camera.k.tolist()
    pixels = np.array([[330.0, 250.0], [290.0, 225.0]])
    assert np.isfinite(camera.bearing(pixels)).all()
    assert np.allclose(read.bearing(pixels), camera.bearing(pixels))
