"""A recording played like a sensor: stamps, rates, leases, rounds."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice, pairwise
from pathlib import Path

import bag_fixtures
import pytest
from bag_fixtures import BEGIN_NS, LOG_DELAY_NS, RADAR, recording, straight_flight, write_bag
from bag_fixtures import CAMERA_COMPRESSED as PICTURES
from bag_fixtures import CAMERA_INFO as INFO
from hypothesis import given
from hypothesis import strategies as st

from mmedge_ros.core.data_types import CAMERA, Configuration, ModalityConfiguration, SkipDecision
from mmedge_ros.replay.bag import Bag
from mmedge_ros.replay.playback import (
    TRANSFORMS,
    DueMessage,
    Pace,
    Playback,
    PlaybackSource,
    live_offset_ns,
)
from mmedge_ros.replay.wire_formats import header_stamp_ns

MS = 1_000_000
SECOND = 1000 * MS
STRIDE = 100 * MS
OFFSET = 12_345 * STRIDE
SOURCES = {
    'camera': PlaybackSource(PICTURES, 'camera'),
    'camera_info': PlaybackSource(INFO, ''),
    'radar': PlaybackSource(RADAR, 'radar'),
}
PERIODS = {'camera': 50 * MS, 'radar': 40 * MS}


@pytest.fixture(scope='module')
def bag(tmp_path_factory) -> Iterable[Bag]:
    path = write_bag(tmp_path_factory.mktemp('bags') / 'flight', messages=recording(2.0))
    with Bag(path) as opened:
        yield opened


def playback(bag: Bag, loop: bool = False) -> Playback:
    return Playback(bag, SOURCES, OFFSET, STRIDE, PERIODS, loop)


def stamps(messages: Iterable[DueMessage], source: str = 'camera') -> list[int]:
    """Stamps of a source in ns since the beginning of the recording, in bag time."""
    return [header_stamp_ns(m.data) - OFFSET - BEGIN_NS for m in messages if m.source == source]


def test_moving_transforms_are_played_with_moved_stamps(tmp_path: Path) -> None:
    path = write_bag(tmp_path / 'flight', messages=straight_flight('/tf', 0.5))
    with Bag(path) as bag:
        played = [*Playback(bag, SOURCES, OFFSET, STRIDE, PERIODS, transforms=['/tf'])]
        moved = [
            bag_fixtures.STORE.deserialize_cdr(m.data, 'tf2_msgs/msg/TFMessage').transforms[0]
            for m in played
            if m.source == TRANSFORMS
        ]
    seconds = [edge.header.stamp.sec + edge.header.stamp.nanosec / 1e9 for edge in moved]
    begin = (BEGIN_NS + OFFSET) / SECOND
    assert seconds == pytest.approx([begin + n / 50 for n in range(25)], abs=1e-6)
    assert [m.due_ns for m in played] == sorted(m.due_ns for m in played)


def configuration(effective_from: int, rate: float) -> Configuration:
    part = ModalityConfiguration(CAMERA, rate)
    return Configuration(1, BEGIN_NS + OFFSET + effective_from, (part,))


def lease(issued: int, until: int) -> SkipDecision:
    begin = BEGIN_NS + OFFSET
    return SkipDecision(CAMERA, begin + issued, begin + until, begin)


# ------------------------------------------------------------------------------ messages


def test_every_message_is_due_when_it_was_recorded_under_its_moved_stamp(bag: Bag) -> None:
    played = list(playback(bag))
    assert stamps(played) == [n * 50 * MS for n in range(40)]
    assert stamps(played, 'radar') == [n * 40 * MS for n in range(50)]
    assert [m.due_ns for m in played] == sorted(m.due_ns for m in played)
    for message in played:
        assert message.due_ns == header_stamp_ns(message.data) + LOG_DELAY_NS


def test_damaged_messages_are_left_out_and_counted(tmp_path: Path) -> None:
    messages = recording(1.0)
    place = next(n for n, m in enumerate(messages) if m[0] == RADAR)
    raw = ('sensor_msgs/msg/PointCloud2', b'\xff\xff\xff\xff no message')
    messages[place] = (RADAR, messages[place][1], raw)
    with Bag(write_bag(tmp_path / 'damaged', messages=messages)) as bag:
        player = playback(bag)
        played = list(player)
    assert len(stamps(played, 'radar')) == 24
    assert player.problems.total() == 1
    assert RADAR in next(iter(player.problems))
    assert player.counts['radar'].captured == 24


def test_stamps_that_no_message_can_hold_are_counted(bag: Bag) -> None:
    player = Playback(bag, SOURCES, 100 * 365 * 86_400 * SECOND, STRIDE, PERIODS, loop=True)
    assert list(player) == [], 'and the loop ends, since nothing can be played'
    assert player.problems.total() > 0


# ------------------------------------------------------------------------------ control


def test_the_configured_rate_is_obeyed_from_its_stamp_on(bag: Bag) -> None:
    player = playback(bag)
    player.configure(configuration(1000 * MS, 10.0))
    played = list(player)
    found = stamps(played)
    assert found[:20] == [n * 50 * MS for n in range(20)]
    assert len(found) == 30
    assert {b - a for a, b in pairwise(found[20:])} == {100 * MS}
    assert len(stamps(played, 'radar')) == 50
    counts = player.counts['camera']
    assert (counts.captured, counts.transferred, counts.thinned) == (40, 30, 10)


def test_a_skip_lease_pauses_one_sensor_until_it_runs_out(bag: Bag) -> None:
    player = playback(bag)
    player.lease(lease(500 * MS, 800 * MS))
    played = list(player)
    missing = sorted(set(range(0, 2000, 50)) - {s // MS for s in stamps(played)})
    assert missing == [500, 550, 600, 650, 700, 750]
    assert len(stamps(played, 'radar')) == 50
    counts = player.counts['camera']
    assert (counts.captured, counts.transferred, counts.skipped) == (40, 34, 6)


# ------------------------------------------------------------------------------ rounds


def test_a_loop_goes_on_with_rising_stamps_on_the_same_grid(bag: Bag) -> None:
    player = playback(bag, loop=True)
    offsets = {player.offset_ns}
    played = []
    for message in islice(player, 400):
        played.append(message)
        offsets.add(player.offset_ns)
    assert len(offsets) >= 3
    assert all(offset % STRIDE == 0 for offset in offsets)
    found = stamps(played)
    assert all(a < b for a, b in pairwise(found))
    assert all(a.due_ns <= b.due_ns for a, b in pairwise(played))
    gaps = [b - a for a, b in pairwise(found)]
    assert set(gaps) - {50 * MS} == {max(gaps)}
    assert max(gaps) < 400 * MS


# ------------------------------------------------------------------------------ pace


@given(
    begin=st.integers(0, 2**61),
    now=st.integers(0, 2**61),
    stride=st.integers(10 * MS, 10 * SECOND),
)
def test_the_offset_is_a_multiple_of_the_stride_and_leaves_time_to_begin(
    begin: int, now: int, stride: int
) -> None:
    offset = live_offset_ns(begin, now, stride)
    assert offset % stride == 0
    assert 500 * MS <= begin + offset - now < 500 * MS + stride


@pytest.mark.parametrize('rate', [0.5, 1.0, 4.0])
def test_the_pace_runs_at_its_rate_after_its_lead(rate: float) -> None:
    monotonic = [7 * SECOND]
    pace = Pace(BEGIN_NS, 500 * MS, rate, lambda: monotonic[0])
    assert pace.now_ns() == BEGIN_NS - 500 * MS
    assert pace.seconds_until(BEGIN_NS) == pytest.approx(0.5 / rate)
    monotonic[0] += 2 * SECOND
    assert pace.now_ns() == BEGIN_NS - 500 * MS + round(2 * rate * SECOND)
    assert pace.seconds_until(BEGIN_NS) == pytest.approx(0.5 / rate - 2.0)
