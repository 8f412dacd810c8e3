"""The node of the live page: it listens only while a browser looks."""

from __future__ import annotations

import http.client
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import cv2
import numpy as np
import pytest
from hand_made_decisions import NOW_NS, a_decision, a_track, a_unit
from live_graph import Bystander, Stage
from sensor_msgs.msg import Image

from mmedge_ros import msg
from mmedge_ros.core.data_types import Box
from mmedge_ros.ros.messages import conversions, names, qos
from mmedge_ros.ros.messages.interfaces import INTERFACES
from mmedge_ros.ros.messages.sensor_output import to_image
from mmedge_ros.ros.nodes.viewer import Viewer

GREY = np.full((60, 80, 3), 90, np.uint8)
ARGUMENTS = ['--ros-args', '-p', 'port:=18480']


class Browser:
    """Reads states, and where wanted one picture, in threads of its own."""

    def __init__(self, address: str) -> None:
        self._host = address.removeprefix('http://')
        self._connection = http.client.HTTPConnection(self._host, timeout=20)
        self._connection.connect()
        self._socket = self._connection.sock
        self.states: list[dict[str, Any]] = []
        self.picture = b''
        threading.Thread(target=self._read_states, daemon=True).start()

    def look_at_picture(self) -> None:
        threading.Thread(target=self._read_picture, daemon=True).start()

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)

    def _read_states(self) -> None:
        self._connection.request('GET', '/states')
        answer = self._connection.getresponse()
        with suppress(ConnectionError):  # the node ended
            while line := answer.readline():
                if line.startswith(b'data: '):
                    self.states.append(json.loads(line[6:]))

    def _read_picture(self) -> None:
        connection, after = http.client.HTTPConnection(self._host, timeout=20), '0'
        while not self.picture:
            connection.request('GET', f'/picture?after={after}')
            answer = connection.getresponse()
            self.picture = answer.read()
            after = answer.headers['Picture-Number']
        connection.close()


class Page(Stage):
    """The viewer, with a bystander who feeds it."""

    def __init__(self, bystander: Bystander) -> None:
        self.viewer = Viewer(cli_args=ARGUMENTS)
        super().__init__(bystander, self.viewer)
        node = bystander.node
        self.pictures = node.create_publisher(Image, names.CAMERA_IMAGE, qos.SENSOR)
        self.tracks = node.create_publisher(msg.TrackArray, names.TRACKS, qos.RESULT)
        self.features = node.create_publisher(msg.UnitFeatures, names.UNIT_FEATURES, qos.RESULT)

    def browser(self) -> Browser:
        return Browser(self.viewer._page.address)

    def is_listening(self) -> bool:
        return self.pictures.get_subscription_count() > 0


@pytest.fixture
def stage(ros: None, bystander: Bystander) -> Iterator[Page]:
    page = Page(bystander)
    yield page
    page.end()


def test_it_listens_from_the_first_browser_to_the_last(stage: Page) -> None:
    stage.wait_until(lambda: stage.viewer._page.watchers == 0)
    assert not stage.is_listening()
    # The clock, where it is simulated, is all that a node without subscriptions listens to.
    assert [s.topic_name for s in stage.viewer.subscriptions] == []
    one, other = stage.browser(), stage.browser()
    stage.wait_until(stage.is_listening)
    promised = {f'/{i.topic.lstrip("/")}' for i in INTERFACES if 'viewer' in i.subscribers}
    taken = {subscription.topic_name for subscription in stage.viewer.subscriptions}
    elsewhere = {'/tf', '/tf_static', '/fmu/out/vehicle_odometry', '/camera/image/compressed'}
    assert promised - taken <= elsewhere
    assert taken <= promised
    one.close()
    stage.wait_until(lambda: stage.viewer._page.watchers == 1)
    assert stage.is_listening()
    other.close()
    stage.wait_until(lambda: not stage.is_listening())
    assert list(stage.viewer.subscriptions) == []
    again = stage.browser()
    stage.wait_until(stage.is_listening)
    again.close()


def test_decisions_returns_and_pictures_reach_the_page(stage: Page) -> None:
    browser = stage.browser()
    stage.wait_until(stage.is_listening)
    decision = conversions.to_track_array(a_decision(a_track(box=Box(10.0, 20.0, 40.0, 50.0))))
    nowhere = conversions.to_track_array(a_decision(a_track(position=np.array([np.nan, 0, 0]))))
    features = conversions.to_features(a_unit())

    def feed() -> None:
        stage.features.publish(features)
        stage.tracks.publish(nowhere)
        stage.tracks.publish(decision)

    stage.wait_until(
        lambda: any(state['tracks'] and state['returns'] for state in browser.states), feed
    )
    state = next(state for state in browser.states if state['tracks'] and state['returns'])
    assert [track['id'] for track in state['tracks']] == [3]
    browser.look_at_picture()
    broken = Image(width=80, height=60, encoding='bgr8', step=240)

    def show() -> None:
        stage.pictures.publish(broken)
        stage.pictures.publish(to_image(GREY, NOW_NS, 'camera'))

    stage.wait_until(lambda: browser.picture, show)
    shown = cv2.imdecode(np.frombuffer(browser.picture, np.uint8), cv2.IMREAD_COLOR)
    assert shown is not None
    assert shown.shape == GREY.shape
    browser.close()
