"""What counts as found in a flight memory, and how answers become figures."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hand_made_memories import View, car, crowd, looking, remembered, rival_of

from mmedge_lab.judging import EvaluationError
from mmedge_lab.judging.memory_judging import (
    LOOKS,
    MIXED,
    NO_VIEW,
    OTHER_LABEL,
    Hits,
    asked_in_words,
    causes,
    examples_of,
    hits_by_example,
    hits_by_words,
    refined_hits,
)
from mmedge_lab.judging.memory_rivals import RANDOM
from mmedge_lab.judging.memory_truth import NOBODY

RED, BLUE, GREEN = looking('red'), looking('blue'), looking('green')


def answers(folder: Path, colours: tuple[str, ...], *views: View) -> dict[str, tuple[bool, bool]]:
    """Whether cars of colours, numbered from 1, are found first and among the first ten."""
    flight = remembered(folder, 'flight', crowd(40, *colours), views)
    asked = asked_in_words([flight])
    hits = hits_by_words([flight], [rival_of(flight)], asked).by_rival['ours']
    return {
        one.question.text: (bool(first), bool(ten))
        for one, (first, ten) in zip(asked, hits, strict=True)
    }


def test_a_moment_whose_view_lies_on_what_looks_so_is_a_hit(tmp_path: Path) -> None:
    found = answers(tmp_path, ('red', 'blue'), View(1, 1, RED), View(2, 2, BLUE))
    assert found == {'red car': (True, True), 'blue car': (True, True)}


def test_what_was_never_detected_is_asked_for_and_missed(tmp_path: Path) -> None:
    found = answers(tmp_path, ('red', 'blue'), View(1, 1, RED))
    assert found == {'red car': (True, True), 'blue car': (False, False)}


def test_a_view_of_something_else_or_of_nothing_is_no_hit(tmp_path: Path) -> None:
    views = (View(1, 2, RED), View(2, NOBODY, looking('red', 0.9)))
    assert answers(tmp_path, ('red', 'blue'), *views)['red car'] == (False, False)


def test_the_views_of_a_track_take_one_place_of_ten(tmp_path: Path) -> None:
    wrong = [View(1, NOBODY, RED) for _ in range(12)]
    right = View(2, 1, looking('red', 0.5))
    assert answers(tmp_path, ('red',), *wrong, right)['red car'] == (False, True)


def test_the_eleventh_moment_is_too_late(tmp_path: Path) -> None:
    wrong = [View(track, NOBODY, RED) for track in range(1, 11)]
    right = View(11, 1, looking('red', 0.5))
    assert answers(tmp_path, ('red',), *wrong, right)['red car'] == (False, False)
    assert answers(tmp_path / 'nine', ('red',), *wrong[:9], right)['red car'] == (False, True)


def test_of_a_moment_the_view_that_is_shown_must_fit(tmp_path: Path) -> None:
    views = (View(1, NOBODY, RED), View(1, 1, looking('red', 0.5)))
    assert answers(tmp_path, ('red',), *views)['red car'] == (False, False)


def test_what_is_stored_under_another_label_is_not_found_by_its_own(tmp_path: Path) -> None:
    views = (View(1, NOBODY, RED), View(2, 1, looking('red', 0.5), 'person'))
    flight = remembered(tmp_path, 'flight', crowd(40, 'red'), views)
    asked, rival = asked_in_words([flight]), rival_of(flight)
    rivals = [rival, replace(rival, name='unfiltered', filters=False)]
    hits = hits_by_words([flight], rivals, asked).by_rival
    assert hits['ours'].tolist() == [[0.0, 0.0]]
    assert hits['unfiltered'].tolist() == [[0.0, 1.0]]


def test_words_for_several_objects_count_once(tmp_path: Path) -> None:
    flight = remembered(tmp_path, 'f', crowd(100, 'red', 'red', 'blue'), [View(1, 2, RED)])
    asked = asked_in_words([flight])
    assert [(one.question.text, one.weight) for one in asked] == [
        ('blue car', 1.0),
        ('red car', 0.5),
        ('red car', 0.5),
    ]
    hits = hits_by_words([flight], [rival_of(flight)], asked)
    assert hits.share('ours', 1).value == pytest.approx(0.5)


def test_an_object_that_is_in_several_galleries_counts_once(tmp_path: Path) -> None:
    day, night = (
        remembered(tmp_path, light, crowd(20, 'red'), [View(1, 1, RED)], '1', light)
        for light in ('day', 'night')
    )
    only = remembered(tmp_path, 'only', crowd(20, 'blue'), [View(1, 1, BLUE)], '2')
    weights = [(one.target.flight, one.weight) for one in asked_in_words([day, night, only])]
    assert sorted(weights) == [('day', 1.0), ('night', 1.0), ('only', 0.5), ('only', 0.5)]


def test_galleries_in_which_no_words_single_anything_out_are_refused(tmp_path: Path) -> None:
    flight = remembered(tmp_path, 'flight', crowd(33, 'red'), [View(1, 1, RED)])
    with pytest.raises(EvaluationError, match='galleries of 33 objects'):
        asked_in_words([flight])


def test_lots_are_drawn_again_and_again_for_a_random_order(tmp_path: Path) -> None:
    views = [View(track, 1 if track == 1 else NOBODY, RED) for track in range(1, 21)]
    flight = remembered(tmp_path, 'flight', crowd(40, 'red'), views)
    rival = rival_of(flight, name=RANDOM)
    rng = np.random.default_rng(4)
    rival.scorer.scores = lambda _query, vectors: rng.random(len(vectors))  # type: ignore[method-assign]
    hits = hits_by_words([flight], [rival], asked_in_words([flight])).by_rival[RANDOM]
    assert 0.2 < hits[0, 1] < 0.8


def test_each_miss_has_the_first_cause_that_explains_it(tmp_path: Path) -> None:
    colours = ('red', 'blue', 'green', 'white', 'black')
    views = [
        View(1, 2, BLUE, 'person'),
        *(View(2, owner, looking('black')) for owner in (3, NOBODY, NOBODY)),
        View(3, 4, looking('white')),
        *(View(track, NOBODY, looking('black') + GREEN) for track in range(4, 15)),
        View(15, 5, RED),
    ]
    flight = remembered(tmp_path, 'flight', crowd(40, *colours), views)
    found = causes([flight], rival_of(flight), asked_in_words([flight]))
    # Red has no view; blue is stored as a person; green is in a track of others, black in one of
    # its own, and both come after eleven others; white is found.
    assert found == pytest.approx({NO_VIEW: 0.2, OTHER_LABEL: 0.2, MIXED: 0.2, LOOKS: 0.2})


def test_refining_finds_only_what_was_among_the_first_of_the_coarse_order(tmp_path: Path) -> None:
    wrong = [View(track, NOBODY, RED) for track in range(1, 16)]
    flight = remembered(
        tmp_path, 'flight', crowd(40, 'red'), [*wrong, View(16, 1, looking('red', 0.5))]
    )
    better = np.zeros((16, 8), np.float32)
    better[15, 3] = 2.0
    fine, asked = rival_of(flight, name='fine', shift=better), asked_in_words([flight])
    found = refined_hits([flight], rival_of(flight), fine, asked)
    assert {count: hits.tolist() for count, hits in found.items()} == {
        10: [[0.0, 0.0]],
        20: [[1.0, 1.0]],
        50: [[1.0, 1.0]],
    }


def test_an_example_is_looked_for_among_the_flights_of_another_light(tmp_path: Path) -> None:
    looks = {1: car('red'), 2: car('red'), 3: car('blue')}
    day = remembered(tmp_path, 'day', looks, [View(1, 1, RED), View(2, 3, BLUE)])
    night = remembered(
        tmp_path, 'night', looks, [View(1, 2, RED + 0.5 * BLUE), View(2, 1, RED)], light='night'
    )
    others = [
        remembered(tmp_path, f'{light}_2', {1: car('red')}, [View(1, 1, RED)], '2', light)
        for light in ('day', 'night')
    ]
    flights = [day, night, *others]
    asked = [(one.target.flight, one.target.id, one.gallery) for one in examples_of(flights)]
    # Of 2 in the day, and of 3 at night, there is no view to show.
    assert set(asked) == {
        ('day', 1, ('night', 'night_2')),
        ('day', 3, ('night', 'night_2')),
        ('night', 1, ('day', 'day_2')),
        ('night', 2, ('day', 'day_2')),
        ('day_2', 1, ('night_2', 'night')),
        ('night_2', 1, ('day_2', 'day')),
    }
    of = dict(
        zip(
            asked,
            hits_by_example(flights, [rival_of(*flights)], examples_of(flights))
            .by_rival['ours']
            .tolist(),
            strict=True,
        )
    )
    assert of['day', 1, ('night', 'night_2')][1] == 1.0
    # It looks the same and is another car; and this one has no view at night.
    assert of['night', 2, ('day', 'day_2')] == [0.0, 0.0]
    assert of['day', 3, ('night', 'night_2')] == [0.0, 0.0]


def test_figures_are_weighted_means_with_intervals_by_seed() -> None:
    hits = Hits(
        ['1', '1', '2'],
        np.array([1.0, 1.0, 2.0]),
        {
            'ours': np.array([[1.0, 1.0], [0.0, 1.0], [0.0, 1.0]]),
            'other': np.array([[0.0, 1.0], [0.0, 1.0], [0.0, 0.0]]),
        },
    )
    at_one = hits.share('ours', 0)
    assert at_one.value == pytest.approx(0.25)
    assert (at_one.low, at_one.high) == (0.0, 0.5)
    assert hits.difference('ours', 'other', 1).value == pytest.approx(0.5)
    assert hits.ratio('other', 'ours', 1).value == pytest.approx(0.5)
    only_first = hits.share('ours', 0, np.array([True, True, False]))
    assert only_first.value == pytest.approx(0.5)
    assert np.isnan(only_first.low)
