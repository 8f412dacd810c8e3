"""The graph that waits for the end of its windows, live."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from mmedge_lab.rivals.mmedge.latency_bench import BLOCKING, changed
from mmedge_lab.simulation.flight import FlightDescription, kept_flight
from mmedge_ros.core.data_types import CAMERA, NS_PER_S, RADAR
from mmedge_ros.ros.graph.options import GraphOptions
from mmedge_ros.ros.sessions.live_session import replay_live

SHIPPED = Path(__file__).resolve().parents[2] / 'models/flight_people'
FLIGHT = FlightDescription('street_day_near', seed=5, seconds=2.0)


def test_no_unit_is_encoded_before_the_end_of_its_first_window(tmp_path: Path) -> None:
    flight = kept_flight(tmp_path / 'flight', FLIGHT, lambda _: None)
    options = GraphOptions(bag=str(flight), detector=str(SHIPPED))
    record = replay_live(options, change=partial(changed, BLOCKING))
    stride_ns = round(record.stride * NS_PER_S)
    assert record.decisions
    assert {features.modality for features in record.features} == {CAMERA, RADAR}
    for features in record.features:
        first_end_ns = -(-features.available_ns // stride_ns) * stride_ns
        encode = next(stage for stage in features.trail if stage.stage == 'encode')
        assert encode.begin_ns >= first_end_ns
