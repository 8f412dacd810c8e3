"""What a course says of decisions, written down by hand."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from mmedge_lab.rivals.mmedge.cpu_step_figure import draw_cpu_steps
from mmedge_lab.rivals.mmedge.cpu_step_report import (
    CpuStep,
    CpuStepFlight,
    flight_figures,
    oracle,
    step_figures,
    under_limit,
    verdict,
)
from mmedge_ros.configuration import ConfigurationError
from mmedge_ros.configuration.configuration_space import ConfigurationSpace, ModalityOptions
from mmedge_ros.configuration.profiling import Phase, PhaseSamples
from mmedge_ros.data_types import NS_PER_S, Configuration, Decision
from mmedge_ros.records.device_profile import DeviceProfile

SPACE = ConfigurationSpace([ModalityOptions('camera', (10.0, 30.0), ('small', 'large'), '')])
ZERO_NS = 1_000 * NS_PER_S


def decision(at: float, latency: float, late: tuple[str, ...] = ()) -> Decision:
    end_ns = ZERO_NS + round(at * NS_PER_S)
    published_ns = end_ns + round(latency * NS_PER_S)
    return Decision(end_ns, end_ns, 'odom', (), {}, late=late, published_ns=published_ns)


def phase(percent: float, begin: float, end: float) -> CpuStep:
    return CpuStep(percent, ZERO_NS + round(begin * NS_PER_S), ZERO_NS + round(end * NS_PER_S))


def every_stride(begin: float, end: float, latency: float) -> list[Decision]:
    first, last = round(10 * begin), round(10 * end)
    return [decision(number / 10, latency) for number in range(first + 1, last + 1)]


def configuration(number: int, at: float, index: int, reason: str = '') -> Configuration:
    return Configuration(
        number,
        ZERO_NS + round(at * NS_PER_S),
        SPACE.parts(index),
        0.1,
        math.nan,
        reason=reason,
    )


def flown() -> CpuStepFlight:
    decisions = every_stride(0.0, 10.0, 0.05) + every_stride(10.0, 20.0, 0.15)
    course = [
        configuration(1, -5.0, 3, 'the most accurate'),
        configuration(2, 11.0, 0, 'because'),
        configuration(3, 12.0, 0, 'hot'),
        configuration(4, 25.0, 3),
    ]
    return CpuStepFlight([phase(100.0, 0.0, 10.0), phase(30.0, 10.0, 20.0)], decisions, course)


def test_decisions_are_in_time_or_not_outside_of_the_two_seconds_after_a_step() -> None:
    slow_first = every_stride(0.0, 2.0, 0.5) + every_stride(2.0, 10.0, 0.1)
    figures = step_figures(phase(50.0, 0.0, 10.0), slow_first, 0.1, 0.1)
    assert (figures['windows'], figures['decisions'], figures['in_time']) == (80, 80, 1.0)
    assert figures['p95_ms'] == 100.0
    late = [*slow_first[:-8], *every_stride(9.2, 10.0, 0.1001)]
    assert step_figures(phase(50.0, 0.0, 10.0), late, 0.1, 0.1)['in_time'] == 0.9


def test_a_window_that_was_never_decided_is_late() -> None:
    figures = step_figures(phase(50.0, 0.0, 10.0), every_stride(0.0, 6.0, 0.01), 0.1, 0.1)
    assert (figures['windows'], figures['in_time']) == (80, 0.5)
    silent = step_figures(phase(50.0, 0.0, 10.0), [], 0.1, 0.1)
    assert (silent['in_time'], silent['p95_ms']) == (0.0, None)


def test_a_phase_shorter_than_the_settling_says_nothing() -> None:
    figures = step_figures(phase(50.0, 0.0, 1.5), every_stride(0.0, 1.5, 0.01), 0.1, 0.1)
    assert (figures['windows'], figures['in_time']) == (0, None)


def test_decisions_that_could_not_wait_for_a_unit_are_counted() -> None:
    decisions = [decision(3.0, 0.05, ('camera',)), decision(3.1, 0.05)]
    assert step_figures(phase(100.0, 0.0, 10.0), decisions, 0.1, 0.1)['without_units'] == 1


def test_changes_are_those_of_rates_and_levels_during_the_course() -> None:
    figures = flight_figures(flown(), 0.1, 0.1)
    assert [p['changes'] for p in figures['phases']] == [0, 1]
    assert (figures['changes'], figures['changes_per_minute']) == (1, 3.0)
    assert [c['reason'] for c in figures['configurations']][1:3] == ['because', 'hot']
    assert figures['configurations'][0]['configuration'] == 'camera 30 Hz large'
    json.dumps(figures, allow_nan=False)


def samples(latency: float, count: int = 40) -> PhaseSamples:
    return PhaseSamples(latencies=[latency] * count)


def profile() -> DeviceProfile:
    stages = {
        'camera.small.encode': (0.01,) * 6,
        'camera.large.encode': (0.03,) * 6,
        'features.transport': (0.001,) * 6,
        'fusion': (0.001,) * 6,
    }
    slower = {name: [4e3 * q for q in quantiles] for name, quantiles in stages.items()}
    return DeviceProfile('here', stages, {'limited_ms': {'30': slower}})


def test_the_oracle_believes_what_was_flown_and_says_what_the_model_makes_of_it() -> None:
    cheapest = SPACE.parts(0)
    measured = [
        (Phase(SPACE.parts(3)), samples(0.01)),
        (Phase(cheapest, 100.0, is_check=True), samples(0.02)),
        (Phase(SPACE.parts(3), 100.0, is_check=True), samples(0.3)),
        (Phase(cheapest, 30.0, is_check=True), samples(0.2)),
        (Phase(cheapest, 20.0, is_check=True), samples(0.05)),
    ]
    whole, limited, unknown = oracle(profile(), SPACE, [0.1, 0.3, 0.2, 0.9], measured, 0.1)
    assert [row['feasible'] for row in (whole, limited, unknown)] == [True, False, True]
    assert [len(row['flown']) for row in (whole, limited, unknown)] == [2, 1, 1]
    assert whole['model']['best'] == '30, large'
    assert whole['model']['cheapest_p95_ms'] == pytest.approx(12.0, abs=1.5)
    assert limited['model']['best'] != '30, large'
    assert unknown['model'] is None


def test_an_oracle_that_flew_nothing_knows_nothing() -> None:
    with pytest.raises(ConfigurationError, match='no fixed configuration'):
        oracle(profile(), SPACE, [0.1] * 4, [(Phase(SPACE.parts(0)), samples(0.1))], 0.1)


@pytest.mark.parametrize('rows', [{'fusion': ['x']}, {'fusion': 5}, {'fusion': [None]}])
def test_a_profile_whose_limited_times_are_none_is_refused(rows: object) -> None:
    broken = DeviceProfile('', {}, {'limited_ms': {'30': rows}})
    with pytest.raises(ConfigurationError, match='limited_ms'):
        under_limit(broken, 30.0)


@pytest.mark.parametrize('details', [{}, {'limited_ms': 5}, {'limited_ms': {'30': 'x'}}])
def test_a_profile_without_that_limit_says_nothing_of_it(details: dict[str, object]) -> None:
    assert under_limit(DeviceProfile('', {}, details), 30.0) is None


def test_the_verdict_counts_feasible_phases_alone() -> None:
    runs = {'adaptive': flight_figures(flown(), 0.1, 0.1)}
    oracles = [{'percent': 100.0, 'feasible': True}, {'percent': 30.0, 'feasible': False}]
    assert verdict(runs, oracles) == {'feasible_percents': [100.0], 'in_time': {'adaptive': 1.0}}
    oracles[1]['feasible'] = True
    assert verdict(runs, oracles)['in_time'] == {'adaptive': 0.5}
    assert verdict(runs, [])['in_time'] == {'adaptive': None}


def test_both_flights_are_drawn(tmp_path: Path) -> None:
    fixed = CpuStepFlight(flown().phases, flown().decisions, [])
    drawn = draw_cpu_steps(flown(), fixed, [], 0.1)
    assert drawn.png.startswith(b'\x89PNG')
    assert draw_cpu_steps(fixed, fixed, [], 0.1).png != drawn.png
