"""Recordings that lack something, are cut or out of order: what is there is used."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import bag_fixtures as flight
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from replays import Outcome, refused, replay, reported, told

from mmedge_ros.replay.bag import Bag

NS = 1_000_000_000
UNIT_TOPICS = (flight.CAMERA_COMPRESSED, flight.RADAR)


def storage_file(folder: Path) -> Path:
    (file,) = (f for f in folder.iterdir() if f.suffix in ('.mcap', '.db3'))
    return file


def damaged(message: Any) -> tuple[str, bytes]:
    return message.__msgtype__, flight.serialized(message)[:20]


@pytest.mark.parametrize(('storage', 'share'), [('mcap', 0.5), ('sqlite3', 0.8)])
def test_a_cut_recording_is_replayed_up_to_the_break(
    tmp_path: Path, detector: Path, profile: Path, whole: Outcome, storage: str, share: float
) -> None:
    bag = flight.write_bag(tmp_path / 'bag', storage, flight.recording(2.0))
    file = storage_file(bag)
    file.write_bytes(file.read_bytes()[: int(file.stat().st_size * share)])
    with Bag(bag) as left:
        arrivals = [m.log_ns for m in left.messages(UNIT_TOPICS)]
    assert 10 < len(arrivals) < 90

    cut = replay(bag, tmp_path / 'cut', detector=detector, profile=profile)

    reported(cut, r'broken after \d+ messages')
    assert sum(cut.units(m, 'encoded') for m in ('camera', 'radar')) == len(arrivals)
    last_end_ns = json.loads(cut.decisions[-1])['window_end_ns']
    assert 0 <= last_end_ns - arrivals[-1] < NS // 10
    # Up to the break they are the decisions of the whole recording.
    assert cut.decisions[:-1] == whole.decisions[: len(cut.decisions) - 1]


def test_a_break_that_is_found_only_while_reading_is_told_of_once(
    tmp_path: Path, detector: Path, profile: Path
) -> None:
    messages = []
    for topic, at, message in flight.recording(12.0):
        if topic == flight.CAMERA_COMPRESSED:  # raw pictures make the file several chunks long
            topic, message = flight.CAMERA, flight.image(len(messages), at - flight.LOG_DELAY_NS)
        messages.append((topic, at, message))
    bag = flight.write_bag(tmp_path / 'bag', messages=messages)
    file = storage_file(bag)
    data = bytearray(file.read_bytes())
    middle = len(data) * 6 // 10
    data[middle : middle + 20_000] = b'\xff' * 20_000
    file.write_bytes(data)
    with Bag(bag) as intact_at_first_sight:
        assert intact_at_first_sight.problems == []
    outcome = reported(
        replay(bag, tmp_path / 'report', detector=detector, profile=profile),
        r'bag\.mcap: broken after \d+ messages',
    )
    assert outcome.problems.count('broken after') == 1
    assert outcome.report['decisions'] >= 50


def test_a_break_before_everything_is_told_in_the_refusal(tmp_path: Path, detector: Path) -> None:
    bag = flight.write_bag(tmp_path / 'bag')
    file = storage_file(bag)
    data = bytearray(file.read_bytes())
    data[1000:9000] = b'\xff' * 8000
    file.write_bytes(data)
    outcome = replay(bag, tmp_path / 'report', detector=detector)
    refused(outcome, 'no unit of any sensor can be read; bag.mcap: broken after 0 messages')


@settings(
    max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    storage=st.sampled_from(['mcap', 'sqlite3']),
    at=st.floats(0.0, 1.0),
    junk=st.binary(min_size=1, max_size=60),
)
def test_a_recording_with_damaged_bytes_is_replayed_or_refused(
    tmp_path_factory: pytest.TempPathFactory, detector: Path, storage: str, at: float, junk: bytes
) -> None:
    folder = tmp_path_factory.mktemp('damaged')
    bag = flight.write_bag(folder / 'bag', storage, flight.recording(0.5))
    file = storage_file(bag)
    data = bytearray(file.read_bytes())
    begin = int(at * len(data))
    data[begin : begin + len(junk)] = junk
    file.write_bytes(data)
    outcome = replay(bag, folder / 'report', detector=detector)
    if outcome.code:
        assert outcome.sentence
    else:
        reported(outcome)


def test_messages_with_damaged_bytes_are_counted_by_topic_and_the_others_used(run: Any) -> None:
    messages = flight.recording(2.0)
    broken = [
        (topic, at, damaged(m) if topic in UNIT_TOPICS and place % 4 == 1 else m)
        for place, (topic, at, m) in enumerate(messages)
    ]
    lost = sum(isinstance(m, tuple) for _, _, m in broken)
    outcome = reported(
        run(broken),
        r'message \d+ of /camera/image_raw/compressed .* cannot be deserialised.*and \d+ more',
        r'message \d+ of /radar/points .* cannot be deserialised.*and \d+ more',
    )
    assert len(outcome.report['problems']) < 8
    used = sum(outcome.units(m, 'encoded') for m in ('camera', 'radar'))
    assert used == 90 - lost
    assert outcome.report['decisions'] == 20


def test_a_recording_of_nothing_but_damaged_messages_leaves_a_report_that_says_so(
    run: Any,
) -> None:
    broken = [
        (topic, at, damaged(m) if topic != flight.TF_STATIC else m)
        for topic, at, m in flight.recording(1.0)
    ]
    outcome = run(broken)
    assert outcome.code == 1
    assert 'no decision was made' in outcome.sentence
    told(outcome, 'camera: not one of its messages', 'radar: not one of its messages')


def test_a_message_that_was_recorded_twice_is_used_once(run: Any, whole: Outcome) -> None:
    messages = flight.recording(2.0)
    twice = run([entry for entry in messages for _ in range(2)], 'twice')
    reported(
        twice,
        '/camera/image_raw/compressed: 40 messages are in the recording more than once',
        '/radar/points: 50 messages are in the recording more than once',
    )
    assert twice.decisions == whole.decisions


def test_equal_scans_without_a_stamp_are_not_taken_for_copies(run: Any) -> None:
    messages = flight.recording(1.0)
    for topic, _, message in messages:
        if topic == flight.RADAR:
            message.header.stamp = flight.stamp(0)
            message.data = flight.point_cloud(0, 0).data
    outcome = reported(run(messages), 'radar: 25 of 25 stamps cannot be true')
    assert outcome.units('radar', 'encoded') == 25


@pytest.mark.parametrize('storage', ['mcap', 'sqlite3'])
def test_messages_may_lie_in_the_file_in_any_order(run: Any, whole: Outcome, storage: str) -> None:
    messages = flight.recording(2.0)
    shuffled = [messages[i] for i in np.random.default_rng(7).permutation(len(messages))]
    assert reported(run(shuffled, 'shuffled', storage)).decisions == whole.decisions


def test_one_message_logged_a_year_later_costs_nothing_but_itself(
    run: Any, whole: Outcome
) -> None:
    messages = flight.recording(2.0)
    topic, at, message = messages[-1]
    strayed = [*messages[:-1], (topic, at + 365 * 86_400 * NS, message)]
    outcome = reported(run(strayed, 'strayed'), 'camera: nothing usable in the last 31536000')
    shared = len(whole.decisions) - 1
    assert outcome.decisions[:shared] == whole.decisions[:shared]
    assert outcome.report['dropped'] > 300_000_000
    assert len(outcome.decisions) < 100


def test_one_message_logged_at_zero_is_told_of(run: Any) -> None:
    messages = flight.recording(2.0)
    topic, _, message = messages[5]
    strayed = [(topic, 0, message), *messages[:5], *messages[6:]]
    outcome = reported(run(strayed), r'(camera|radar): nothing usable for 1\d{9}\.\d s')
    assert outcome.report['tracks']
    assert len(outcome.decisions) < 100
