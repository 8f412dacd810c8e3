"""From a run to the service times of a device."""

from __future__ import annotations

import pytest

from mmedge_ros.data_types import CAMERA, RADAR, Decision, StageTiming, UnitFeatures
from mmedge_ros.records.run_record import RunRecord
from mmedge_ros.records.stage_durations import stage_durations

MS = 1_000_000


def trail(**durations: int) -> tuple[StageTiming, ...]:
    """Stages of so many milliseconds, one after the other."""
    found, now = [], 0
    for stage, ms in durations.items():
        found.append(StageTiming(stage, now, now + ms * MS))
        now += ms * MS
    return tuple(found)


def encoded(modality: str, **durations: int) -> UnitFeatures:
    return UnitFeatures(modality, 0, 0, 0, '', trail(**durations))


def decided(**durations: int) -> Decision:
    return Decision(0, 0, '', (), {}, trail=trail(**durations))


def record(**parts: object) -> RunRecord:
    return RunRecord('bag', 'live', 0.05, 0.5, 0.1, **parts)  # type: ignore[arg-type]


def test_the_stages_an_offline_replay_asks_for_are_collected() -> None:
    found = stage_durations(
        record(
            features=[
                encoded(CAMERA, acquisition=3, transport=2, queue=9, encode=20),
                encoded(RADAR, acquisition=3, transport=1, encode=4),
                encoded(CAMERA, encode=30),
            ],
            decisions=[decided(encode=20, transport_features=5, window=40, fusion=7)],
        )
    )
    assert found == {
        'camera.encode': pytest.approx([0.02, 0.03]),
        'radar.encode': pytest.approx([0.004]),
        'receipt.transport': pytest.approx([0.002, 0.001]),
        'features.transport': pytest.approx([0.005]),
        'fusion': pytest.approx([0.007]),
    }


def test_decisions_of_the_warm_up_are_left_out() -> None:
    decisions = [decided(fusion=100), decided(fusion=90), decided(fusion=3)]
    found = stage_durations(record(decisions=decisions, warmup=2))
    assert found == {'fusion': pytest.approx([0.003])}


def test_a_run_without_anything_has_no_stages() -> None:
    assert stage_durations(record(decisions=[decided()])) == {}
