"""Messages and back: nothing is lost, and what cannot be true is refused."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hand_made_decisions import NOW_NS, a_decision, a_track, a_unit
from hypothesis import given, settings
from hypothesis import strategies as st

from mmedge_ros import msg
from mmedge_ros.core import data_types as core
from mmedge_ros.core.data_types import NS_PER_S, Box, StageTiming, UnitOutcome
from mmedge_ros.core.run_record import UnitCounts
from mmedge_ros.encoding.bricks import BrickState, BrickStatus
from mmedge_ros.replay.playback import PlaybackStatus
from mmedge_ros.ros.messages import conversions

instants = st.integers(NOW_NS, NOW_NS + 10**15)
words = st.text(st.characters(codec='utf-8', exclude_characters='\0'), max_size=12)
small = st.floats(-1e6, 1e6, width=32)
counts = st.integers(0, 2**32 - 1)
modalities = st.sampled_from(['camera', 'radar', 'thermal'])


def serialised(message: Any) -> Any:
    """The message as the middleware would deliver it."""
    from rclpy.serialization import deserialize_message, serialize_message

    return deserialize_message(serialize_message(message), type(message))


@st.composite
def trails(draw: st.DrawFn, begin_ns: int = NOW_NS) -> core.Trail:
    ends = sorted(draw(st.lists(st.integers(begin_ns, begin_ns + 10**9), min_size=1, max_size=5)))
    begins = [begin_ns, *ends]
    return tuple(StageTiming(draw(words), b, e) for b, e in zip(begins, ends, strict=False))


@st.composite
def units(draw: st.DrawFn) -> core.UnitFeatures:
    shape = draw(st.tuples(*[st.integers(0, 4)] * 3))
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    returns = random.normal(size=(draw(st.integers(0, 5)), 5)).astype(np.float32)
    returns[:, 4] = draw(st.sampled_from([np.nan, 12.5]))
    stamp_ns = draw(instants)
    return core.UnitFeatures(
        draw(modalities),
        draw(counts),
        stamp_ns,
        stamp_ns + draw(st.integers(0, NS_PER_S)),
        draw(words),
        draw(trails(stamp_ns)),
        draw(small),
        draw(words),
        draw(counts),
        tuple(
            core.Detection(
                Box(*draw(st.tuples(small, small, small, small))),
                0.5,
                draw(words),
                item=draw(counts),
            )
            for _ in range(draw(st.integers(0, 3)))
        ),
        returns,
        random.normal(size=draw(st.integers(0, 5))).astype(np.float32),
        random.normal(size=shape).astype(np.float16),
        draw(st.tuples(st.integers(0, 2**16 - 1), st.integers(0, 2**16 - 1))),
        followed=draw(st.booleans()),
    )


@settings(max_examples=30)
@given(units())
def test_encoded_units_come_back_as_they_were(unit: core.UnitFeatures) -> None:
    back = conversions.from_features(serialised(conversions.to_features(unit)))
    for name in core.UnitFeatures.__slots__:
        was, now = getattr(unit, name), getattr(back, name)
        if isinstance(was, np.ndarray):
            assert now.dtype == was.dtype, name
            np.testing.assert_array_equal(now, was)
        else:
            assert now == was, name
    assert [d.item for d in back.detections] == [d.item for d in unit.detections]


def _with(message: msg.UnitFeatures, **values: Any) -> msg.UnitFeatures:
    for name, value in values.items():
        setattr(message, name, value)
    return message


@pytest.mark.parametrize(
    'broken',
    [
        {'grid_shape': np.array([2, 3, 5], np.uint16)},
        {'grid': [1, 2, 3]},
        {'returns': [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]},
        {'returns': [1.0, math.nan, 3.0, 4.0, 5.0]},
        {'returns': [1.0, 2.0, 3.0, math.inf, 5.0]},
        {'detections': [msg.Detection(x0=math.nan)]},
        {'detections': [msg.Detection(score=math.inf)]},
        {'trail': []},
        {'available': conversions.to_time(NOW_NS - NS_PER_S)},
        {'available': conversions.to_time(NOW_NS + 60 * NS_PER_S)},
    ],
    ids=lambda broken: f'{next(iter(broken))}',
)
def test_a_unit_that_cannot_be_true_is_refused(broken: dict[str, Any]) -> None:
    message = conversions.to_features(a_unit())
    assert conversions.from_features(message).sequence == 7
    with pytest.raises(ValueError, match=r'.+'):
        conversions.from_features(_with(message, **broken))


def same_track(one: core.Track, other: core.Track) -> bool:
    arrays = ('position', 'velocity', 'covariance')
    plain = [n for n in core.Track.__slots__ if n not in arrays]
    return all(np.array_equal(getattr(one, n), getattr(other, n)) for n in arrays) and all(
        getattr(one, n) == getattr(other, n) for n in plain
    )


def a_label(**values: Any) -> core.TrackLabel:
    given_values: dict[str, Any] = {
        'track_id': 3,
        'label': 'dog',
        'confidence': 0.75,
        'attributes': ('brown', 'light'),
        'source': core.LabelSource.MEMORY,
        'exit': 2,
        'is_novel': True,
    }
    return core.TrackLabel(**{**given_values, **values})


def test_a_track_keeps_what_was_recognised_and_which_detection_is_its_newest() -> None:
    track = a_track(label='dog', recognised=a_label(), detection=core.DetectionKey(70_000, 9))
    assert same_track(conversions.from_track(serialised(conversions.to_track(track))), track)


def test_a_track_keeps_what_ranged_it_and_where_the_radar_says_it_is_in_the_picture() -> None:
    where = core.Box(1.0, 2.0, 3.5, 8.0)
    track = a_track(box=None, cues=core.Cue.RADAR | core.Cue.GROUND, projected=where)
    assert same_track(conversions.from_track(serialised(conversions.to_track(track))), track)


def test_what_stands_in_a_box_that_does_not_count_is_of_no_interest() -> None:
    message = conversions.to_track(a_track(box=None))
    message.box = np.full(4, np.nan, np.float32)
    back = conversions.from_track(message)
    assert (back.box, back.projected) == (None, None)
    message.projected = True
    with pytest.raises(ValueError, match='not finite'):
        conversions.from_track(message)


@pytest.mark.parametrize('broken', [{'source': 9}, {'confidence': math.nan}, {'confidence': 7.0}])
def test_labels_that_cannot_be_true_are_refused(broken: dict[str, Any]) -> None:
    message = conversions.to_track_labels([a_label()], NOW_NS)
    _with(message.labels[0], **broken)
    with pytest.raises(ValueError, match=r'.+'):
        conversions.from_track_labels(message)


def test_decisions_come_back_as_they_were() -> None:
    decision = a_decision(a_track(), a_track(id=4, box=None))
    message = serialised(conversions.to_track_array(decision))
    back = conversions.from_track_array(message)
    for name in core.Decision.__slots__:
        if name != 'tracks':
            assert getattr(back, name) == getattr(decision, name), name
    assert [same_track(a, b) for a, b in zip(decision.tracks, back.tracks, strict=True)] == [
        True,
        True,
    ]


def test_a_decision_says_latency_and_ages_in_seconds() -> None:
    message = serialised(conversions.to_track_array(a_decision()))
    assert message.latency == pytest.approx(0.0025, abs=1e-6)
    assert message.age == pytest.approx(0.0425, abs=1e-6)
    assert list(message.ages) == pytest.approx([0.0425, 0.0325], abs=1e-6)
    stages = sum(
        conversions.from_time(s.end) - conversions.from_time(s.begin) for s in message.trail
    )
    assert stages / NS_PER_S == pytest.approx(message.age, abs=1e-6)


def test_an_update_says_that_it_is_one_and_has_no_latency() -> None:
    update = replace(a_decision(), kind=core.ResultKind.UPDATE)
    message = serialised(conversions.to_track_array(update))
    assert message.kind == message.UPDATE
    assert conversions.is_update(message)
    assert math.isnan(message.latency)
    assert conversions.from_track_array(message).kind is core.ResultKind.UPDATE
    assert not conversions.is_update(conversions.to_track_array(a_decision()))
    message.kind = 7
    with pytest.raises(ValueError, match='7'):
        conversions.from_track_array(message)


def test_a_track_points_where_it_goes_and_claims_to_know_no_other_rotation() -> None:
    velocity = np.array([-1.0, 1.0, 0.0])
    message = serialised(conversions.to_track(a_track(velocity=velocity)))
    orientation = message.pose.pose.orientation
    heading = 2 * math.atan2(orientation.z, orientation.w)
    assert heading == pytest.approx(math.radians(135))
    assert math.hypot(orientation.z, orientation.w) == pytest.approx(1.0)
    for covariance in (message.pose.covariance, message.twist.covariance):
        assert (np.diag(np.reshape(covariance, (6, 6)))[3:] > 3.0).all()


@pytest.mark.parametrize(
    'broken',
    [
        a_track(position=np.array([math.nan, 0.0, 0.0])),
        a_track(velocity=np.array([0.0, math.inf, 0.0])),
        a_track(covariance=np.full((6, 6), math.nan)),
        a_track(box=Box(0.0, 0.0, math.inf, 1.0)),
    ],
    ids=['position', 'velocity', 'covariance', 'box'],
)
def test_a_track_that_is_nowhere_is_refused(broken: core.Track) -> None:
    message = conversions.to_track_array(a_decision(broken))
    with pytest.raises(ValueError, match='track 3'):
        conversions.from_track_array(message)


def test_messages_whose_lists_do_not_match_are_refused() -> None:
    message = conversions.to_track_array(a_decision())
    message.newest = message.newest[:1]
    with pytest.raises(ValueError, match='TrackArray lists 2 modalities, 1 newest'):
        conversions.from_track_array(message)
    with pytest.raises(ValueError, match='PlaybackState lists 1 modalities, 0 captured'):
        conversions.from_playback_state(msg.PlaybackState(modalities=['camera']))


@given(st.integers(-(10**12), 2**31 * NS_PER_S - 1))
def test_instants_survive_and_those_before_1970_become_zero(instant_ns: int) -> None:
    assert conversions.from_time(conversions.to_time(instant_ns)) == max(instant_ns, 0)


PLAYER = PlaybackStatus(
    'flight',
    -7,
    2.0,
    NOW_NS,
    NOW_NS + 5,
    True,
    {'camera': UnitCounts(captured=9, transferred=5, skipped=1, thinned=3), 'radar': UnitCounts()},
)
CONFIGURATION = core.Configuration(
    7,
    NOW_NS + 3,
    (core.ModalityConfiguration('camera', 12.5, 'small', 'cuda', 3),),
    0.0625,
    0.25,
    0.5,
    'heat',
)
BRICKS = [
    BrickStatus('camera.large', 'cuda', 'int8', BrickState.RUNNING, 0.25, 0.125, 40_000_000),
    BrickStatus('fusion', load_time=0.5, run_time=0.5, state=BrickState.FAILED, problem='gone'),
]


RECORDS = {
    'receipt': core.UnitReceipt('radar', 7, NOW_NS, NOW_NS + 9, UnitOutcome.DROPPED, 'full'),
    'configuration': CONFIGURATION,
    'skip_decision': core.SkipDecision('camera', NOW_NS, NOW_NS + 300, NOW_NS + 400, 0.75, 0.9375),
    'track_labels': [
        a_label(),
        a_label(track_id=4, source=core.LabelSource.FULL, attributes=()),
    ],
    'brick_plan': BRICKS,
    'playback_state': PLAYER,
}
MORE_TO_SAY = {'brick_plan': ['fusion', BRICKS, NOW_NS]}


@pytest.mark.parametrize('name', RECORDS)
def test_records_come_back_as_they_were(name: str) -> None:
    record = RECORDS[name]
    stamped = [record] if name in ('receipt', 'skip_decision') else [record, NOW_NS]
    message = getattr(conversions, f'to_{name}')(*MORE_TO_SAY.get(name, stamped))
    assert getattr(conversions, f'from_{name}')(serialised(message)) == record


def test_a_novelty_comes_back_as_it_was_unless_it_is_nowhere() -> None:
    novelty = core.Novelty(NOW_NS, 'odom', 3, 'dog', 0.75, np.array([1.0, 2.0, 3.0]), 'the first')
    assert str(conversions.from_novelty(serialised(conversions.to_novelty(novelty)))) == str(
        novelty
    )
    nowhere = replace(novelty, position=np.array([math.nan, 0.0, 0.0]))
    with pytest.raises(ValueError, match='not finite'):
        conversions.from_novelty(conversions.to_novelty(nowhere))


@pytest.mark.parametrize('number', [77, 200])
def test_numbers_of_a_later_version_are_refused_or_left_out(number: int) -> None:
    with pytest.raises(ValueError, match=str(number)):
        conversions.from_receipt(msg.UnitReceipt(outcome=number))
    with pytest.raises(ValueError, match=str(number)):
        conversions.from_track(_with(conversions.to_track(a_track()), label_source=number))
    plan = conversions.to_brick_plan('fusion', BRICKS, NOW_NS)
    plan.bricks[0].state = number
    assert [brick.name for brick in conversions.from_brick_plan(plan)] == ['fusion']


def test_a_configuration_leaves_open_what_nobody_has_set() -> None:
    message = msg.Configuration(modalities=[msg.ModalityConfiguration(modality='camera')])
    assert message.modalities[0].reuse == 0
    camera = conversions.from_configuration(message, 'cuda').of('camera')
    assert (camera.device, camera.reuse) == ('cuda', 1)
