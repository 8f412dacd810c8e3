"""A bag seen as sensors."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from bag_fixtures import CAMERA_COMPRESSED as PICTURES
from bag_fixtures import LOG_DELAY_NS, RADAR, recording, write_bag

from mmedge_ros.replay import ReplayError
from mmedge_ros.replay.recording import Recording, RepeatedMessages, TopicChoice

MS = 1_000_000

CALIBRATION = """
image_width: 320
image_height: 240
camera_matrix: {rows: 3, cols: 3, data: [200, 0, 160, 0, 200, 120, 0, 0, 1]}
"""


@pytest.fixture(scope='module')
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_bag(tmp_path_factory.mktemp('bags') / 'flight', messages=recording(1.0))


@pytest.fixture
def flight(path: Path) -> Iterator[Recording]:
    with Recording(path) as opened:
        yield opened


def test_calibration_and_transforms_come_from_the_bag(flight: Recording) -> None:
    assert flight.camera is not None
    assert (flight.camera.width, flight.camera.height) == (64, 48)
    assert [(t.parent, t.child) for t in flight.transforms] == [
        ('radar_link', 'camera_optical_frame')
    ]


def test_units_come_by_their_arrival_with_the_begin_of_their_trail(flight: Recording) -> None:
    units = list(flight.units())
    assert len(units) == 20 + 25
    arrivals = [unit.available_ns for unit in units]
    assert arrivals == sorted(arrivals)
    for unit in units:
        assert unit.available_ns == unit.stamp_ns + LOG_DELAY_NS
        assert unit.trail[0].begin_ns == unit.stamp_ns
        assert unit.trail[-1].end_ns == unit.available_ns
    pictures = [unit for unit in units if unit.modality == 'camera']
    assert [unit.sequence for unit in pictures] == list(range(20))
    assert {unit.frame_id for unit in pictures} == {'camera_optical_frame'}


def test_damaged_messages_are_left_out_noted_and_keep_their_number(tmp_path: Path) -> None:
    messages = recording(1.0)
    places = [n for n, m in enumerate(messages) if m[0] == RADAR][3:5]
    for place in places:
        damaged = ('sensor_msgs/msg/PointCloud2', b'\x00\x01\x00\x00 no message')
        messages[place] = (RADAR, messages[place][1], damaged)
    with Recording(write_bag(tmp_path / 'damaged', messages=messages)) as flight:
        scans = [u.sequence for u in flight.units() if u.modality == 'radar']
        assert scans == [0, 1, 2, *range(5, 25)]
        (said,) = flight.problems
        assert RADAR in said


def test_a_calibration_file_goes_before_the_recording(path: Path, tmp_path: Path) -> None:
    file = tmp_path / 'camera.yaml'
    file.write_text(CALIBRATION)
    with Recording(path, calibration=str(file)) as flight:
        assert flight.camera is not None
        assert flight.camera.width == 320
        assert len(flight.transforms) == 1


@pytest.mark.parametrize(
    ('choice', 'calibration', 'said'),
    [
        (TopicChoice(camera='/camera/imgae_raw/compressed'), '', 'nearest'),
        (TopicChoice(radar=PICTURES), '', 'expected sensor_msgs/msg/PointCloud2'),
        (TopicChoice(), 'missing.yaml', 'missing.yaml'),
    ],
)
def test_what_cannot_be_used_is_refused_and_the_bag_closed(
    path: Path, monkeypatch: pytest.MonkeyPatch, choice: TopicChoice, calibration: str, said: str
) -> None:
    closed = []
    monkeypatch.setattr(Recording, 'close', lambda self: closed.append(self.bag.close()))
    with pytest.raises(ReplayError, match=said):
        Recording(path, choice, calibration)
    assert len(closed) == 1


def test_a_copy_is_found_and_counted_by_topic() -> None:
    repeated = RepeatedMessages()
    found = [repeated.is_repeated(*m) for m in [('/a', 1, b'x'), ('/a', 1, b'x'), ('/b', 1, b'x')]]
    assert found == [False, True, False]
    assert repeated.counts == {'/a': 1}


def test_another_stamp_or_other_bytes_make_another_message() -> None:
    repeated = RepeatedMessages()
    different = [('/a', 1, b'x'), ('/a', 2, b'x'), ('/a', 1, b'y'), ('/a', 1, b'xx')]
    assert not any(repeated.is_repeated(*m) for m in different)


def test_the_memory_is_bounded() -> None:
    repeated = RepeatedMessages()
    assert not any(repeated.is_repeated('/a', n, b'x') for n in range(1000))
    assert repeated.is_repeated('/a', 990, b'x')
    assert not repeated.is_repeated('/a', 0, b'x')
