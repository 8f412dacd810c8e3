"""What a report says first: how many people there were, how they were followed, what was amiss."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hand_made_truth import BOX, decided, film, moved, run, scene, track, true_person

from mmedge_ros.core.data_types import NS_PER_S, Decision, Novelty
from mmedge_ros.core.run_record import RunRecord, UnitCounts
from mmedge_ros.replay.ground_truth import GroundTruth
from mmedge_ros.report.glance import limits, sentences
from mmedge_ros.report.report import report_of

HERE, THERE, ELSEWHERE = (10.0, 0.0, 0.9), (10.0, 6.0, 0.9), (30.0, -9.0, 0.9)


def two_people() -> GroundTruth:
    return film(
        lambda ms: [
            true_person(1, BOX, (10.0, 0.0, 0.0)),
            true_person(2, moved(BOX, 150.0), (10.0, 6.0, 0.0)),
        ]
    )


def glance(decisions: list[Decision], truth: GroundTruth | None = None) -> dict[str, Any]:
    result: dict[str, Any] = report_of(run(decisions, truth))['at_a_glance']
    return result


def counts(decisions: list[Decision], truth: GroundTruth | None = None) -> tuple[Any, ...]:
    result = glance(decisions, truth)
    keys = ('people', 'mostly_followed', 'partly_followed', 'hardly_followed', 'matched_ids')
    return tuple(result[key] for key in keys)


def first_followed(windows: int) -> list[Decision]:
    """Ten windows in which the second person always has a track, the first in so many."""
    return [
        decided(100 * i, *([track(1, BOX, HERE)] if i < windows else []), track(2, None, THERE))
        for i in range(10)
    ]


@pytest.mark.parametrize(
    ('windows', 'expected'),
    [
        (10, (2, 2, 0, 0, 2)),
        (8, (2, 2, 0, 0, 2)),
        (7, (2, 1, 1, 0, 2)),
        (2, (2, 1, 1, 0, 2)),
        (1, (2, 1, 0, 1, 2)),
        (0, (2, 1, 0, 1, 1)),
    ],
)
def test_most_of_the_time_is_four_windows_of_five(windows: int, expected: tuple[int, ...]) -> None:
    assert counts(first_followed(windows), two_people()) == expected


def test_ids_are_those_that_were_with_a_person_and_the_others_are_counted_apart() -> None:
    decisions = [
        decided(
            100 * i, track(i // 5, BOX, HERE), track(7, None, THERE), track(8, None, ELSEWHERE)
        )
        for i in range(10)
    ]
    result = glance(decisions, two_people())
    assert (result['matched_ids'], result['unmatched_ids'], result['ids']) == (3, 1, 4)
    assert result['sentences'][0] == (
        '2 people came into view; all were followed for most of the time, under 3 ids.'
    )
    assert result['sentences'][1] == '1 more track matched nobody.'


def test_windows_without_a_decision_count_as_not_followed() -> None:
    both = [decided(100 * i, track(1, BOX, HERE), track(2, None, THERE)) for i in range(11)]
    assert counts(both, two_people())[:2] == (2, 2)
    assert counts([*both[:4], both[-1]], two_people())[:3] == (2, 0, 2)


def test_people_out_of_view_are_not_counted() -> None:
    truth = film(lambda ms: [true_person(1), true_person(2, None), true_person(3, visibility=0.3)])
    assert glance([decided(100, track(1, BOX, HERE))], truth)['people'] == 1


def test_where_places_cannot_be_compared_nothing_is_said_about_following() -> None:
    truth = GroundTruth(
        [scene(ms, true_person(1), ego=None, frame_id='map') for ms in (0, 20, 40)]
    )
    result = glance([decided(20, track())], truth)
    assert (result['people'], result['mostly_followed']) == (1, None)
    assert result['sentences'][0] == (
        '1 person came into view; how long each was followed is not known.'
    )


@pytest.mark.parametrize(
    ('figures', 'words'),
    [
        ((6, 5, 1, 0, 8, 0), '6 people came into view; 5 were followed for most of the time, 1 '
         'for part of the time, under 8 ids.'),
        ((3, 1, 1, 1, 2, 0), '3 people came into view; 1 was followed for most of the time, 1 for '
         'part of the time, 1 hardly or not at all, under 2 ids.'),
        ((2, 0, 2, 0, 1, 0), '2 people came into view; all were followed for part of the time, '
         'under 1 id.'),
        ((1, 1, 0, 0, 1, 0), '1 person came into view; this person was followed for most of the '
         'time, under 1 id.'),
        ((4, 0, 0, 4, 0, 0), '4 people came into view; nobody was followed.'),
        ((0, 0, 0, 0, 0, 2), 'Nobody came into view.'),
    ],
)  # fmt: skip
def test_people_are_said_in_words(figures: tuple[int, ...], words: str) -> None:
    report = report_of(run([decided(100, track())], two_people()))
    keys = ('people', 'mostly_followed', 'partly_followed', 'hardly_followed')
    report['at_a_glance'] |= zip((*keys, 'matched_ids', 'unmatched_ids'), figures, strict=True)
    assert sentences(report)[0] == words


def test_without_ground_truth_no_more_is_said_than_is_known() -> None:
    decisions = [
        decided(100, track(1, BOX, HERE), track(2, None, THERE)),
        decided(200, track(3, BOX, HERE), track(4, None, HERE, label='moving')),
        decided(300, track(3, BOX, HERE), replace(track(5, None, THERE), age=0.7)),
    ]
    report = report_of(replace(run(decisions), duration=20.3))
    assert report['at_a_glance']['people'] is None
    said = report['at_a_glance']['sentences']
    assert said[0] == 'Up to 2 people were tracked at once, under 4 ids in 20 s.'
    assert 'm off' not in ' '.join(said)
    assert said[-1].startswith('This recording has no ground truth')


@pytest.mark.parametrize(
    ('published', 'words'),
    [(114.4, '14 ms after'), (100.4, 'less than 1 ms after'), (88.0, '12 ms before')],
)
def test_the_latency_is_said_for_people(published: float, words: str) -> None:
    report = report_of(run([decided(100, track(), state=80, published=published)]))
    said = ' '.join(sentences(report))
    assert f'An answer came every 100 ms, typically {words} its window’s end' in said


def test_what_was_new_in_view_is_said_with_its_time_and_not_all_of_it() -> None:
    record = run([decided(100, track())])
    end_ns = record.decisions[0].window_end_ns
    seen = [
        Novelty(end_ns + n * NS_PER_S, 'odom', n, label, 0.9, np.zeros(3), 'new')
        for n, label in enumerate(['person', 'dog', 'car', 'dog', 'car', 'dog', 'car'])
    ]
    assert 'New in view' not in ' '.join(report_of(record)['at_a_glance']['sentences'])
    report = report_of(replace(record, novelties=seen))
    assert (
        'New in view, after none was there for a while: person (0.0 s), dog (1.0 s), car (2.0 s), '
        'dog (3.0 s), car (4.0 s) and 2 more.'
    ) in report['at_a_glance']['sentences']
    assert len(report['recognition']['novelties']) == 7


def test_a_run_that_decided_nothing_says_so(empty_run: RunRecord) -> None:
    report = report_of(empty_run)
    assert report['at_a_glance']['sentences'] == [
        'No answer was given, so that there is nothing to say about people.'
    ]
    assert [limit.what for limit in limits(report)] == [
        'No pictures were received.',
        'No radar scans were received.',
    ]


def lacking(build_run: Callable[..., RunRecord], **changes: Any) -> list[str]:
    record = replace(build_run(2.0), dropped=0, **changes)
    return [limit['what'] for limit in report_of(record)['at_a_glance']['limits']]


def test_a_sound_run_lacks_nothing(build_run: Callable[..., RunRecord]) -> None:
    sound = {'camera': UnitCounts(received=40), 'radar': UnitCounts(received=40)}
    assert lacking(build_run, units=sound) == []


def test_what_was_missing_is_said_with_a_remedy(build_run: Callable[..., RunRecord]) -> None:
    units = {'camera': UnitCounts(received=40, dropped=10, failed=2, lost=3)}
    said = lacking(build_run, units=units)
    assert said == [
        '25 % of the pictures were dropped: encoding took too long.',
        '2 of 40 pictures could not be decoded.',
        '3 pictures got lost on the way to their encoder.',
        'No radar scans were received.',
    ]
    record = replace(build_run(2.0), units=units, dropped=7, deadline=0.0)
    every = limits(report_of(record))
    assert all(limit.remedy for limit in every)
    assert any(
        limit.what == f'7 of {record.windows} windows brought no answer.' for limit in every
    )
    assert any('came after the deadline of 0 ms' in limit.what for limit in every)


def test_a_silent_sensor_is_said_once(build_run: Callable[..., RunRecord]) -> None:
    sound = {'camera': UnitCounts(received=40), 'radar': UnitCounts(received=40)}
    silent = [replace(d, lost=('radar',)) for d in build_run(2.0).decisions]
    what = '100 % of the windows held nothing of the radar.'
    assert lacking(build_run, units=sound, decisions=silent) == [what]
    known = ['radar: nothing usable in the last 4.1 s']
    assert lacking(build_run, units=sound, decisions=silent, problems=known) == []
    camera = {'camera': UnitCounts(received=40)}
    assert lacking(build_run, units=camera, problems=['the recording has no radar']) == []


def test_a_share_is_all_only_where_none_is_left(build_run):
    report = report_of(build_run(1.0)) | {'deadline_miss_rate': 0.998}
    assert any(limit.what.startswith('99 % of the answers') for limit in limits(report))


def test_it_is_said_what_found_the_people_and_what_it_learned_from() -> None:
    record = run(first_followed(10), two_people())
    record.software = {'detector': 'walkers, which learned from simulated pictures'}
    said = report_of(record)['at_a_glance']['sentences']
    assert said[-1] == 'People were found by walkers, which learned from simulated pictures.'
