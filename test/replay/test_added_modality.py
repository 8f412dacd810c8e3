"""A third modality, LiDAR points, added from outside and replayed beside a radar."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import bag_fixtures as flight
import pytest

from mmedge_ros.core.data_types import ModalityConfiguration, Unit, UnitFeatures
from mmedge_ros.core.device_profile import DeviceProfile, write_profile
from mmedge_ros.core.run_record import RunRecord
from mmedge_ros.encoding import encoder_registry
from mmedge_ros.encoding.encoder_registry import EncoderKind, EncoderSettings, register_encoder
from mmedge_ros.encoding.unit_encoder import encoded_unit
from mmedge_ros.replay import BagError
from mmedge_ros.replay.offline_session import OfflineOptions, replay_offline
from mmedge_ros.replay.recording import Recording
from mmedge_ros.sensing.radar.point_cloud import decode_points

LIDAR = 'lidar'
TOPIC = '/drone/lidar/points'
PERIOD_NS = 100_000_000
STAGES = ('radar.encode', 'lidar.encode', 'receipt.transport', 'features.transport', 'fusion')


class LidarEncoder:
    """Hands on the points of a scan; it knows no levels."""

    modality = LIDAR
    levels: tuple[str, ...] = ()

    def __init__(self) -> None:
        self.problems: Counter[str] = Counter()
        self.is_warm = False

    def encode(
        self, unit: Unit, configuration: ModalityConfiguration, configuration_id: int
    ) -> UnitFeatures:
        returns = decode_points(unit.payload)
        return encoded_unit(unit, configuration, configuration_id, returns=returns)

    def warm_up(self) -> None:
        self.is_warm = True


ENCODERS: list[LidarEncoder] = []


def make(settings: EncoderSettings) -> LidarEncoder:
    assert settings.model is None  # there are no pictures
    ENCODERS.append(LidarEncoder())
    return ENCODERS[-1]


@pytest.fixture(autouse=True)
def lidar(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(encoder_registry, '_KINDS', dict(encoder_registry._KINDS))
    register_encoder(EncoderKind(LIDAR, 'sensor_msgs/msg/PointCloud2', 'lidar/points', make))
    yield
    ENCODERS.clear()


def messages(*lidar_topics: str) -> list[tuple[str, int, Any]]:
    found = [m for m in flight.recording(2.0) if m[0] == flight.RADAR]
    stamps = [flight.BEGIN_NS + number * PERIOD_NS + 7_000_000 for number in range(20)]
    found += [
        (topic, stamp_ns + flight.LOG_DELAY_NS, flight.point_cloud(number, stamp_ns))
        for topic in lidar_topics
        for number, stamp_ns in enumerate(stamps)
    ]
    return sorted(found, key=lambda message: message[1])


def replay(folder: Path, *lidar_topics: str) -> RunRecord:
    folder.mkdir(exist_ok=True)
    profile = folder / 'profile.yaml'
    times = (0.001, 0.002, 0.003, 0.004, 0.005, 0.006)
    write_profile(DeviceProfile('', dict.fromkeys(STAGES, times)), profile)
    bag = flight.write_bag(folder / 'bag', messages=messages(*lidar_topics))
    return replay_offline(OfflineOptions(str(bag), profile=str(profile)))


def test_units_of_an_added_modality_are_encoded_counted_and_have_an_age(tmp_path: Path) -> None:
    record = replay(tmp_path, TOPIC)
    (encoder,) = ENCODERS
    assert encoder.is_warm
    counts = record.units[LIDAR]
    assert (counts.received, counts.encoded, counts.late, counts.lost) == (20, 20, 0, 0)
    assert sum(f.modality == LIDAR and len(f.returns) == 4 for f in record.features) == 20
    for decision in record.decisions[2:]:
        assert 0.0 < decision.ages[LIDAR] < 0.12
        assert decision.lost == ('camera',)
    assert not any(LIDAR in problem for problem in record.problems)


def test_an_added_modality_changes_no_track(tmp_path: Path) -> None:
    with_lidar, without = (
        replay(tmp_path / name, *topics) for name, topics in (('with', (TOPIC,)), ('without', ()))
    )
    assert LIDAR not in without.units
    assert any(decision.tracks for decision in without.decisions)
    for one, other in zip(with_lidar.decisions, without.decisions, strict=True):
        assert (one.window_end_ns, one.state_ns) == (other.window_end_ns, other.state_ns)
        assert [(t.id, *t.position, *t.velocity) for t in one.tracks] == [
            (t.id, *t.position, *t.velocity) for t in other.tracks
        ]


def test_two_topics_of_its_name_are_refused(tmp_path: Path) -> None:
    bag = flight.write_bag(tmp_path / 'bag', messages=messages(TOPIC, '/other/lidar/points'))
    with pytest.raises(BagError, match='2 topics that may be the lidar'):
        Recording(bag)
