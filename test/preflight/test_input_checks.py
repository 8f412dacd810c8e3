"""Inputs of a graph: each fault is named with its topic and a remedy."""

from __future__ import annotations

from datetime import date

import pytest
from hand_made_graph import NOW_NS, arrivals, good_graph, view
from hypothesis import given, settings
from hypothesis import strategies as st

from mmedge_ros.core.data_types import CAMERA, RADAR
from mmedge_ros.preflight.finding import Finding, State
from mmedge_ros.preflight.graph_view import (
    BATTERY,
    COMPRESSED,
    ODOMETRY,
    PX4_ODOMETRY,
    STATIC_TRANSFORMS,
    GraphView,
    NodeStatus,
    TopicArrival,
    TopicEndpoint,
    TopicView,
    with_one_camera,
    with_one_odometry,
)
from mmedge_ros.preflight.input_checks import (
    CONTENTS,
    check_age,
    check_clocks,
    check_frames,
    check_inputs,
    check_nodes,
    measured_rate,
    why_missing,
)

COMPRESSED_IMAGE = 'sensor_msgs/msg/CompressedImage'
EXTRINSICS = ('base_link radar_link 0 0 0 0 0 0 1', 'base_link optical 0 0 0 -0.5 0.5 -0.5 0.5')


def by_subject(findings: list[Finding]) -> dict[str, Finding]:
    return {finding.subject: finding for finding in findings}


def all_checks(graph: GraphView) -> list[Finding]:
    return [
        *check_inputs(graph),
        *check_clocks(graph),
        *check_frames(graph),
        *check_nodes(graph.statuses),
    ]


def test_a_good_graph_has_nothing_to_note_and_survives_being_written() -> None:
    graph = good_graph()
    assert {finding.state for finding in all_checks(graph)} == {State.OK}
    assert GraphView.from_json(graph.to_json()) == graph


def test_an_empty_domain_is_a_note_and_nothing_else_is_said() -> None:
    graph = GraphView({CAMERA: view(CAMERA)._replace(subscribers=())}, {})
    assert [f.state for f in all_checks(graph)] == [State.NOTE]


def test_a_sensor_that_nobody_publishes_is_wrong_once_our_graph_waits_for_it() -> None:
    missing = view(CAMERA)
    found = by_subject(check_inputs(good_graph(camera=missing)))[CAMERA]
    assert found.state is State.WRONG
    assert found.words == 'nothing publishes /camera/image'
    before = missing._replace(subscribers=())
    assert by_subject(check_inputs(good_graph(camera=before)))[CAMERA].state is State.NOTE


def test_topics_of_the_same_type_are_proposed() -> None:
    graph = good_graph(radar=view(RADAR))
    graph.others['/ti_mmwave/scan'] = 'sensor_msgs/msg/PointCloud2'
    assert (
        '--radar; of that type: /ti_mmwave/scan' in by_subject(check_inputs(graph))[RADAR].remedy
    )


def test_pictures_that_come_compressed_only_have_a_remedy_of_their_own() -> None:
    reason = why_missing(CAMERA, view(CAMERA), {'/camera/image/compressed': COMPRESSED_IMAGE})
    assert reason is not None
    assert '--image-transport compressed' in reason.remedy


@pytest.mark.parametrize(
    ('name', 'kind', 'remedy'),
    [
        (CAMERA, COMPRESSED_IMAGE, '--image-transport compressed'),
        (CAMERA, 'std_msgs/msg/String', '--camera'),
        (RADAR, 'sensor_msgs/msg/LaserScan', '--radar'),
    ],
)
def test_a_foreign_type_under_our_name_is_wrong(name: str, kind: str, remedy: str) -> None:
    foreign = view(name)._replace(publishers=(TopicEndpoint('stranger', kind),))
    found = by_subject(check_inputs(good_graph(**{name: foreign})))[name]
    assert found.state is State.WRONG
    assert kind in found.words
    assert 'stranger' in found.words
    assert remedy in found.remedy


def test_quality_of_service_is_compared_with_what_is_really_subscribed() -> None:
    topic = view(CAMERA, 'usb_cam')
    picky = topic._replace(subscribers=(topic.subscribers[0]._replace(reliable=True),))
    found = by_subject(check_inputs(good_graph(camera=picky)))[CAMERA]
    assert found.state is State.WRONG
    assert 'BEST_EFFORT, RELIABLE is wanted' in found.words


def test_one_publisher_that_suits_is_enough() -> None:
    topic = view(CAMERA, 'usb_cam', heard=arrivals(20.0, 0.03))
    both = topic._replace(
        publishers=(*topic.publishers, TopicEndpoint('x', 'std_msgs/msg/String'))
    )
    assert why_missing(CAMERA, both, {}) is None


def test_static_transforms_must_be_latched() -> None:
    topic = TopicView('/tf_static', 'tf2_msgs/msg/TFMessage')
    volatile = topic._replace(publishers=(TopicEndpoint('x', topic.msgtype, reliable=True),))
    reason = why_missing(STATIC_TRANSFORMS, volatile, {})
    assert reason is not None
    assert 'TRANSIENT_LOCAL is wanted' in reason.words


def test_a_silent_publisher_two_publishers_and_unusable_messages_are_wrong() -> None:
    heard = arrivals(20.0, 0.03)
    graph = good_graph(
        camera=view(CAMERA, 'usb_cam'),
        radar=view(RADAR, 'a', 'b', heard=heard),
        odometry=view(ODOMETRY, 'mavros', heard=heard, problem='no orientation'),
    )
    found = check_inputs(graph)
    assert by_subject(found)[CAMERA].words == 'usb_cam publishes /camera/image and sends nothing'
    assert [f.state for f in found if f.subject == RADAR] == [State.WRONG, State.OK]
    assert by_subject(found)[ODOMETRY].state is State.WRONG


def test_a_calibration_for_another_size_is_noted_and_one_that_is_none_as_well() -> None:
    heard = arrivals(20.0, 0.03)
    camera = view(CAMERA, 'c', heard=heard, detail='640 x 480 px bgr8')
    info = TopicView(
        '/camera/camera_info', 'CameraInfo', (TopicEndpoint('c', 'CameraInfo'),), (), heard
    )

    def judged(**fields: str) -> list[Finding]:
        graph = good_graph(camera=camera, camera_info=info._replace(**fields))
        return [f for f in check_inputs(graph) if f.subject == 'camera_info']

    assert [f.state for f in judged(detail='for 640 x 480 px')] == [State.OK]
    assert 'for 64 x 48 px, the pictures have 640' in judged(detail='for 64 x 48 px')[-1].words
    assert [f.state for f in judged(problem='not calibrated')] == [State.NOTE]


def test_a_battery_is_missed_only_where_a_node_waits_for_it() -> None:
    battery = TopicView('/battery_state', 'BatteryState')
    monitor = battery._replace(subscribers=(TopicEndpoint('monitor', 'BatteryState'),))
    assert BATTERY not in by_subject(check_inputs(good_graph(battery=battery)))
    found = by_subject(check_inputs(good_graph(battery=monitor)))
    assert found[BATTERY].state is State.NOTE


@pytest.mark.parametrize(('rate', 'state'), [(3.0, State.NOTE), (9.5, State.OK)])
def test_a_slow_camera_is_noted(rate: float, state: State) -> None:
    graph = good_graph(camera=view(CAMERA, 'usb_cam', heard=arrivals(rate, 0.03)))
    found = by_subject(check_inputs(graph))[CAMERA]
    assert found.state is state
    assert f'{rate:.1f} Hz' in found.words


def test_a_rate_needs_two_messages_at_different_times() -> None:
    assert measured_rate(()) == 0.0
    assert measured_rate([TopicArrival(5, 1)] * 3) == 0.0


@pytest.mark.parametrize(
    ('age', 'words'),
    [(-3.0, '3 s in the future'), (40.0, '40 s old'), (NOW_NS / 1e9, 's old')],
)
def test_stamps_that_cannot_be_true_are_named(age: float, words: str) -> None:
    heard = arrivals(20.0, age)
    graph = good_graph(
        radar=view(RADAR, 'r', heard=heard), odometry=view(ODOMETRY, 'm', heard=heard)
    )
    found = by_subject(check_clocks(graph))
    assert words in found[RADAR].words
    # Units get the time of arrival, odometry is looked up by its stamp.
    assert (found[RADAR].state, found[ODOMETRY].state) == (State.NOTE, State.WRONG)


def test_stamps_of_zero_and_stamps_that_stand_still_are_named() -> None:
    zero = tuple(a._replace(stamp_ns=0) for a in arrivals(20.0, 0.0))
    still = tuple(a._replace(stamp_ns=NOW_NS) for a in arrivals(20.0, 0.0, 0.5))
    graph = good_graph(camera=view(CAMERA, 'c', heard=zero), radar=view(RADAR, 'r', heard=still))
    found = by_subject(check_clocks(graph))
    assert 'stamps are zero' in found[CAMERA].words
    assert 'the same' in found[RADAR].words


def test_sensors_on_different_clocks_are_noted() -> None:
    graph = good_graph(radar=view(RADAR, 'r', heard=arrivals(20.0, 0.5)))
    assert '470 ms apart' in by_subject(check_clocks(graph))['camera and radar'].words


def test_what_fusion_does_without_is_passed_on_with_a_remedy() -> None:
    status = NodeStatus('fusion', 0, 'running', ('no odometry: tracks live in base_link',))
    (found,) = check_frames(good_graph()._replace(statuses=(status,)))
    assert found.state is State.NOTE
    assert '--odometry' in found.remedy
    unpublished = good_graph(odometry=view(ODOMETRY))._replace(statuses=(status,))
    assert [f.state for f in check_frames(unpublished)] == [State.OK]  # said of the input


def test_an_old_calibration_is_worth_a_look_and_one_without_a_day_is_not_judged() -> None:
    today = date(2026, 11, 29)
    new, old, later = (check_age(date(2026, m, 1), today)[0] for m in (11, 6, 12))
    assert (new.state, new.words) == (State.OK, 'calibrated on 2026-11-01, 28 days ago')
    assert (old.state, later.state) == (State.NOTE, State.NOTE)
    assert 'mmedge calibrate' in old.remedy
    assert later.words == 'calibrated on 2026-12-01, a day to come'
    assert check_age(None, today) == []


def test_without_a_graph_of_ours_frames_are_looked_up_in_the_given_transforms() -> None:
    graph = good_graph()._replace(statuses=())
    assert [f.state for f in check_frames(graph, EXTRINSICS)] == [State.OK]
    assert [f.state for f in check_frames(graph._replace(transforms=EXTRINSICS))] == [State.OK]
    missing = check_frames(graph, EXTRINSICS[:1])
    assert 'no transform from base_link to optical' in missing[0].words
    assert [f.state for f in check_frames(graph, ('a b 1 2 3',))] == [State.WRONG]


def test_statuses_are_passed_on_but_silent_inputs_are_not_said_twice() -> None:
    statuses = (
        NodeStatus('camera', 2, 'no camera: unplugged'),
        NodeStatus('monitor: cpu', 1, 'cpu 100 %'),
        NodeStatus('radar_encoder', 1, 'no radar input on /radar/points for 6 s: ...'),
    )
    found = check_nodes(statuses)
    assert [(f.subject, f.state) for f in found] == [
        ('camera', State.WRONG),
        ('monitor: cpu', State.NOTE),
        ('running', State.OK),
    ]


def test_the_form_of_the_pictures_is_that_which_is_in_use() -> None:
    raw = TopicView('/i', 'sensor_msgs/msg/Image')
    packed = TopicView('/i/compressed', COMPRESSED_IMAGE)
    end = (TopicEndpoint('x', ''),)

    def chosen(raw: TopicView, packed: TopicView) -> str:
        return with_one_camera({CAMERA: raw, COMPRESSED: packed})[CAMERA].topic

    assert chosen(raw, packed) == '/i'
    assert chosen(raw, packed._replace(publishers=end)) == '/i/compressed'
    assert chosen(raw._replace(publishers=end), packed._replace(publishers=end)) == '/i'
    # An encoder that waits for raw pictures does not get compressed ones.
    assert chosen(raw._replace(subscribers=end), packed._replace(publishers=end)) == '/i'
    assert chosen(raw._replace(publishers=end), packed._replace(subscribers=end)) != '/i'


def test_odometry_of_px4_is_looked_at_where_there_is_no_other() -> None:
    end = (TopicEndpoint('px4', ''),)
    usual, px4 = TopicView('/odom', ''), TopicView('/fmu/out/vehicle_odometry', '')

    def chosen(usual: TopicView, px4: TopicView) -> str:
        views = with_one_odometry({ODOMETRY: usual, PX4_ODOMETRY: px4})
        assert views.keys() == {ODOMETRY}
        return views[ODOMETRY].topic

    sent = px4._replace(publishers=end)
    assert chosen(usual, px4) == '/odom'
    assert chosen(usual, sent) == '/fmu/out/vehicle_odometry'
    assert chosen(usual._replace(publishers=end), sent) == '/odom'
    assert with_one_odometry({ODOMETRY: usual}) == {ODOMETRY: usual}
    stamps = tuple(TopicArrival(n * 10**8, n * 10**8) for n in range(1, 30))
    heard = sent._replace(arrivals=stamps, detail='base_link in odom')
    graph = GraphView({ODOMETRY: heard}, {}, nodes=('px4',))
    (found,) = (f for f in check_inputs(graph) if f.subject == ODOMETRY)
    assert found.words == '/fmu/out/vehicle_odometry, 10.0 Hz, base_link in odom'


TEXTS = st.text(max_size=12)
STAMPS = st.integers(-(2**63), 2**63 - 1)
ENDS = st.lists(st.builds(TopicEndpoint, TEXTS, TEXTS, st.booleans(), st.booleans()), max_size=3)
VIEWS = st.builds(
    TopicView,
    *(TEXTS, TEXTS, ENDS.map(tuple), ENDS.map(tuple)),
    st.lists(st.builds(TopicArrival, STAMPS, STAMPS), max_size=4).map(tuple),
    *(TEXTS, TEXTS, TEXTS),
)
STATUSES = st.builds(
    NodeStatus, TEXTS, st.integers(0, 255), TEXTS, st.lists(TEXTS, max_size=2).map(tuple)
)


@settings(max_examples=60)
@given(
    st.dictionaries(st.sampled_from(list(CONTENTS)), VIEWS),
    st.lists(STATUSES, max_size=3),
    st.lists(TEXTS, max_size=2),
)
def test_whatever_a_graph_shows_is_judged_without_an_error(
    inputs: dict[str, TopicView], statuses: list[NodeStatus], transforms: list[str]
) -> None:
    graph = GraphView(inputs, {'x': 'y'}, ('n',), tuple(statuses), tuple(transforms))
    assert GraphView.from_json(graph.to_json()) == graph
    assert all_checks(graph)
