"""Tracks as markers and in pictures, and only for those who look."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hand_made_decisions import NOW_NS, a_decision, a_track
from live_graph import Bystander, wait_until
from rclpy.executors import SingleThreadedExecutor
from sensor_msgs.msg import Image
from visualization_msgs.msg import Marker, MarkerArray

from mmedge_ros import msg
from mmedge_ros.core.data_types import Box, ResultKind
from mmedge_ros.ros.messages import conversions, names, qos
from mmedge_ros.ros.messages.markers import track_markers
from mmedge_ros.ros.messages.sensor_output import to_image
from mmedge_ros.ros.nodes.visualizer import Visualizer

GREY = np.full((60, 80, 3), 90, np.uint8)


class Stage:
    """The visualizer, with a bystander who feeds it and watches."""

    def __init__(self, bystander: Bystander) -> None:
        self.visualizer = Visualizer()
        self.node = bystander.node
        self._bystander = bystander
        self._executor = SingleThreadedExecutor()
        self._executor.add_node(self.visualizer)
        self._tracks = self.node.create_publisher(msg.TrackArray, names.TRACKS, qos.RESULT)
        self._pictures = self.node.create_publisher(Image, names.CAMERA_IMAGE, qos.SENSOR)
        self.wait_until(lambda: self._tracks.get_subscription_count() == 2)  # and the bystander

    def wait_until(
        self, condition: Callable[[], Any], meanwhile: Callable[[], Any] | None = None
    ) -> Any:
        def both() -> None:
            self._executor.spin_once(timeout_sec=0.0)
            if meanwhile is not None:
                meanwhile()

        return wait_until(self._bystander.executor, condition, meanwhile=both)

    def say(self, message: msg.TrackArray) -> None:
        self._tracks.publish(message)

    def show(self) -> None:
        self._pictures.publish(to_image(GREY, NOW_NS, 'camera'))

    def wanted_pictures(self) -> bool:
        return self._pictures.get_subscription_count() > 0


@pytest.fixture
def stage(ros: None, bystander: Bystander) -> Iterator[Stage]:
    found = Stage(bystander)
    yield found
    found.visualizer.destroy_node()


def test_markers_reach_those_who_look(stage: Stage) -> None:
    seen: list[MarkerArray] = []
    stage.node.create_subscription(MarkerArray, names.MARKERS, seen.append, qos.RESULT)
    message = conversions.to_track_array(a_decision(a_track()))
    stage.wait_until(lambda: seen, lambda: stage.say(message))
    assert {m.ns for m in seen[0].markers if m.id == 3} == {
        'body',
        'name',
        'velocity',
        'uncertainty',
    }


def test_a_message_that_cannot_be_true_does_not_end_the_node(stage: Stage) -> None:
    seen: list[MarkerArray] = []
    stage.node.create_subscription(MarkerArray, names.MARKERS, seen.append, qos.RESULT)
    good = conversions.to_track_array(a_decision(a_track()))
    stage.wait_until(lambda: seen, lambda: stage.say(good))
    seen.clear()
    lists_differ = conversions.to_track_array(a_decision(a_track()))
    lists_differ.newest = []
    nowhere = conversions.to_track_array(
        a_decision(a_track(id=9, position=np.array([np.nan, 0, 0])))
    )
    late = conversions.to_track_array(a_decision(a_track(id=5)))
    for message in (lists_differ, nowhere, late):
        stage.say(message)

    def shown() -> set[int]:
        return {m.id for array in seen for m in array.markers}

    stage.wait_until(lambda: 5 in shown())
    assert shown() <= {0, 3, 5}


def test_pictures_are_asked_for_and_drawn_only_while_somebody_looks(stage: Stage) -> None:
    stage.wait_until(
        lambda: stage.visualizer.get_subscriptions_info_by_topic('/camera/image') == []
    )
    seen: list[Image] = []
    tracks = conversions.to_track_array(a_decision(a_track(box=Box(10.0, 20.0, 40.0, 50.0))))
    assert not stage.wanted_pictures()
    looking = stage.node.create_subscription(Image, names.ANNOTATED_IMAGE, seen.append, qos.SENSOR)
    stage.wait_until(stage.wanted_pictures)
    stage.say(tracks)
    stage.wait_until(lambda: seen, stage.show)
    (first, *_) = seen
    assert (first.width, first.height, first.encoding) == (80, 60, 'bgr8')
    assert conversions.from_time(first.header.stamp) == NOW_NS
    stage.wait_until(
        lambda: any(
            not np.array_equal(np.frombuffer(m.data, np.uint8), GREY.ravel()) for m in seen
        ),
        stage.show,
    )
    stage.node.destroy_subscription(looking)
    stage.wait_until(lambda: not stage.wanted_pictures())


class TestMarkers:
    def test_the_first_one_clears_those_of_the_decision_before(self) -> None:
        first, *others = track_markers(a_decision(a_track(), a_track(id=8))).markers
        assert first.action == Marker.DELETEALL
        assert {m.id for m in others} == {3, 8}
        assert len({(m.ns, m.id) for m in others}) == len(others)
        assert {m.header.frame_id for m in others} == {'radar_link'}

    def test_the_arrow_shows_where_the_track_is_in_a_second(self) -> None:
        markers = track_markers(a_decision(a_track())).markers
        (arrow,) = (m for m in markers if m.ns == 'velocity')
        assert arrow.type == Marker.ARROW
        assert [(p.x, p.y, p.z) for p in arrow.points] == [(4.0, -1.0, 0.5), (4.5, -1.25, 0.5)]

    def test_the_ellipse_lies_along_the_greatest_deviation(self) -> None:
        covariance = np.zeros((6, 6))
        covariance[:2, :2] = [[1.0, 0.9], [0.9, 1.0]]
        markers = track_markers(a_decision(a_track(covariance=covariance))).markers
        (ellipse,) = (m for m in markers if m.ns == 'uncertainty')
        assert ellipse.scale.x == pytest.approx(2 * 1.9**0.5)
        assert ellipse.scale.y == pytest.approx(2 * 0.1**0.5)
        angle = 2 * np.arctan2(ellipse.pose.orientation.z, ellipse.pose.orientation.w)
        assert np.tan(angle) == pytest.approx(1.0)


def test_updates_move_markers_and_leave_the_status_to_decisions(stage: Stage) -> None:
    markers: list[MarkerArray] = []
    status: list[Marker] = []
    stage.node.create_subscription(MarkerArray, names.MARKERS, markers.append, qos.RESULT)
    stage.node.create_subscription(Marker, names.STATUS_MARKER, status.append, qos.RESULT)
    update = replace(a_decision(a_track()), kind=ResultKind.UPDATE)
    message = conversions.to_track_array(update)
    stage.wait_until(lambda: len(markers) > 3, lambda: stage.say(message))
    assert not status
    message = conversions.to_track_array(a_decision(a_track()))
    stage.wait_until(lambda: status, lambda: stage.say(message))
