"""Energy of a flight, by part."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hand_made_units import BEGIN_NS, at, features, unit

from mmedge_ros.core.data_types import CAMERA, NS_PER_S, RADAR, Decision, StageTiming
from mmedge_ros.core.run_record import RunRecord
from mmedge_ros.monitoring.system_state import SystemState
from mmedge_ros.report.energy import computer_watts, energy_report, watts_over_time


def worked(modality: str, begin_ms: float, lasted_ms: float, stage: str = 'encode'):
    made = features(unit(begin_ms, modality))
    trail = (StageTiming('queue', at(begin_ms - 1), at(begin_ms)),)
    work = StageTiming(stage, at(begin_ms), at(begin_ms + lasted_ms))
    return replace(made, trail=(*trail, work))


@pytest.fixture
def record() -> RunRecord:
    made = RunRecord('a flight', 'live', 0.05, 0.5, 0.1, duration=10.0)
    made.features = [
        worked(CAMERA, 100, 250),
        worked(CAMERA, 1200, 500),
        worked(CAMERA, 1800, 5, 'follow'),
        worked(RADAR, 300, 100),
    ]
    trail = (StageTiming('window', at(90), at(100)), StageTiming('fusion', at(100), at(150)))
    decision = Decision(at(100), at(100), 'map', (), {}, trail=trail)
    made.decisions = [decision, replace(decision, trail=())]
    return made


def test_the_model_gives_each_part_four_watts_while_it_works_and_seven_to_idling(
    record: RunRecord,
) -> None:
    report = energy_report(record)
    assert report['model_j'] == pytest.approx(
        {'camera encoder': 3.02, 'radar encoder': 0.4, 'fusion': 0.2, 'idle': 70.0}
    )
    assert 'not measured' in report['model']
    assert np.isnan(list(report['measured_j'].values())).all()


def test_rails_that_are_measured_are_added_up_over_time(record: RunRecord) -> None:
    states = [(0, 5.0, 100.0), (1, 7.0, np.nan), (2, np.nan, 120.0), (3, 9.0, np.nan)]
    record.states = [
        (BEGIN_NS + second * NS_PER_S, SystemState(15.0, power=battery, module_power=module))
        for second, module, battery in states
    ]
    # Each holds until the next that is known: 5 W for a second and 7 W for two.
    assert energy_report(record)['measured_j'] == {'computer': 19.0, 'battery': 200.0}


def test_a_long_silence_of_the_monitor_is_not_filled(record: RunRecord) -> None:
    record.states = [
        (BEGIN_NS + second * NS_PER_S, SystemState(module_power=2.0)) for second in (0, 100)
    ]
    assert energy_report(record)['measured_j']['computer'] == 10.0


def test_watts_are_those_of_each_second(record: RunRecord) -> None:
    middles, watts = watts_over_time(record, BEGIN_NS)
    assert middles.tolist() == [0.5, 1.5]
    assert watts['camera encoder'] == pytest.approx([1.0, 2.02])
    assert watts['fusion'] == pytest.approx([0.2, 0.0])


def test_a_clock_that_is_years_ahead_does_not_fill_the_memory(record: RunRecord) -> None:
    record.features[0] = worked(CAMERA, 1e12, 10)
    assert len(watts_over_time(record, BEGIN_NS)[0]) == 86_400


def test_what_the_whole_drone_draws_is_not_taken_for_the_computers() -> None:
    assert computer_watts(SystemState(module_power=8.0, power=200.0, voltage=15.0)) == 8.0
    assert np.isnan(computer_watts(SystemState(power=200.0, voltage=15.0)))
    assert computer_watts(SystemState(power=8.0)) == 8.0
