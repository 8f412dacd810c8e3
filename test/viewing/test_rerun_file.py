"""A run as a file for Rerun, by a stand-in for its module that keeps what it is given."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import cv2
import numpy as np
import pytest
from hand_made_decisions import NOW_NS, a_decision, a_track, a_unit

from mmedge_ros.data_types import NS_PER_S
from mmedge_ros.geometry.ego_motion import EgoMotion, EgoState
from mmedge_ros.geometry.sensor_poses import OPTICAL_TO_BODY
from mmedge_ros.geometry.transforms import Transform
from mmedge_ros.records.run_record import RunRecord
from mmedge_ros.replay.picture_recording import nominal_camera
from mmedge_ros.viewing import ViewingError
from mmedge_ros.viewing.rerun_file import open_rerun, write_rerun

MS = 1_000_000


class Made(NamedTuple):
    """Something of Rerun's own: its kind, and what it was made from."""

    kind: str
    given: tuple[Any, ...]
    named: dict[str, Any]


class Logged(NamedTuple):
    """One call of log, at a time in seconds; None where it holds for all times."""

    place: str
    time: float | None
    what: Made


class FakeStream:
    def __init__(self) -> None:
        self.logged: list[Logged] = []
        self.is_closed = False
        self._path = Path()
        self._time: float | None = None

    def save(self, path: str) -> None:
        self._path = Path(path)

    def set_time(self, timeline: str, duration: float) -> None:
        assert timeline == 'time'
        self._time = duration

    def send_blueprint(self, blueprint: Made) -> None:
        assert blueprint.kind == 'Blueprint'

    def log(self, place: str, what: Made, static: bool = False) -> None:
        self.logged.append(Logged(place, None if static else self._time, what))

    def disconnect(self) -> None:
        self.is_closed = True
        self._path.write_bytes(b'rerun')


class FakeModule(ModuleType):
    """Whatever is made of it is kept as `Made`."""

    def __getattr__(self, kind: str) -> Any:
        if kind.startswith('__'):
            raise AttributeError(kind)
        return lambda *given, **named: Made(kind, given, named)


@pytest.fixture
def stream() -> FakeStream:
    return FakeStream()


@pytest.fixture
def rerun(monkeypatch: pytest.MonkeyPatch, stream: FakeStream) -> ModuleType:
    module = FakeModule('rerun')
    module.RecordingStream = lambda name: stream  # type: ignore[attr-defined]
    module.Box2DFormat = type('Box2DFormat', (), {'XYXY': 'XYXY'})  # type: ignore[attr-defined]
    module.ViewCoordinates = type(  # type: ignore[attr-defined]
        'ViewCoordinates', (), {'RIGHT_HAND_Z_UP': Made('up', (), {})}
    )
    monkeypatch.setitem(sys.modules, 'rerun', module)
    monkeypatch.setitem(sys.modules, 'rerun.blueprint', FakeModule('rerun.blueprint'))
    return module


@pytest.fixture
def record() -> RunRecord:
    record = RunRecord('night', 'offline', 0.05, 0.5, 0.1, frame_id='radar_link')
    begin_ns = NOW_NS - NS_PER_S
    record.camera_stamps_ns = [begin_ns, NOW_NS - 30 * MS]
    record.camera = nominal_camera((64, 48), 70.0)
    record.camera_pose = Transform(OPTICAL_TO_BODY, np.zeros(3))
    record.radar_pose = Transform(np.eye(3), np.array([0.0, 0.0, 1.0]))
    record.decisions = [a_decision(a_track(), a_track(id=4, box=None))]
    record.features = [a_unit()]
    return record


def shots(record: RunRecord) -> list[Any]:
    picture = np.full((48, 64, 3), 60, np.uint8)
    return [(stamp, stamp, picture) for stamp in record.camera_stamps_ns]


def at(stream: FakeStream, place: str) -> list[Logged]:
    return [entry for entry in stream.logged if entry.place == place]


def test_pictures_tracks_returns_and_latency_lie_on_one_timeline(
    record: RunRecord, rerun: ModuleType, stream: FakeStream, tmp_path: Path
) -> None:
    path, shares = tmp_path / 'new' / 'night.rrd', []
    write_rerun(record, shots(record), path, rerun, shares.append)
    assert path.read_bytes() == b'rerun'
    assert [file.name for file in path.parent.iterdir()] == ['night.rrd']
    assert shares == [0.5, 1.0]

    pictures = at(stream, 'world/camera/picture')
    assert [entry.time for entry in pictures] == pytest.approx([0.0, 0.97])
    jpeg = np.frombuffer(pictures[0].what.named['contents'], np.uint8)
    assert cv2.imdecode(jpeg, cv2.IMREAD_COLOR).shape == (48, 64, 3)

    (boxes,) = at(stream, 'world/camera/picture/tracks')
    assert boxes.time == pytest.approx(0.97)
    assert boxes.what.named['array'].tolist() == [[1.0, 2.0, 3.5, 8.0]]
    assert boxes.what.named['labels'] == ['3 person']
    (points,) = at(stream, 'world/tracks')
    assert points.what.given[0].tolist() == [[4.0, -1.0, 0.5]] * 2
    assert points.what.named['labels'] == ['3 person', '4 person']
    (returns,) = at(stream, 'world/radar')
    assert returns.time == pytest.approx(1.0)
    assert returns.what.given[0].tolist() == [[1.0, 1.0, 2.0]] * 2
    (latency,) = at(stream, 'latency/decision')
    assert latency.what.given == (pytest.approx(1e3 * record.decisions[0].latency),)
    assert {entry.place for entry in stream.logged} > {'age/camera', 'age/radar'}


def test_uncertainty_is_an_ellipsoid_of_one_standard_deviation(
    record: RunRecord, rerun: ModuleType, stream: FakeStream, tmp_path: Path
) -> None:
    write_rerun(record, [], tmp_path / 'night.rrd', rerun)
    (shapes,) = at(stream, 'world/tracks/uncertainty')
    assert shapes.what.named['half_sizes'][0] == pytest.approx([0.5, np.sqrt(0.5), 1.0])


def test_a_camera_that_flies_is_placed_at_every_picture(
    record: RunRecord, rerun: ModuleType, stream: FakeStream, tmp_path: Path
) -> None:
    motion = EgoMotion('odom', 'radar_link', kept=None)
    for number, stamp_ns in enumerate(record.camera_stamps_ns):
        pose = Transform(np.eye(3), np.array([float(number), 0.0, 5.0]))
        motion.add(EgoState(stamp_ns, pose, np.zeros(3), np.zeros(3)))
    flown = replace(record, ego=motion, frame_id='odom')
    write_rerun(flown, shots(record), tmp_path / 'night.rrd', rerun)
    poses = [e for e in at(stream, 'world/camera') if e.what.kind == 'Transform3D']
    assert [entry.time for entry in poses] == pytest.approx([0.0, 0.97])
    assert [entry.what.named['translation'].tolist() for entry in poses] == [
        [0.0, 0.0, 5.0],
        [1.0, 0.0, 5.0],
    ]


def test_a_run_without_camera_or_calibration_is_written_too(
    record: RunRecord, rerun: ModuleType, stream: FakeStream, tmp_path: Path
) -> None:
    bare = replace(record, camera=None, camera_pose=None, radar_pose=None, camera_stamps_ns=[])
    write_rerun(bare, [], tmp_path / 'radar.rrd', rerun)
    assert at(stream, 'world/radar')
    assert not at(stream, 'world/camera')


def test_a_failure_leaves_the_earlier_file(
    record: RunRecord, rerun: ModuleType, tmp_path: Path
) -> None:
    path = tmp_path / 'night.rrd'
    path.write_bytes(b'earlier')
    broken = iter([(1, 1, np.zeros((4, 4, 3), np.uint8)), None])
    with pytest.raises(TypeError):
        write_rerun(record, broken, path, rerun)  # type: ignore[arg-type]
    assert path.read_bytes() == b'earlier'
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_that_cannot_be_written_is_an_error_with_a_remedy(
    record: RunRecord, rerun: ModuleType, tmp_path: Path
) -> None:
    (tmp_path / 'file').touch()
    with pytest.raises(ViewingError, match=r'cannot write .*night\.rrd: .*can be written'):
        write_rerun(record, [], tmp_path / 'file' / 'night.rrd', rerun)


def test_without_the_package_the_error_says_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, 'rerun', None)
    with pytest.raises(ViewingError, match='pip install rerun-sdk'):
        open_rerun()
