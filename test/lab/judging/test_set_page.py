"""The page of a set: every flight with what happened in it, and a link that stays beside it."""

from __future__ import annotations

from typing import Any

import pytest
from hand_made_truth import BOX, decided, film, run, track, true_person
from page_outline import PageOutline

from mmedge_lab.judging.accuracy_table import accuracy_table
from mmedge_lab.judging.set_page import render_set_page, set_words, write_set_page
from mmedge_ros.report.report import report_of


def flight(followed: bool = True) -> dict[str, Any]:
    truth = film(lambda ms: [true_person(1)])
    tracks = [track(1, BOX)] if followed else []
    return report_of(run([decided(100 * n, *tracks) for n in range(5)], truth))


def page_of(reports: dict[str, dict[str, Any]]) -> PageOutline:
    return PageOutline(render_set_page('test', reports, accuracy_table(list(reports.values()))))


def test_people_of_all_flights_are_added() -> None:
    words = set_words({'a': flight(), 'b': flight(), 'c': flight(followed=False)})
    assert words == (
        '3 people came into view; 2 were followed for most of the time, 1 hardly or not at all, '
        'under 2 ids.'
    )


def test_every_flight_is_there_with_its_sentences_and_the_scenarios_with_their_figures() -> None:
    page = page_of({'first': flight(), 'second': flight(followed=False)})
    assert 'second 1 person came into view; nobody was followed.' in page.words
    assert 'meadow_day_near 2' in page.words
    links = [value for _, name, value in page.attributes if name == 'href']
    assert './first/report.html' in links


@pytest.mark.parametrize(
    'name',
    ['javascript:alert(1)', '<script>alert(1)</script>', '"><img src=x onerror=y>', 'a b#c?d'],
)
def test_a_hostile_name_of_a_flight_stays_a_name(name: str) -> None:
    page = page_of({name: flight()})
    assert name in page.text
    (link,) = [v for _, n, v in page.attributes if n == 'href' and v.endswith('report.html')]
    assert link.startswith('./')
    assert not set('<>"?# ') & set(link)


def test_without_ground_truth_the_flights_are_listed_all_the_same() -> None:
    page = page_of({'alone': report_of(run([decided(0, track())]))})
    assert 'how people were followed is not known' in page.words
    assert 'alone Up to 1 person was tracked at once' in page.words
    assert 'Accuracy by scenario' not in page.words


def test_the_page_is_written_beside_the_reports(tmp_path: Any) -> None:
    write_set_page('test', {'a': flight()}, [], tmp_path)
    assert 'came into view' in (tmp_path / 'report.html').read_text()
