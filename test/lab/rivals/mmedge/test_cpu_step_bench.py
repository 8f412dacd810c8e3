"""What is judged of a flight under a processor that steps, written down by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from mmedge_lab.judging import EvaluationError
from mmedge_lab.judging.bench import BenchRequest
from mmedge_lab.rivals.mmedge.cpu_step_bench import (
    ADAPTIVE,
    KEPT,
    CpuStep,
    CpuStepPlan,
    CpuStepRecord,
    CpuStepRuns,
    bench,
    changes,
    step_sums,
    without_saving,
)
from mmedge_ros.adaptation.configuration_space import ConfigurationSpace, ModalityOptions
from mmedge_ros.adaptation.optimizer_setup import ConfigurationOptimizerParameters
from mmedge_ros.core.data_types import NS_PER_S, Configuration, Decision

SPACE = ConfigurationSpace([ModalityOptions('camera', (10.0, 30.0), ('small', 'large'), '')])
ZERO_NS = 1_000 * NS_PER_S


def at(seconds: float) -> int:
    return ZERO_NS + round(seconds * NS_PER_S)


def decision(seconds: float, latency: float, late: tuple[str, ...] = ()) -> Decision:
    end_ns = at(seconds)
    published_ns = end_ns + round(latency * NS_PER_S)
    return Decision(end_ns, end_ns, 'odom', (), {}, late=late, published_ns=published_ns)


def configuration(number: int, seconds: float, index: int, reason: str = '') -> Configuration:
    return Configuration(number, at(seconds), SPACE.parts(index), 0.1, 0.05, reason=reason)


@pytest.fixture
def record() -> CpuStepRecord:
    """Ten seconds in time, ten late, of which two windows have no decision."""
    made = CpuStepRecord()
    made.decisions = [decision(n / 10, 0.05) for n in range(1, 101)]
    made.decisions += [decision(n / 10, 0.15, ('camera',)) for n in range(101, 199)]
    made.configurations = [
        configuration(1, -5.0, 3),
        configuration(2, 5.0, 3, 'another reason'),
        configuration(3, 12.0, 0),
    ]
    made.phases = [CpuStep(at(0.0), at(10.0)), CpuStep(at(10.0), at(20.0))]
    return made


def test_decisions_count_from_two_seconds_after_a_step(record: CpuStepRecord) -> None:
    first, second = (step_sums(record, number, 0.1) for number in (0, 1))
    assert (first['windows'], first['decisions'], first['in_time']) == (80, 80, 80)
    # A window without a decision is late, too.
    assert (second['windows'], second['decisions'], second['in_time']) == (80, 78, 0)
    assert (first['without'], second['without']) == (0, 78)
    assert second['latency'][0] == pytest.approx(150.0)  # type: ignore[index]


def test_another_reason_is_no_change(record: CpuStepRecord) -> None:
    assert changes(record.configurations) == [at(12.0)]
    assert [step_sums(record, number, 0.1)['changes'] for number in (0, 1)] == [0, 1]


def test_fixed_configurations_stand_beside_the_flights(record: CpuStepRecord) -> None:
    plan = CpuStepPlan(Path(), Path(), '', (100.0, 50.0), 10.0, 0.1)
    fixed = {('the cheapest configuration, fixed', 50.0): [0.05, 0.2]}
    runs = CpuStepRuns(plan, {ADAPTIVE: record}, fixed)
    assert runs.sums(ADAPTIVE, 0)['in_time'] == 80
    sums = runs.sums('the cheapest configuration, fixed', 1)
    assert (sums['windows'], sums['in_time']) == (2, 1)


def test_every_phase_is_a_table_of_all_ways(tmp_path: Path) -> None:
    made = bench(BenchRequest((tmp_path,)), shares='100,50,100')
    assert len({row.group for row in made.rows}) == 3
    assert [row.name for row in made.rows[:2]] == [ADAPTIVE, KEPT]
    with pytest.raises(EvaluationError, match='is no number from 5 to 100'):
        bench(BenchRequest((tmp_path,)), shares='100,x')


def test_parameters_of_an_optimiser_that_saves_nothing_exist() -> None:
    parameters = ConfigurationOptimizerParameters()
    for name in without_saving():
        of: object = parameters
        for part in name.split('.'):
            of = getattr(of, part)
