"""What is new is announced in time, late, or not at all, and what is announced may be false."""

from __future__ import annotations

import math

import numpy as np

from mmedge_lab.judging.novelty_accuracy import NoveltyCounts, novelty_counts
from mmedge_ros.data_types import NS_PER_S, Novelty
from mmedge_ros.report.appearances import Appearance


def appears(label: str, begin: float, end: float, class_away: float = math.inf) -> Appearance:
    return Appearance(
        1, label, round(begin * NS_PER_S), round(end * NS_PER_S), math.inf, class_away
    )


def told(label: str, seconds: float) -> Novelty:
    return Novelty(round(seconds * NS_PER_S), 'odom', 1, label, 0.9, np.zeros(3), 'new')


def counts(known: list[Appearance], novelties: list[Novelty]) -> NoveltyCounts:
    return novelty_counts(known, novelties, 2.0)


def test_an_announcement_within_a_second_is_in_time_and_a_later_one_is_late() -> None:
    known = [appears('dog', 1.0, 9.0), appears('car', 1.0, 9.0)]
    found = counts(known, [told('dog', 1.6), told('car', 4.0)])
    assert (found.in_time, found.late, found.missed, found.false) == (1, 1, 0, 0)
    assert found.delays == (0.6, 3.0)


def test_several_of_a_class_that_come_at_once_are_announced_by_one_novelty() -> None:
    found = counts([appears('dog', 1.0, 9.0), appears('dog', 1.0, 5.0)], [told('dog', 1.5)])
    assert (found.in_time, found.missed, found.false) == (1, 0, 0)


def test_what_nobody_announces_is_missed() -> None:
    assert counts([appears('dog', 1.0, 9.0)], []).missed == 1


def test_a_novelty_of_what_is_not_there_or_not_new_is_false() -> None:
    known = [appears('dog', 1.0, 9.0), appears('dog', 5.0, 9.0, class_away=0.0)]
    found = counts(known, [told('dog', 1.5), told('dog', 5.5), told('car', 2.0)])
    assert (found.in_time, found.false) == (1, 2)


def test_one_that_comes_before_its_object_is_in_view_is_false() -> None:
    found = counts([appears('dog', 5.0, 9.0)], [told('dog', 4.5)])
    assert (found.missed, found.false) == (1, 1)


def test_the_class_may_be_announced_by_another_object_of_it_before_all_are_gone() -> None:
    known = [appears('dog', 1.0, 2.0), appears('dog', 30.0, 40.0, class_away=28.0)]
    found = counts(known, [told('dog', 31.0)])
    assert (found.late, found.false) == (1, 0)


def test_a_class_that_comes_back_after_a_minute_is_new_again() -> None:
    known = [appears('dog', 1.0, 2.0), appears('dog', 100.0, 110.0, class_away=98.0)]
    found = counts(known, [told('dog', 1.5), told('dog', 100.5)])
    assert (found.in_time, found.false) == (2, 0)


def test_a_report_has_shares_and_no_figure_where_there_is_nothing_to_divide_by() -> None:
    report = counts([appears('dog', 1.0, 9.0)], [told('dog', 1.5), told('car', 2.0)]).report()
    assert (report['share_in_time'], report['false_per_minute']) == (1.0, 0.5)
    nothing = novelty_counts([], [], 0.0).report()
    assert nothing['share_in_time'] is nothing['false_per_minute'] is None
