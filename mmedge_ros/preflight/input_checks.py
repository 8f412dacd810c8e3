"""The inputs on the graph: their senders, types, quality of service, rates and stamps."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from statistics import median
from typing import NamedTuple

from mmedge_ros.core.data_types import CAMERA, NS_PER_S, RADAR
from mmedge_ros.geometry import GeometryError
from mmedge_ros.geometry.sensor_poses import resolve_geometry
from mmedge_ros.geometry.transforms import TransformTree, parse_static_transform
from mmedge_ros.pipeline.unit_intake import plausible_stamp
from mmedge_ros.preflight.finding import Finding, note, ok, wrong
from mmedge_ros.preflight.graph_view import (
    BATTERY,
    CAMERA_INFO,
    ODOMETRY,
    STATIC_TRANSFORMS,
    GraphView,
    NodeStatus,
    TopicArrival,
    TopicEndpoint,
    TopicView,
    mismatch,
)

# What an input is called, and the option that names its topic.
CONTENTS = {
    CAMERA: ('pictures', '--camera'),
    RADAR: ('radar points', '--radar'),
    ODOMETRY: ('odometry', '--odometry'),
    CAMERA_INFO: ('calibration', '--calibration FILE, or --camera'),
    BATTERY: ('battery state', ''),
    STATIC_TRANSFORMS: ('static transforms', '--extrinsics FILE'),
}
# The rest can be done without; some of it is not even missed before a node asks for it.
_WANTED = (CAMERA, RADAR)
_OPTIONAL = (BATTERY, STATIC_TRANSFORMS)
_COMPRESSED = '/compressed'
# Hz; the lowest rates that are ever chosen.
_SLOWEST = {CAMERA: 10.0, RADAR: 5.0, ODOMETRY: 10.0}
_TOLERANCE = 0.8
# s. Beyond it, one of two sensors has another clock, or hands over late.
_OFFSET = 0.25
_MOST_CANDIDATES = 4
# What decisions do without, by the first words, and what to do about it.
_DEGRADED = {
    'no odometry': "name the autopilot's topic with --odometry",
    'no camera calibration': 'publish camera_info beside the pictures, or give --calibration FILE',
    'no transform': 'give --extrinsics FILE (see config/extrinsics.yaml), or publish /tf_static',
    'radar and camera look apart': 'record people who walk, and run mmedge calibrate on it',
    'pictures are unlike': 'look at the lens, the exposure and the light; a detector for such '
    'pictures: `mmedge lab train detector` (docs/models.md, your own pictures)',
    'no base_link': 'give --extrinsics FILE (see config/extrinsics.yaml), or publish /tf_static',
}
# Calibrations older than this (days) are worth a look.
_CALIBRATED = 90
_ERROR = 2
_SILENCE = re.compile(r'no \S+ input on ')


class Reason(NamedTuple):
    """Why an input does not come, and what to do about it."""

    words: str
    remedy: str


def remedy_for(degraded: str) -> str:
    """Say what to do about something that decisions have to do without."""
    return next((text for begin, text in _DEGRADED.items() if degraded.startswith(begin)), '')


def why_missing(name: str, view: TopicView, others: Mapping[str, str]) -> Reason | None:
    """Say what keeps an input away; None where its publishers could serve it.

    :param others: other topics of the graph with their types
    """
    _, option = CONTENTS[name]
    if not view.publishers:
        return Reason(f'nothing publishes {view.topic}', _other_topics(view, others, option))
    wanted = view.subscribers or (
        TopicEndpoint('', view.msgtype, latched=name == STATIC_TRANSFORMS),
    )
    refusals = [
        {mismatch(publisher, subscriber._replace(msgtype=view.msgtype)) for subscriber in wanted}
        for publisher in view.publishers
    ]
    if not all(all(reasons) for reasons in refusals):
        return None
    types = {publisher.msgtype for publisher in view.publishers}
    if view.msgtype not in types:
        return _foreign_type(name, view, ', '.join(sorted(types)))
    reasons = '; '.join(sorted(set().union(*refusals)))
    remedy = f"change the publisher's quality of service, or qos_overrides.{view.topic} here"
    return Reason(f'{view.senders} on {view.topic}: {reasons}', remedy)


def sends_nothing(view: TopicView) -> Reason:
    """Describe publishers that are there and silent."""
    return Reason(f'{view.senders} publishes {view.topic} and sends nothing', 'see its log')


def _foreign_type(name: str, view: TopicView, types: str) -> Reason:
    words = f'{view.topic} holds {types} from {view.senders}, {view.msgtype} is wanted'
    if name == CAMERA and 'CompressedImage' in types:
        topic = view.topic.removesuffix(_COMPRESSED)
        remedy = f'--image-transport compressed, with the pictures on {topic}{_COMPRESSED}'
    elif name == CAMERA and 'sensor_msgs/msg/Image' in types:
        remedy = 'leave out --image-transport compressed'
    else:
        remedy = _or_name('remap one of the two', CONTENTS[name][1])
    return Reason(words, remedy)


def _other_topics(view: TopicView, others: Mapping[str, str], option: str) -> str:
    if others.get(f'{view.topic}{_COMPRESSED}', '').endswith('/CompressedImage'):
        return f'{view.topic}{_COMPRESSED} is there: --image-transport compressed'
    remedy = _or_name('start its driver', option)
    same = sorted(topic for topic, kind in others.items() if kind == view.msgtype)
    if not same or not option:
        return remedy
    return f'{remedy}; of that type: {", ".join(same[:_MOST_CANDIDATES])}'


def _or_name(remedy: str, option: str) -> str:
    return f'{remedy}, or name its topic with {option}' if option else remedy


def check_inputs(graph: GraphView) -> list[Finding]:
    """Judge who sends what, and how often."""
    if not graph.nodes:
        remedy = 'start drivers or `mmedge up`, with the same ROS_DOMAIN_ID, and look again'
        return [note('graph', 'no other node is there: nothing to look at', remedy)]
    findings = [ok('graph', ', '.join(graph.nodes))]
    for name, view in graph.inputs.items():
        if name not in _OPTIONAL or view.publishers or view.subscribers:
            findings += _input(name, view, graph)
    return findings + _picture_size(graph)


def _input(name: str, view: TopicView, graph: GraphView) -> Iterator[Finding]:
    reason = why_missing(name, view, graph.others)
    is_expected = bool(view.subscribers) and name in _WANTED
    if reason is None and not view.arrivals and name != STATIC_TRANSFORMS:
        reason = sends_nothing(view)
    if reason is not None:
        # Without a publisher and a subscriber there is only nothing.
        is_wrong = is_expected or (name in _WANTED and bool(view.publishers))
        yield wrong(name, *reason) if is_wrong else note(name, *reason)
        return
    if len(view.publishers) > 1 and name != STATIC_TRANSFORMS:
        words = f'{len(view.publishers)} publishers on {view.topic}: {view.senders}'
        remedy = 'their messages mix: stop all but one, or remap them'
        yield wrong(name, words, remedy)
    if view.problem:
        words, remedy = f'{view.topic}: {view.problem}', "change the driver's settings"
        is_needed = name in (*_WANTED, ODOMETRY)
        yield wrong(name, words, remedy) if is_needed else note(name, words, remedy)
        return
    yield from _rate(name, view)


def _rate(name: str, view: TopicView) -> Iterator[Finding]:
    rate = measured_rate(view.arrivals)
    words = ', '.join(filter(None, (view.topic, f'{rate:.1f} Hz' if rate else '', view.detail)))
    if 0.0 < rate < _TOLERANCE * _SLOWEST.get(name, 0.0):
        remedy = 'fixed exposure or MJPG for a camera; a shorter frame period for a radar'
        yield note(name, f'{words}: slow', remedy)
    else:
        yield ok(name, words)


def _picture_size(graph: GraphView) -> list[Finding]:
    """Note a calibration for pictures of another size, which is not used."""
    camera, info = graph.inputs.get(CAMERA), graph.inputs.get(CAMERA_INFO)
    if camera is None or info is None or not camera.detail or not info.detail:
        return []
    if camera.detail.startswith(info.detail.removeprefix('for ')):
        return []
    words = f'the calibration is {info.detail}, the pictures have {camera.detail}'
    return [note(CAMERA_INFO, words, 'calibrate at this size, or change that of the pictures')]


def measured_rate(arrivals: Sequence[TopicArrival]) -> float:
    """Return messages per second, Hz; 0 for fewer than two."""
    if len(arrivals) < 2 or arrivals[-1].received_ns <= arrivals[0].received_ns:
        return 0.0
    span_ns = arrivals[-1].received_ns - arrivals[0].received_ns
    return (len(arrivals) - 1) * NS_PER_S / span_ns


def check_clocks(graph: GraphView) -> list[Finding]:
    """Judge stamps by the times of arrival."""
    findings = []
    ages = {}
    for name in (CAMERA, RADAR, ODOMETRY):
        view = graph.inputs.get(name)
        if view is not None and view.arrivals and not view.problem:
            age = median(a.received_ns - a.stamp_ns for a in view.arrivals) / NS_PER_S
            trouble = _untrue(view.arrivals, age)
            if not trouble:
                ages[name] = age
                findings.append(ok(name, f'stamps are {1e3 * age:.0f} ms old on arrival'))
            elif name == ODOMETRY:
                remedy = 'synchronise the clocks (chrony, or the time synchronisation of MAVROS)'
                findings.append(wrong(name, f'{trouble}: motion is looked up by stamp', remedy))
            else:
                remedy = 'synchronise the clocks, or let the driver stamp its messages'
                findings.append(note(name, f'{trouble}; the time of arrival is used', remedy))
    if CAMERA in ages and RADAR in ages and abs(ages[CAMERA] - ages[RADAR]) > _OFFSET:
        words = (
            f'stamps of camera and radar are {1e3 * abs(ages[CAMERA] - ages[RADAR]):.0f} ms apart'
        )
        remedy = 'one driver stamps late or by another clock; people are placed by these stamps'
        findings.append(note('camera and radar', words, remedy))
    if graph.simulated:
        findings.append(ok('clock', 'simulated time: a node publishes /clock'))
    return findings


def _untrue(arrivals: Sequence[TopicArrival], age: float) -> str:
    """Say why stamps cannot be true; '' if they can."""
    if all(arrival.stamp_ns == 0 for arrival in arrivals):
        return 'stamps are zero'
    if len(arrivals) > 2 and len({arrival.stamp_ns for arrival in arrivals}) == 1:
        return 'all stamps are the same'
    if plausible_stamp(0, round(age * NS_PER_S)):
        return ''
    if age < 0.0:
        return f'stamps are {-age:.3g} s in the future'
    return f'stamps are {age:.3g} s old on arrival'


def check_frames(graph: GraphView, extrinsics: Sequence[str] = ()) -> list[Finding]:
    """Judge whether it is known where the sensors sit.

    :param extrinsics: transforms of the user's file, "parent child x y z qx qy qz qw"
    """
    odometry = graph.inputs.get(ODOMETRY)
    reported = [
        text
        for status in graph.statuses
        for text in status.degraded
        # Where nothing publishes it, that is said of the input.
        if not text.startswith('no odometry') or (odometry is not None and odometry.publishers)
    ]
    if any(status.node == 'fusion' for status in graph.statuses):
        findings = [note('fusion', text, remedy_for(text)) for text in reported]
        return findings or [ok('fusion', 'calibration and places of all sensors are known')]
    frames = {
        name: graph.inputs[name].frame_id for name in (CAMERA, RADAR) if name in graph.inputs
    }
    tree = TransformTree()
    try:
        for text in (*extrinsics, *graph.transforms):
            edge = parse_static_transform(text)
            tree.add(edge.parent, edge.child, edge.transform)
    except GeometryError as error:
        return [wrong('transforms', str(error), 'correct it')]
    if not any(frames.values()):
        return [ok('transforms', ', '.join(tree.frames))] if tree.frames else []
    geometry = resolve_geometry(tree, None, frames.get(CAMERA, ''), frames.get(RADAR, ''))
    missing = [text for text in geometry.degraded if not text.startswith('no camera calibration')]
    return [note('transforms', text, remedy_for(text)) for text in missing] or [
        ok('transforms', f'{geometry.frame_id} to {" and ".join(filter(None, frames.values()))}')
    ]


def check_age(calibrated: date | None, today: date) -> list[Finding]:
    """Judge how long ago the sensors of the user's file were calibrated, where it says."""
    if calibrated is None:
        return []
    days = (today - calibrated).days
    words = f'calibrated on {calibrated}, ' + (
        f'{days} days ago' if days >= 0 else 'a day to come'
    )
    if 0 <= days <= _CALIBRATED:
        return [ok('extrinsics', words)]
    remedy = 'mounts move: record people who walk, and run mmedge calibrate on it'
    return [note('extrinsics', words, remedy)]


def check_nodes(statuses: Sequence[NodeStatus]) -> list[Finding]:
    """Pass on what nodes say of themselves; silent inputs are judged elsewhere."""
    bad = [s for s in statuses if s.level and not _SILENCE.match(s.message)]
    remedy = 'see docs/troubleshooting.md'
    findings = [
        wrong(s.node, s.message, remedy) if s.level >= _ERROR else note(s.node, s.message, remedy)
        for s in sorted(bad)
    ]
    # The parts of a machine have a colon in their names.
    good = sorted({s.node for s in statuses if ':' not in s.node} - {s.node for s in bad})
    return [*findings, ok('running', ', '.join(good))] if good else findings
