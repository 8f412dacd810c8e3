"""Sensors that send rubbish, fall silent or lie about the time."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import bag_fixtures as flight
import cv2
import numpy as np
import pytest
from replays import Outcome, each, reported

NS = 1_000_000_000
CAMERA_TOPICS = (flight.CAMERA_COMPRESSED, flight.CAMERA_INFO)


def cloud(rows: Any, at: int, names: str = 'x y z velocity') -> Any:
    """A PointCloud2 of these float32 rows."""
    message = flight.point_cloud(0, at)
    points = np.array(rows, np.float32).reshape(-1, len(names.split()))
    field = flight.TYPES['sensor_msgs/msg/PointField']
    message.fields = [
        field(name=name, offset=4 * place, datatype=7, count=1)
        for place, name in enumerate(names.split())
    ]
    message.point_step = 4 * points.shape[1]
    message.width, message.row_step = len(points), points.nbytes
    message.data = points.view(np.uint8).reshape(-1)
    return message


def rows_of(message: Any) -> list[list[float]]:
    rows: list[list[float]] = message.data.view(np.float32).reshape(-1, 4).tolist()
    return rows


def stamp_of(message: Any) -> int:
    return int(message.header.stamp.sec) * NS + int(message.header.stamp.nanosec)


def jpeg(picture: Any) -> Any:
    done, data = cv2.imencode('.jpg', picture)
    assert done
    return data


@pytest.mark.parametrize(
    ('kept', 'missing', 'label'),
    [(CAMERA_TOPICS, 'radar', 'person'), ((flight.RADAR,), 'camera', 'person')],
)
def test_one_sensor_alone_is_tracked_with(
    run: Any, kept: tuple[str, ...], missing: str, label: str
) -> None:
    messages = [m for m in flight.recording(2.0) if m[0] in (*kept, flight.TF_STATIC)]
    outcome = reported(run(messages, drawn=True), f'the recording has no {missing}')
    report = outcome.report
    assert report['decisions'] == report['windows'] == 20
    assert report['decisions_with']['lost'] == {missing: 20}
    assert label in {track['label'] for track in report['tracks']}


def test_points_that_cannot_be_returns_change_nothing(run: Any, whole: Outcome) -> None:
    messages = flight.recording(2.0)
    rubbish = [
        [np.nan] * 4,
        [1e38] * 4,
        [5.0, np.inf, 0.0, 0.5],
        [5.0, 0.0, 0.0, 1.7e38],
        [1e-38, 1e-38, -1e-38, 1e-38],
        [5.0, 0.0, 0.0, -np.inf],
    ]
    polluted = each(messages, flight.RADAR, lambda _, m: cloud(rubbish + rows_of(m), stamp_of(m)))
    outcome = reported(
        run(polluted, 'polluted'),
        'radar: returns dropped because they are no finite numbers: 150',
        'radar: returns dropped as too near or too far: 100',
        'radar: returns dropped as too fast: 50',
    )
    assert outcome.decisions == whole.decisions


def test_a_radar_without_velocities_is_told_of_and_the_camera_goes_on(run: Any) -> None:
    messages = each(
        flight.recording(2.0),
        flight.RADAR,
        lambda _, m: cloud([row[:3] for row in rows_of(m)], stamp_of(m), 'x y z'),
    )
    outcome = reported(run(messages), 'radar: scans without velocities.* moving: 50')
    assert [t['label'] for t in outcome.report['tracks']] == ['person']


def test_sizes_that_are_lies_do_not_take_the_memory(run: Any) -> None:
    def lying(number: int, message: Any) -> Any:
        message.width, message.height = 2**31, 2**20
        return message

    def huge(number: int, message: Any) -> Any:
        picture = flight.image(number, stamp_of(message))
        picture.width = picture.height = 2**31 - 1
        return picture

    radar = run(each(flight.recording(0.5), flight.RADAR, lying), 'radar')
    reported(radar, r'radar: 12 of 12 messages not used: .* at most 10000000 are accepted')
    camera = [
        (flight.CAMERA if topic == flight.CAMERA_COMPRESSED else topic, at, message)
        for topic, at, message in each(flight.recording(0.5), flight.CAMERA_COMPRESSED, huge)
    ]
    reported(run(camera, 'camera'), 'camera: 10 of 10 messages not used: .*at most 64000000')


def test_empty_scans_are_scans(run: Any) -> None:
    messages = each(flight.recording(1.0), flight.RADAR, lambda _, m: cloud([], stamp_of(m)))
    outcome = reported(run(messages))
    assert outcome.units('radar', 'encoded') == 25
    assert 'radar' not in outcome.problems.replace('radar_link', '')


def test_pictures_that_change_their_size_are_told_of_with_both_sizes(run: Any) -> None:
    def double(number: int, message: Any) -> Any:
        if number >= 20:
            message.data = jpeg(cv2.resize(flight.picture(number), (128, 96)))
        return message

    outcome = reported(
        run(each(flight.recording(2.0), flight.CAMERA_COMPRESSED, double)),
        r'camera: 20 of 40 pictures are 128 x 96 px, but the calibration is for 64 x 48 px',
    )
    assert outcome.units('camera', 'encoded') == 40


def test_pictures_that_change_their_encoding_are_used_as_long_as_it_is_known(run: Any) -> None:
    def change(number: int, message: Any) -> Any:
        picture = flight.image(number, stamp_of(message))
        if number >= 20:
            picture.encoding, picture.step = 'mono8', flight.WIDTH
            picture.data = flight.picture(number)[:, :, 0].reshape(-1).copy()
        if number >= 34:
            picture.encoding = 'bayer_\x1b[31mred'
        return picture

    messages = [
        (flight.CAMERA if topic == flight.CAMERA_COMPRESSED else topic, at, message)
        for topic, at, message in each(flight.recording(2.0), flight.CAMERA_COMPRESSED, change)
    ]
    outcome = reported(run(messages), r"camera: 6 of 40 messages not used: image encoding 'bayer")
    assert outcome.units('camera', 'encoded') == 34


def test_damaged_pictures_in_between_are_left_out_and_counted_by_their_fault(run: Any) -> None:
    def damage(number: int, message: Any) -> Any:
        if number % 5 == 1:
            message.data = message.data[: len(message.data) // 2 + number]
        if number % 10 == 3:
            message.data = np.zeros(0, np.uint8)
        return message

    messages = each(flight.recording(2.0), flight.CAMERA_COMPRESSED, damage)
    outcome = reported(
        run(messages),
        'camera: 8 of 40 messages not used: truncated jpeg',
        'camera: 4 of 40 messages not used: .*has no data',
    )
    assert outcome.units('camera', 'encoded') == 28
    assert 'person' in {track['label'] for track in outcome.report['tracks']}


def test_a_camera_that_sends_only_rubbish_leaves_the_radar_to_itself(run: Any) -> None:
    def damage(number: int, message: Any) -> Any:
        message.data = message.data[:60]
        return message

    outcome = reported(
        run(each(flight.recording(2.0), flight.CAMERA_COMPRESSED, damage)),
        'camera: not one of its messages could be used',
        'camera: 40 of 40 messages not used: damaged jpeg',
    )
    assert [track['label'] for track in outcome.report['tracks']] == ['person']
    assert outcome.code == 0
    # Without a radar nothing is left.
    alone = [entry for entry in flight.recording(1.0) if entry[0] != flight.RADAR]
    outcome = run(each(alone, flight.CAMERA_COMPRESSED, damage), 'alone')
    assert outcome.code == 1
    assert 'no message of any sensor could be used; the report says why' in outcome.sentence


@pytest.mark.parametrize(
    'lie',
    [
        lambda at: 0,
        lambda at: at + 3600 * NS,
    ],
    ids=['zero', 'in_an_hour'],
)
def test_stamps_that_cannot_be_true_give_way_to_the_time_of_arrival(
    run: Any, lie: Callable[[int], int]
) -> None:
    messages = flight.recording(2.0)
    for topic, _, message in messages:
        if topic != flight.TF_STATIC:
            message.header.stamp = flight.stamp(lie(stamp_of(message)))
    outcome = reported(
        run(messages),
        'camera: 40 of 40 stamps cannot be true',
        'radar: 50 of 50 stamps cannot be true',
    )
    report = outcome.report
    assert report['decisions'] == 20
    assert report['tracks']
    # Times in the report count from the beginning of the recording, not from 1970.
    assert all(0.0 <= track['first_s'] < 3.0 for track in report['tracks'])


def test_units_stamped_before_their_predecessors_are_left_out_of_tracking(run: Any) -> None:
    messages = flight.recording(2.0)
    for place, (topic, _, message) in enumerate(messages):
        if topic != flight.TF_STATIC and place % 20 >= 15:
            message.header.stamp = flight.stamp(stamp_of(message) - NS)
    outcome = reported(run(messages), 'units stamped too long before newer ones .*: [1-9]')
    states = [json.loads(line)['state_ns'] for line in outcome.decisions]
    assert states == sorted(states)


def test_a_radar_that_falls_silent_is_told_of_and_the_camera_goes_on(run: Any) -> None:
    messages = [
        m for m in flight.recording(4.0) if m[0] != flight.RADAR or m[1] < flight.BEGIN_NS + 2 * NS
    ]
    outcome = reported(run(messages), r'radar: nothing usable in the last 2\.0 s')
    report = outcome.report
    assert report['decisions'] == 40
    # From half a second after its last scan every window lacks the radar.
    assert report['decisions_with']['lost'] == {'radar': 16}
    last = json.loads(outcome.decisions[-1])['tracks']
    assert ['camera'] in [track['seen_by'] for track in last]


def test_frame_names_from_outside_reach_neither_the_terminal_nor_the_page(
    run: Any,
) -> None:
    messages = flight.recording(1.0)
    evil = 'evil\x1b[2J\r<script>alert(1)</script>' + 'x' * 500
    for topic, _, message in messages:
        if topic != flight.TF_STATIC:
            message.header.frame_id = evil
    outcome = reported(run(messages), 'no transform from base_link to evil')
    page = (outcome.folder / 'report.html').read_text()
    assert 'evil' in page
    assert '<script>alert' not in page
    assert 'alert(1)</script>' not in page
    assert '[2J' in outcome.said  # shown, and not obeyed: `replay` checks what is said


def test_frames_are_found_by_names_with_a_leading_slash(run: Any, whole: Outcome) -> None:
    messages = flight.recording(2.0)
    for topic, _, message in messages:
        if topic != flight.TF_STATIC:
            message.header.frame_id = '/' + message.header.frame_id
    assert reported(run(messages)).decisions == whole.decisions
