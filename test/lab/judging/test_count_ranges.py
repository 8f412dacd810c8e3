"""What is judged of stated ranges, on flights made by hand."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hand_made_walkers import observed, walker

from mmedge_lab.judging.count_cases import CountedFlight, true_observations
from mmedge_lab.judging.count_ranges import (
    IDS,
    OURS,
    Span,
    broken_off,
    interval_scores,
    judged,
    range_figures,
    true_count,
    window_spans,
    windows_of,
)
from mmedge_ros.data_types import NS_PER_S
from mmedge_ros.questions.observations import ObservedTrack


def flight(seed: str, *tracks: ObservedTrack, people: int) -> CountedFlight:
    """Ten seconds in which so many people stand apart in view, and these tracks are of them."""
    stamps = np.arange(101) * (NS_PER_S // 10)
    sights = [(stamp, person) for stamp in stamps for person in range(people)]
    places = [(10.0, 5.0 * person, 0.0) for _ in stamps for person in range(people)]
    return CountedFlight(
        f'flight {seed}',
        seed,
        'day',
        'near',
        observed(*tracks),
        {track.id: 0 for track in tracks},
        np.array(sights, np.int64).reshape(-1, 2),
        np.array(places, float).reshape(-1, 3),
        stamps,
    )


def test_windows_of_two_five_and_ten_seconds_lie_half_over_each_other() -> None:
    spans = window_spans(flight('1', people=1))
    lengths = [(end - begin) // NS_PER_S for begin, end in spans]
    assert [lengths.count(seconds) for seconds in (2, 5, 10)] == [9, 3, 1]
    assert spans[1][0] - spans[0][0] == NS_PER_S


def test_the_interval_score_is_the_width_and_twenty_times_what_lies_outside() -> None:
    spans = np.array([[2.0, 5.0], [2.0, 5.0], [2.0, 5.0]])
    assert interval_scores(spans, np.array([3.0, 6.0, 1.0])) == pytest.approx([3.0, 23.0, 23.0])


def test_people_are_counted_once_however_long_they_are_in_view() -> None:
    assert true_count(flight('1', people=3), 0, 10 * NS_PER_S) == 3
    assert true_count(flight('1', people=0), 0, 10 * NS_PER_S) == 0


def test_true_tracks_are_counted_rightly() -> None:
    seen = flight('1', people=3)
    assert sorted(track.id for track in true_observations(seen).tracks) == [0, 1, 2]
    window = windows_of(seen)[0]
    assert (window.true_facts.ids, window.true_facts.groups, window.truth) == (3, 3, 3)


def test_tracks_that_are_broken_off_are_pieces_with_ids_of_their_own() -> None:
    seen = observed(walker(1, 0.0, 10.0), walker(2, 0.0, 10.0, place=(40.0, 0.0)))
    pieces = broken_off(seen).tracks
    assert len({piece.id for piece in pieces}) == len(pieces) > 2
    assert not {1, 2} & {piece.id for piece in pieces}
    first = [piece for piece in pieces if piece.positions[0, 0] == 10.0]
    gaps = [b.begin_ns - a.end_ns for a, b in pairwise(first)]
    assert all(0.3 * NS_PER_S <= gap <= 2.3 * NS_PER_S for gap in gaps)


def test_coverage_and_width_are_means_over_windows() -> None:
    windows = windows_of(flight('1', walker(1, 0.0, 10.0), people=1))
    right, wrong = Span(0, 2, 1), Span(2, 4, 3)
    found = judged(windows, lambda window: right if window.seconds < 5.0 else wrong)
    assert found.mean('coverage').value == pytest.approx(9 / 13)
    assert found.mean('width').value == 2.0
    assert found.mean('bias').value == pytest.approx(2.0 * 4 / 13)


def test_a_report_compares_rivals_in_the_same_windows_by_seed() -> None:
    broken = [walker(i, float(i), i + 0.8, velocity=(0.0, 0.0)) for i in range(10)]
    flights = [flight(str(seed), *broken, people=1) for seed in range(3)]
    report = range_figures([window for one in flights for window in windows_of(one)])
    rows = report['rows']
    assert report['windows'] == 39
    assert rows[IDS]['error']['value'] > rows[OURS]['error']['value']
    assert rows[OURS]['score_of_range_less_by']['value'] == 0.0
    assert rows[IDS]['score_of_range_less_by']['low'] > 0.0
    assert list(report['strata']['seconds']) == ['2.0', '5.0', '10.0']
