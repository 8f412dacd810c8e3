"""With `reuse` the live graph encodes the same pictures as a replay, and follows the rest."""

from __future__ import annotations

from pathlib import Path

import pytest

from mmedge_lab.simulation.flight import FlightDescription, kept_flight
from mmedge_ros.core.data_types import CAMERA
from mmedge_ros.core.run_record import RunRecord
from mmedge_ros.replay.offline_session import OfflineOptions, replay_offline
from mmedge_ros.ros.graph.options import GraphOptions
from mmedge_ros.ros.sessions.live_session import replay_live

SHIPPED = Path(__file__).resolve().parents[2] / 'models/flight_people'
FLIGHT = FlightDescription('street_day_near', seed=5, seconds=3.0)


@pytest.fixture(scope='module')
def flight(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return kept_flight(tmp_path_factory.mktemp('flights') / 'flight', FLIGHT, lambda _: None)


def followed(record: RunRecord) -> dict[int, bool]:
    return {f.stamp_ns: f.followed for f in record.features if f.modality == CAMERA}


def test_live_and_offline_encode_the_same_pictures(flight: Path, tmp_path: Path) -> None:
    offline = replay_offline(OfflineOptions(str(flight), str(SHIPPED), reuse=3))
    live = replay_live(
        GraphOptions(bag=str(flight), detector=str(SHIPPED), logs=str(tmp_path / 'logs'), reuse=3)
    )
    here, there = followed(offline), followed(live)
    # Nodes that have not found each other yet miss the first pictures, and a machine that is short
    # of processor time drops some: they learn the camera's rate from others then.
    both = sorted(here.keys() & there.keys())
    assert len(both) >= 0.7 * len(here)
    assert sum(here[ns] == there[ns] for ns in both) >= 0.9 * len(both)
    units = live.units[CAMERA]
    assert units.followed >= units.encoded
    assert units.encoded + units.followed == len(there)
    assert any(d.tracks for d in live.decisions)
