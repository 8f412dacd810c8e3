"""What flights beside a language model are judged by, written down by hand."""

from __future__ import annotations

import math

import pytest

from mmedge_lab.rivals.mmedge.described_flight import (
    DescribedFlight,
    flight_figures,
    least_feasible,
    limits_at,
)
from mmedge_ros.configuration.configuration_space import ConfigurationSpace, ModalityOptions
from mmedge_ros.configuration.profiling import Phase, PhaseSamples
from mmedge_ros.data_types import NS_PER_S, Configuration, Decision
from mmedge_ros.records.run_record import RunRecord

SPACE = ConfigurationSpace([ModalityOptions('camera', (10.0, 30.0), ('small', 'large'), '')])
ZERO_NS = 1_000 * NS_PER_S
TOTAL, USUAL, LEAST = 1.0, 0.1, 0.03


def at(seconds: float) -> int:
    return ZERO_NS + round(seconds * NS_PER_S)


def said(
    seconds: float, takes: str, sentences: int = 9, newest: str = '960.0'
) -> tuple[int, dict[str, str]]:
    figures = {'sentences': str(sentences), 'newest sentence (ms)': newest}
    return at(seconds), {**figures, 'count takes (ms, 95 %)': takes}


def flown(latencies: list[float], *statuses: tuple[int, dict[str, str]]) -> DescribedFlight:
    """A flight with a decision every 0.1 s from its beginning; none where latency is NaN."""
    record = RunRecord('a flight', 'live', 0.1, 0.5, 0.1)
    for number, latency in enumerate(latencies):
        end_ns = at(number / 10)
        published_ns = end_ns + round(0.0 if math.isnan(latency) else latency * NS_PER_S)
        if not math.isnan(latency):
            record.decisions.append(
                Decision(end_ns, end_ns, 'odom', (), {}, published_ns=published_ns)
            )
    record.configurations = [
        Configuration(1, at(-1.0), SPACE.parts(3), 0.1, predicted_accuracy=0.6),
        Configuration(2, at(9.05), SPACE.parts(0), 0.1, predicted_accuracy=0.4),
    ]
    return DescribedFlight(record, statuses)


def test_the_limit_is_what_sentences_leave_and_a_shorter_one_holds_after_two_seconds() -> None:
    flight = flown([], said(1.0, 'nan'), said(5.0, '950.0'), said(8.0, '700.0'))
    ends = [at(seconds) for seconds in (0.0, 2.0, 5.5, 6.9, 7.1, 7.9, 8.0)]
    assert limits_at(flight, ends, TOTAL, USUAL).tolist() == pytest.approx(
        [USUAL, USUAL, USUAL, USUAL, 0.05, 0.05, USUAL]
    )


def test_late_and_missing_decisions_count_where_the_oracle_says_the_limit_is_feasible() -> None:
    latencies = [0.2] * 70 + [0.04] * 17 + [0.06, math.nan, 0.04]
    figures = flight_figures(flown(latencies, said(0.0, '950.0')), TOTAL, USUAL, LEAST)
    assert (figures['windows'], figures['feasible']) == (20, 20)
    assert figures['in_time'] == 0.9
    assert (figures['shortened'], figures['in_time_shortened']) == (1.0, 0.9)
    assert (figures['limit_ms'], figures['sentence_ms']) == (50.0, 950.0)


def test_each_sentence_counts_once_by_when_it_came_after_its_window() -> None:
    rows = [('nan', 0), ('950.0', 1), ('950.0', 1), ('1010.0', 2), ('980.0', 4)]
    statuses = [said(n, 'nan', number, newest) for n, (newest, number) in enumerate(rows)]
    figures = flight_figures(flown([0.04] * 90, *statuses), TOTAL, USUAL, LEAST)
    assert (figures['sentences'], figures['sentences_in_time']) == (4, 0.6667)


def test_limits_that_no_fixed_configuration_keeps_do_not_count() -> None:
    figures = flight_figures(flown([0.04] * 90, said(0.0, '990.0')), TOTAL, USUAL, LEAST)
    assert (figures['feasible'], figures['in_time']) == (0, None)


def test_configurations_are_reported_by_how_long_they_held_with_the_accuracy_promised() -> None:
    figures = flight_figures(flown([0.04] * 100), TOTAL, USUAL, LEAST)
    assert figures['configurations'] == [
        {'configuration': 'camera 30 Hz large', 'share': 0.7},
        {'configuration': 'camera 10 Hz small', 'share': 0.3},
    ]
    assert figures['predicted_accuracy'] == pytest.approx(0.54)
    assert (figures['sentences'], figures['sentence_ms']) == (0, None)


def test_a_flight_without_decisions_has_no_figures() -> None:
    figures = flight_figures(flown([]), TOTAL, USUAL, LEAST)
    assert (figures['windows'], figures['in_time'], figures['p95_ms']) == (0, None, None)


def test_the_shortest_feasible_limit_is_that_of_the_fastest_fixed_configuration() -> None:
    fast, slow = (PhaseSamples(latencies=[0.01 * n] * 98 + [1.0] * 2) for n in (2, 5))
    one, other = (Phase(SPACE.parts(index), is_check=True) for index in (0, 3))
    assert least_feasible([(one, fast), (other, slow)]) == pytest.approx(0.02)
    assert least_feasible([]) == math.inf
