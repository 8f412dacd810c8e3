"""Messages and back: nothing is lost, and what cannot be true is refused."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hand_made_decisions import NOW_NS, a_decision, a_track, a_unit
from hypothesis import given
from hypothesis import strategies as st

from mmedge_ros import data_types as core
from mmedge_ros import msg
from mmedge_ros.data_types import NS_PER_S, Box, StageTiming, UnitOutcome
from mmedge_ros.encoding.bricks import BrickState, BrickStatus
from mmedge_ros.records.run_record import UnitCounts
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


@given(modalities, counts, instants, instants, st.sampled_from(UnitOutcome), words)
def test_receipts_come_back_as_they_were(
    modality: str, sequence: int, stamp: int, available: int, outcome: UnitOutcome, reason: str
) -> None:
    receipt = core.UnitReceipt(modality, sequence, stamp, available, outcome, reason)
    message = serialised(conversions.to_receipt(receipt, 'radar_link'))
    assert conversions.from_receipt(message) == receipt
    assert message.header.frame_id == 'radar_link'


@given(
    counts,
    instants,
    st.lists(
        st.builds(
            core.ModalityConfiguration, modalities, small, words, words, st.integers(1, 2**32 - 1)
        ),
        max_size=3,
    ),
    small,
    words,
)
def test_configurations_come_back_as_they_were(
    number: int,
    effective: int,
    parts: list[core.ModalityConfiguration],
    limit: float,
    reason: str,
) -> None:
    configuration = core.Configuration(
        number, effective, tuple(parts), limit, 0.25, 0.5, reason=reason
    )
    message = serialised(conversions.to_configuration(configuration, NOW_NS))
    back = conversions.from_configuration(message, device='')
    assert back == configuration
    assert conversions.from_time(message.header.stamp) == NOW_NS


def same_track(one: core.Track, other: core.Track) -> bool:
    arrays = ('position', 'velocity', 'covariance')
    plain = [n for n in core.Track.__slots__ if n not in arrays]
    return all(np.array_equal(getattr(one, n), getattr(other, n)) for n in arrays) and all(
        getattr(one, n) == getattr(other, n) for n in plain
    )


def test_a_rotation_that_is_not_known_is_not_said_to_be_known_for_sure() -> None:
    message = serialised(conversions.to_track(a_track()))
    for covariance in (message.pose.covariance, message.twist.covariance):
        assert (np.diag(np.reshape(covariance, (6, 6)))[3:] > 3.0).all()


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


def test_labels_of_tracks_come_back_as_they_were() -> None:
    labels = [a_label(), a_label(track_id=4, source=core.LabelSource.FULL, attributes=())]
    message = serialised(conversions.to_track_labels(labels, NOW_NS))
    assert conversions.from_track_labels(message) == labels
    assert conversions.from_time(message.header.stamp) == NOW_NS


@pytest.mark.parametrize('broken', [{'source': 9}, {'confidence': math.nan}, {'confidence': 7.0}])
def test_labels_that_cannot_be_true_are_refused(broken: dict[str, Any]) -> None:
    message = conversions.to_track_labels([a_label()], NOW_NS)
    _with(message.labels[0], **broken)
    with pytest.raises(ValueError, match=r'.+'):
        conversions.from_track_labels(message)


def test_a_label_source_of_a_later_version_is_refused() -> None:
    with pytest.raises(ValueError, match='7'):
        conversions.from_track(_with(conversions.to_track(a_track()), label_source=7))


def test_a_novelty_comes_back_as_it_was() -> None:
    place = np.array([1.0, 2.0, 3.0])
    novelty = core.Novelty(NOW_NS, 'odom', 3, 'dog', 0.75, place, 'the first dog')
    back = conversions.from_novelty(serialised(conversions.to_novelty(novelty)))
    np.testing.assert_array_equal(back.position, place)
    for name in ('stamp_ns', 'frame_id', 'track_id', 'label', 'confidence', 'reason'):
        assert getattr(back, name) == getattr(novelty, name), name
    nowhere = replace(novelty, position=np.array([math.nan, 0.0, 0.0]))
    with pytest.raises(ValueError, match='not finite'):
        conversions.from_novelty(conversions.to_novelty(nowhere))


def test_what_bricks_do_comes_back_as_it_was() -> None:
    bricks = [
        BrickStatus('camera.large', 'cuda', 'int8', BrickState.RUNNING, 0.25, 0.125, 40_000_000),
        BrickStatus('fusion', state=BrickState.FAILED, problem='no such file'),
    ]
    message = serialised(conversions.to_brick_plan('fusion', bricks, NOW_NS))
    assert message.node == 'fusion'
    assert str(conversions.from_brick_plan(message)) == str(bricks)
    message.bricks[0].state = 77
    assert [b.name for b in conversions.from_brick_plan(message)] == ['fusion']


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


def test_a_track_points_where_it_goes() -> None:
    velocity = np.array([-1.0, 1.0, 0.0])
    orientation = conversions.to_track(a_track(velocity=velocity)).pose.pose.orientation
    heading = 2 * math.atan2(orientation.z, orientation.w)
    assert heading == pytest.approx(math.radians(135))
    assert math.hypot(orientation.z, orientation.w) == pytest.approx(1.0)


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


def test_a_decision_whose_lists_do_not_match_is_refused() -> None:
    message = conversions.to_track_array(a_decision())
    message.newest = message.newest[:1]
    with pytest.raises(ValueError, match='TrackArray lists 2 modalities, 1 newest'):
        conversions.from_track_array(message)


@given(counts, counts, st.integers(-(2**63), 2**63 - 1), st.booleans(), words)
def test_the_state_of_a_player_comes_back_as_it_was(
    transferred: int, skipped: int, offset: int, finished: bool, bag: str
) -> None:
    thinned = max(2**32 - 1 - transferred - skipped, 0)
    captured = min(transferred + skipped + thinned, 2**32 - 1)
    camera = UnitCounts(
        captured=captured,
        transferred=transferred,
        skipped=skipped,
        thinned=max(captured - transferred - skipped, 0),
    )
    status = PlaybackStatus(
        bag, offset, 2.0, NOW_NS, NOW_NS + 5, finished, {'camera': camera, 'radar': UnitCounts()}
    )
    assert conversions.from_playback_state(
        serialised(conversions.to_playback_state(status, NOW_NS))
    ) == PlaybackStatus(
        bag, offset, 2.0, NOW_NS, NOW_NS + 5, finished, {'camera': camera, 'radar': UnitCounts()}
    )


def test_a_player_whose_lists_do_not_match_is_refused() -> None:
    with pytest.raises(ValueError, match='PlaybackState lists 1 modalities, 0 captured'):
        conversions.from_playback_state(msg.PlaybackState(modalities=['camera']))


@given(st.integers(-(10**12), 2**31 * NS_PER_S - 1))
def test_instants_survive_and_those_before_1970_become_zero(instant_ns: int) -> None:
    assert conversions.from_time(conversions.to_time(instant_ns)) == max(instant_ns, 0)
