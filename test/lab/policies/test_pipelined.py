"""The pipeline as a policy: what it really did, told as a schedule."""

from __future__ import annotations

import numpy as np
from fake_fusion_networks import FakeFusionNetworks
from hand_made_encoded_flight import PERIODS, encoded_flight
from hand_made_gates import always
from hand_made_schedules import FakeChooser, constant_profile, settings
from hand_made_units import MS

from mmedge_lab.policies.causality import check
from mmedge_lab.policies.pipelined import NewestAlone, Pipelined
from mmedge_lab.policies.scheduled_replay import StoredFeatures
from mmedge_lab.policies.steering import ChooserSteering
from mmedge_ros.core.data_types import CAMERA, RADAR, UnitKey
from mmedge_ros.pipeline.fusion_strategy import gated_pipeline
from mmedge_ros.pipeline.perception_pipeline import PerceptionPipeline
from mmedge_ros.windows.audits import AuditParameters
from mmedge_ros.windows.early_decision import Gating
from mmedge_ros.windows.skip_control import SkipControl, SkipParameters
from mmedge_ros.windows.window_bank import WindowBank

POLICY = Pipelined('pipelined')
END_NS = 1_000_000_000


def test_steering_knows_what_has_happened_and_is_followed() -> None:
    flight = encoded_flight(lambda _: 2, 2.5)
    chooser = FakeChooser(
        lambda _: (30.0, 'large') if len(chooser.asked) < 10 else (10.0, 'small')
    )
    steered = settings(
        constant_profile(small=5.0, large=12.0),
        make_steering=lambda: ChooserSteering(chooser, 500 * MS),
    )
    schedule, _ = POLICY.replay(flight, PerceptionPipeline(), steered)
    assert check(schedule, StoredFeatures(flight).arrivals, POLICY.promises, 500 * MS) == []
    assert {e.level for e in schedule.encodings if e.modality == CAMERA} == {'small', 'large'}
    assert schedule.decisions[0].configuration.of(CAMERA).level == 'large'
    assert schedule.decisions[-1].configuration.of(CAMERA).level == 'small'
    assert len([u for u in schedule.decisions[-1].uses if u.modality == CAMERA]) <= 6
    for facts in chooser.asked:
        for units in facts.features.values():
            assert all(unit.trail[-1].end_ns <= facts.now_ns for unit in units)


def test_a_gate_lets_windows_be_decided_early_and_nothing_is_used_too_soon() -> None:
    flight = encoded_flight(lambda _: 2, 3.0)
    parameters = SkipParameters(audits=AuditParameters(share=0.0))
    control = SkipControl(parameters, 0.5, periods_ns=PERIODS)
    pipeline = gated_pipeline(Gating(always(1.0), control))
    schedule, record = POLICY.replay(flight, pipeline, settings())
    early = [d for d in schedule.decisions if d.latency < 0.0]
    assert len(early) > 10
    assert any(CAMERA in d.skipped for d in schedule.decisions)
    assert check(schedule, StoredFeatures(flight).arrivals, POLICY.promises, 500 * MS) == []
    assert len(schedule.encodings) == sum(c.encoded for c in record.units.values())
    assert len(schedule.encodings) < len(StoredFeatures(flight).arrivals)


def test_without_aggregation_networks_see_the_newest_unit_of_each_sensor() -> None:
    fake = FakeFusionNetworks()
    networks = NewestAlone(fake)
    bank = WindowBank(networks.aggregators)
    for modality, stamps in ((CAMERA, (700, 900, 800)), (RADAR, (850, 750))):
        for number, stamp in enumerate(stamps):
            grid = np.full((48, 30, 40), float(stamp), np.float32)
            bank.add(UnitKey(modality, number, stamp * 1_000_000), grid, [END_NS])
    networks.fuse(bank.state(END_NS))
    assert fake.fused == {END_NS: {CAMERA: [900_000_000], RADAR: [850_000_000]}}
