"""How many there were, as a range."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hand_made_walkers import observed, walker

from mmedge_ros.data_types import NS_PER_S
from mmedge_ros.questions.counting import COVERAGE, CountParameters, count_facts, count_range

_END = 10 * NS_PER_S


def test_a_person_whose_track_breaks_twice_is_one_group_of_three_ids() -> None:
    seen = observed(walker(1, 0.0, 3.0), walker(2, 3.3, 6.0), walker(3, 6.3, 10.0))
    facts = count_facts(seen, seen.tracks, 0, _END)
    assert (facts.ids, facts.groups, facts.brief) == (3, 1, 0)
    assert (facts.most, facts.median, facts.seconds, facts.unseen) == (1, 1.0, 10.0, 0.0)


def test_the_range_is_about_those_who_were_seen_and_says_how_often_it_holds() -> None:
    seen = observed(*(walker(i, 0.0, 10.0, place=(10.0, 5.0 * i)) for i in range(4)))
    said = count_range(seen, seen.tracks, 0, _END)
    assert said.low <= said.best <= said.high
    assert said.low <= 4 <= said.high
    assert said.coverage == COVERAGE


def test_more_people_give_a_higher_range() -> None:
    few, many = (
        observed(*(walker(i, 0.0, 10.0, place=(10.0, 5.0 * i)) for i in range(count)))
        for count in (1, 8)
    )
    less, more = (count_range(seen, seen.tracks, 0, _END) for seen in (few, many))
    assert (less.low, less.high) < (more.low, more.high)
    assert less.high < more.best


def test_only_tracks_seen_in_the_span_count() -> None:
    seen = observed(walker(1, 0.0, 2.0), walker(2, 5.0, 10.0, place=(40.0, 0.0)))
    assert count_facts(seen, seen.tracks, 0, 2 * NS_PER_S).ids == 1
    assert count_facts(seen, seen.tracks, 3 * NS_PER_S, 4 * NS_PER_S).ids == 0


def test_what_lasts_less_than_half_a_second_is_brief_but_not_what_the_span_cuts_off() -> None:
    seen = observed(walker(1, 0.0, 0.3), walker(2, 1.8, 6.0, place=(40.0, 0.0)))
    facts = count_facts(seen, seen.tracks, 0, 2 * NS_PER_S)
    assert (facts.groups, facts.brief) == (1, 1)


def test_nobody_seen_is_not_surely_nobody_there_and_never_fewer_than_none() -> None:
    seen = observed()
    said = count_range(seen, (), 0, _END)
    assert said.low == 0
    assert said.high >= said.best >= 0


def test_where_the_camera_sent_little_no_coverage_is_stated() -> None:
    seen = observed(*(walker(i, 0.0, 0.9, place=(10.0, 5.0 * i)) for i in range(5)))
    for seconds, coverage in ((4, COVERAGE), (1, 0.0)):
        away = replace(seen, camera=seen.stamps_ns <= seconds * NS_PER_S)
        assert count_range(away, away.tracks, 0, _END).coverage == coverage


def test_true_tracks_are_counted_exactly_with_the_parameters_for_them() -> None:
    seen = observed(walker(1, 0.0, 2.0), walker(2, 1.8, 6.0, place=(40.0, 0.0)))
    said = count_range(seen, seen.tracks, 0, _END, CountParameters())
    assert (said.low, said.best, said.high) == (2, 2, 2)


def test_a_span_outside_the_flight_or_of_no_length_is_answered() -> None:
    seen = observed(walker(1, 0.0, 10.0))
    facts = count_facts(seen, seen.tracks, 20 * NS_PER_S, 30 * NS_PER_S)
    assert (facts.ids, facts.unseen) == (0, 1.0)
    assert count_facts(seen, seen.tracks, NS_PER_S, NS_PER_S).most == 1
    nothing = replace(seen, stamps_ns=np.zeros(0, np.int64), camera=np.zeros(0, bool))
    assert count_range(nothing, nothing.tracks, 0, _END).low == 0


def test_in_a_longer_span_than_was_judged_no_coverage_is_stated() -> None:
    seen = observed(walker(1, 0.0, 30.0))
    assert count_range(seen, seen.tracks, 0, 20 * NS_PER_S).coverage == 0.0
    assert count_range(seen, seen.tracks, 0, _END).coverage == COVERAGE
