"""Tracks as markers and in pictures, and only for those who look."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hand_made_decisions import NOW_NS, a_decision, a_track
from live_graph import Bystander, Stage
from sensor_msgs.msg import Image
from visualization_msgs.msg import Marker, MarkerArray

from mmedge_ros import msg
from mmedge_ros.core.data_types import Box, Decision, ResultKind
from mmedge_ros.ros.messages import conversions, names, qos
from mmedge_ros.ros.messages.markers import status_text, track_markers
from mmedge_ros.ros.messages.sensor_output import to_image
from mmedge_ros.ros.nodes.visualizer import Visualizer

GREY = np.full((60, 80, 3), 90, np.uint8)


class Screen(Stage):
    """The visualizer, with a bystander who feeds it and watches."""

    def __init__(self, bystander: Bystander) -> None:
        super().__init__(bystander, Visualizer())
        self.looker = bystander.node
        self._tracks = self.looker.create_publisher(msg.TrackArray, names.TRACKS, qos.RESULT)
        self._pictures = self.looker.create_publisher(Image, names.CAMERA_IMAGE, qos.SENSOR)
        topic = self._tracks.topic_name
        self.wait_until(
            lambda: (
                {'visualizer', 'bystander'}
                <= {end.node_name for end in self.looker.get_subscriptions_info_by_topic(topic)}
                and self._tracks.get_subscription_count() >= 2
            )
        )

    def hear(self, kind: type, topic: str) -> list[Any]:
        """Return what will have come on a topic."""
        heard: list[Any] = []
        self.looker.create_subscription(kind, topic, heard.append, qos.RESULT)
        return heard

    def say(self, decision: Decision, **changes: Any) -> None:
        message = conversions.to_track_array(decision)
        for name, value in changes.items():
            setattr(message, name, value)
        self._tracks.publish(message)

    def show(self) -> None:
        self._pictures.publish(to_image(GREY, NOW_NS, 'camera'))

    def wanted_pictures(self) -> bool:
        return self._pictures.get_subscription_count() > 0


@pytest.fixture
def screen(ros: None, bystander: Bystander) -> Iterator[Screen]:
    found = Screen(bystander)
    yield found
    found.end()


def test_markers_reach_those_who_look_whatever_else_is_said(screen: Screen) -> None:
    seen = screen.hear(MarkerArray, names.MARKERS)
    screen.wait_until(lambda: seen, lambda: screen.say(a_decision(a_track())))
    assert {m.ns for m in seen[0].markers if m.id == 3} == {
        *('body', 'name', 'velocity', 'uncertainty')
    }
    seen.clear()
    screen.say(a_decision(a_track()), newest=[])
    screen.say(a_decision(a_track(id=9, position=np.array([np.nan, 0, 0]))))
    screen.say(a_decision(a_track(id=5)))

    def shown() -> set[int]:
        return {m.id for array in seen for m in array.markers}

    screen.wait_until(lambda: 5 in shown())
    assert shown() <= {0, 3, 5}


def test_pictures_are_asked_for_and_drawn_only_while_somebody_looks(screen: Screen) -> None:
    # Processes that were killed in an earlier test count for a while, for each side as long as it
    # takes that side to miss them.
    screen.wait_until(lambda: screen.node.get_subscriptions_info_by_topic('/camera/image') == [])
    screen.wait_until(lambda: not screen.wanted_pictures())
    seen: list[Image] = []
    looking = screen.looker.create_subscription(
        Image, names.ANNOTATED_IMAGE, seen.append, qos.SENSOR
    )
    screen.wait_until(screen.wanted_pictures)
    screen.say(a_decision(a_track(box=Box(10.0, 20.0, 40.0, 50.0))))
    screen.wait_until(lambda: seen, screen.show)
    (first, *_) = seen
    assert (first.width, first.height, first.encoding) == (80, 60, 'bgr8')
    assert conversions.from_time(first.header.stamp) == NOW_NS
    screen.wait_until(
        lambda: any(
            not np.array_equal(np.frombuffer(m.data, np.uint8), GREY.ravel()) for m in seen
        ),
        screen.show,
    )
    screen.looker.destroy_subscription(looking)
    screen.wait_until(lambda: not screen.wanted_pictures())


def test_updates_move_markers_and_leave_the_status_to_decisions(screen: Screen) -> None:
    markers = screen.hear(MarkerArray, names.MARKERS)
    status = screen.hear(Marker, names.STATUS_MARKER)
    update = replace(a_decision(a_track()), kind=ResultKind.UPDATE)
    screen.wait_until(lambda: len(markers) > 3, lambda: screen.say(update))
    assert not status
    screen.wait_until(lambda: status, lambda: screen.say(a_decision(a_track())))


def test_the_first_marker_clears_those_of_the_decision_before() -> None:
    first, *others = track_markers(a_decision(a_track(), a_track(id=8))).markers
    assert first.action == Marker.DELETEALL
    assert {m.id for m in others} == {3, 8}
    assert len({(m.ns, m.id) for m in others}) == len(others)
    assert {m.header.frame_id for m in others} == {'radar_link'}


def test_arrow_and_ellipse_show_where_the_track_goes_and_how_sure_that_is() -> None:
    covariance = np.zeros((6, 6))
    covariance[:2, :2] = [[1.0, 0.9], [0.9, 1.0]]
    markers = {m.ns: m for m in track_markers(a_decision(a_track(covariance=covariance))).markers}
    arrow, ellipse = markers['velocity'], markers['uncertainty']
    assert arrow.type == Marker.ARROW
    assert [(p.x, p.y, p.z) for p in arrow.points] == [(4.0, -1.0, 0.5), (4.5, -1.25, 0.5)]
    assert ellipse.scale.x == pytest.approx(2 * 1.9**0.5)
    assert ellipse.scale.y == pytest.approx(2 * 0.1**0.5)
    angle = 2 * np.arctan2(ellipse.pose.orientation.z, ellipse.pose.orientation.w)
    assert np.tan(angle) == pytest.approx(1.0)


def test_the_status_tells_latency_age_and_what_was_left_out() -> None:
    decision = replace(
        a_decision(a_track()),
        window_end_ns=NOW_NS,
        published_ns=NOW_NS + 12_000_000,
        newest_ns={'camera': NOW_NS - 38_000_000},
        skipped=('radar',),
        late=(),
        lost=(),
        degraded=('no odometry',),
    )
    assert status_text(decision, None).splitlines() == [
        '1 track',
        'latency 12.0 ms, age camera 50 ms',
        'configuration: native rates, default levels',
        'skipped: radar',
        'degraded: no odometry',
    ]
