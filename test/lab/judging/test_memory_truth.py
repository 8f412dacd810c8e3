"""What a flight memory should find: objects in view, and words that single them out."""

from __future__ import annotations

from collections import Counter

import pytest
from hand_made_truth import BOX, scene, true_person

from mmedge_lab.judging.memory_truth import (
    NOBODY,
    RememberedObject,
    cast_digest,
    galleries,
    heights_in_view,
    owner_of,
    questions,
    scrubbed_until,
)
from mmedge_lab.simulation.appearance import MoverLook
from mmedge_lab.simulation.build import build_world
from mmedge_ros.core.data_types import Box
from mmedge_ros.replay.ground_truth import GroundTruth


def high(px: float) -> Box:
    return Box(100.0, 100.0, 120.0, 100.0 + px)


def test_objects_count_by_the_largest_height_at_which_they_were_in_view() -> None:
    scenes = [
        scene(0.0, true_person(1, high(20.0)), true_person(2, high(13.9)), true_person(3, None)),
        scene(20.0, true_person(1, high(35.0)), true_person(4, high(60.0), visibility=0.49)),
        scene(40.0, true_person(1, high(25.0)), true_person(5, high(14.0), visibility=0.5)),
    ]
    assert heights_in_view(scenes) == {1: 35.0, 5: 14.0}


def test_a_view_shows_the_object_that_it_overlaps_most() -> None:
    truth = GroundTruth(
        [
            scene(
                0.0,
                true_person(3, None),
                true_person(1, Box(0.0, 0.0, 10.0, 20.0)),
                true_person(2, Box(4.0, 0.0, 14.0, 20.0)),
            )
        ]
    )
    frame = truth.frame_at(truth.stamps_ns[0])
    assert owner_of(frame, Box(1.0, 0.0, 11.0, 20.0)) == 1
    assert owner_of(frame, Box(4.0, 0.0, 14.0, 20.0)) == 2
    # A third and no more: IoU 10 / 30 of a box that is 10 px to the right, then less.
    assert owner_of(frame, Box(9.0, 0.0, 19.0, 20.0)) == 2
    assert owner_of(frame, Box(10.0, 0.0, 20.0, 20.0)) == NOBODY
    assert owner_of(None, BOX) == NOBODY


def seen(number: int, look: MoverLook) -> RememberedObject:
    return RememberedObject('flight', '1', 'day', number, look, 40.0)


@pytest.mark.parametrize(('size', 'is_asked'), [(99, False), (100, True)])
def test_words_that_fit_more_than_three_in_a_hundred_are_no_question(
    size: int, is_asked: bool
) -> None:
    red = MoverLook('car', 'red')
    gallery = [seen(n, red if n < 3 else MoverLook('dog', 'brown')) for n in range(size)]
    asked = [(question.text, len(question.fitting)) for question in questions(gallery)]
    assert asked == ([('red car', 3)] if is_asked else [])


def test_a_gallery_has_one_flight_of_each_seed_and_all_flights_are_used() -> None:
    seeds = {f'{light}_{seed}': seed for seed in '12' for light in ('day', 'dusk', 'fog')}
    seeds['night_3'] = '3'
    drawn = galleries(seeds)
    assert len(drawn) == 3
    assert all(sorted(seeds[name] for name in gallery) == ['1', '2', '3'] for gallery in drawn)
    used = Counter(name for gallery in drawn for name in gallery)
    assert set(used) == set(seeds)
    assert max(count for name, count in used.items() if name != 'night_3') == 1


def test_flights_of_a_seed_share_their_cast_in_every_light_and_no_other_distance() -> None:
    names = ('street_day_near', 'street_night_near', 'street_day_far')
    day, night, far = (cast_digest(build_world(name, 5, 2.0).movers) for name in names)
    assert day == night
    assert day != far


def test_who_scrubs_sees_an_object_in_the_first_picture_of_a_second_that_shows_it() -> None:
    scenes = [
        scene(
            1000.0 * seconds,
            true_person(1, high(40.0) if seconds >= 1.2 else None),
            true_person(2, high(8.0)),
            true_person(3, high(40.0)),
        )
        for seconds in (0.0, 0.5, 1.0, 1.5, 2.0, 2.5)
    ]
    assert scrubbed_until(scenes) == {3: 1, 1: 3}
