"""docs/standard_sets.md says what is true: a cheap part of it is measured again."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mmedge_ros.lab.simulation.set_statistics import (
    FlightFigures,
    composition,
    flight_row,
    measure_flight,
    page,
)
from mmedge_ros.lab.simulation.standard_sets import STANDARD_SETS

PAGE = Path(__file__).resolve().parents[3] / 'docs' / 'standard_sets.md'


def rows(heading: str) -> dict[str, list[str]]:
    """The rows of the table below a heading of the page, by their first cell."""
    section = PAGE.read_text(encoding='utf-8').split(f'## {heading}', 1)[1].split('\n## ')[0]
    lines = [line.strip('| ').split(' | ') for line in section.splitlines() if '|' in line]
    return {line[0]: line[1:] for line in lines[2:]}


def test_the_page_tells_what_the_sets_are_made_of() -> None:
    written = rows('What they are made of')
    assert written == {name: composition(flights) for name, flights in STANDARD_SETS.items()}


@pytest.mark.parametrize('number', [0, 7])
def test_a_flight_measured_again_is_as_the_page_says(number: int) -> None:
    flight = STANDARD_SETS['validation'][number]
    told = [float(cell) for cell in rows('Validation, flight by flight')[flight.name]]
    people, distance, height, hidden, luma = (
        float(cell) for cell in flight_row(measure_flight(flight))[1:]
    )
    assert people == told[0]
    assert distance == pytest.approx(told[1], abs=0.11)
    assert height == pytest.approx(told[2], abs=1.5)
    assert hidden == pytest.approx(told[3], abs=4.0)
    assert luma == pytest.approx(told[4], abs=4.0)


def test_the_shares_of_each_set_add_up() -> None:
    for heading in (
        'Height of people, % of those at least half visible',
        'Visibility of people, %',
    ):
        for name, cells in rows(heading).items():
            assert name in STANDARD_SETS
            assert sum(map(float, cells)) == pytest.approx(100.0, abs=2.5)


def test_distances_of_the_sets_cover_5_to_50_m() -> None:
    for name, cells in rows('Distance of people, percentiles in m').items():
        values = list(map(float, cells))
        assert values == sorted(values), name
        assert values[0] < (12.5 if name == 'test' else 9.0)
        assert 30.0 < values[-1] < 50.0


def test_a_page_can_be_made_of_flights_in_which_nobody_was_seen() -> None:
    def nobody(index: int) -> FlightFigures:
        flight = STANDARD_SETS['train'][index]
        return FlightFigures(
            flight, np.zeros(0), np.zeros(4), np.full(4, 60.0), 20.0, float('nan'),
            {'person': 2, 'cyclist': 0, 'car': 0, 'dog': 0},
        )  # fmt: skip

    figures = [nobody(index) for index in range(0, 60, 3)]
    text = page({'train': figures, 'validation': figures[:2]})
    assert text.count('| train |') == 5
    assert '-' in flight_row(figures[0])
