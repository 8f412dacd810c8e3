"""Odd pictures and clouds are read where cv_bridge and sensor_msgs_py are installed."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from sensor_msgs.msg import Image, PointCloud2, PointField

from mmedge_ros.ros.messages import installed
from mmedge_ros.ros.messages.installed import readable

WIDTH, HEIGHT, STEP = 2, 3, 16


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    installed._installed.cache_clear()
    yield
    installed._installed.cache_clear()


def install(monkeypatch: pytest.MonkeyPatch, name: str, **content: object) -> None:
    package = ModuleType(name)
    vars(package).update(content)
    if '.' in name:
        monkeypatch.setitem(sys.modules, name.split('.')[0], ModuleType(name.split('.')[0]))
    monkeypatch.setitem(sys.modules, name, package)


def odd_picture() -> Image:
    message = Image(width=WIDTH, height=HEIGHT, encoding='bayer_rggb16', step=2 * WIDTH)
    message.header.frame_id = 'camera'
    message.header.stamp.sec = 7
    return message


def cloud_without_row_step() -> PointCloud2:
    fields = [PointField(name=n, offset=4 * i, datatype=7, count=1) for i, n in enumerate('xyz')]
    message = PointCloud2(width=WIDTH, height=1, point_step=STEP, row_step=0, fields=fields)
    message.data = bytes(WIDTH * STEP)
    return message


def test_without_them_a_message_stays_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ('cv_bridge', 'sensor_msgs_py', 'sensor_msgs_py.point_cloud2'):
        monkeypatch.setitem(sys.modules, name, None)
    for message in (odd_picture(), cloud_without_row_step()):
        assert readable(message) is message


def test_a_picture_of_an_unknown_encoding_is_converted_by_cv_bridge_unless_it_refuses(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    picture = np.arange(3 * WIDTH * HEIGHT, dtype=np.uint8).reshape(HEIGHT, WIDTH, 3)
    refusals: list[str] = []

    def convert(message: object, desired_encoding: str) -> np.ndarray:
        if refusals:
            raise TypeError(refusals[0])
        return picture

    bridge = SimpleNamespace(imgmsg_to_cv2=convert)
    install(monkeypatch, 'cv_bridge', CvBridge=lambda: bridge, CvBridgeError=TypeError)
    message = odd_picture()
    read = readable(message)
    assert (read.encoding, read.header.frame_id, read.header.stamp.sec) == ('bgr8', 'camera', 7)
    assert bytes(read.data) == picture.tobytes()
    refusals.append('no such conversion')
    assert readable(message) is message


def test_a_cloud_without_a_row_step_is_read_by_sensor_msgs_py(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def create(header: object, fields: list[object], points: object) -> tuple[object, ...]:
        return header, len(fields), points

    install(
        monkeypatch,
        'sensor_msgs_py.point_cloud2',
        read_points=lambda message: len(message.data),
        create_cloud=create,
    )
    message = cloud_without_row_step()
    assert readable(message) == (message.header, 3, WIDTH * STEP)


def test_usual_messages_are_not_touched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr('mmedge_ros.ros.messages.installed._installed', pytest.fail)
    message = Image(width=1, height=1, encoding='bgr8', step=3)
    assert readable(message) is message
