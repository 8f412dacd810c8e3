"""A search brings up the moments that fit, says what it could not judge, and denies nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hand_made_moments import HEADER, LENGTH, direction, key_frame, memory_of, view
from hypothesis import given, settings
from hypothesis import strategies as st

from mmedge_ros.data_types import NS_PER_S, Box, FloatArray
from mmedge_ros.memory import FlightMemoryError
from mmedge_ros.memory.moment import (
    DronePose,
    FlightPhase,
    Light,
    MemoryItem,
    Motion,
    Spot,
    Vectors,
)
from mmedge_ros.memory.query import Filters, MemoryQuery, ParsedQuery, read_query
from mmedge_ros.memory.search import SearchResult, search, taps_of
from mmedge_ros.memory.store import MemoryReader
from mmedge_ros.memory.store_file import StoreHeader

RED, BLUE = direction(1.0), direction(0.0, 1.0)
LABELS = ('person', 'car')


class ByFirstValues:
    """Red is the first value of a vector, blue the second."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, int]] = []

    def scores(self, query: ParsedQuery, vectors: Vectors) -> FloatArray:
        self.asked.append((query.text, len(vectors)))
        wanted = [value == 'red' for _, value in query.subject.attributes]
        return np.asarray(vectors[:, 0 if any(wanted) else 1], float)


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Any]:
    """Opens memories with views; they are closed at the end."""
    with ExitStack() as stack:

        def open_one(*items: MemoryItem, name: str = 'flight') -> MemoryReader:
            memory: MemoryReader = memory_of(tmp_path / f'{name}.memory', *items)
            return stack.enter_context(memory)

        yield open_one


def found(
    memories: MemoryReader | list[MemoryReader], text: str = '', limit: int = 10, **filters: Any
) -> SearchResult:
    parsed = read_query(text, LABELS)
    query = MemoryQuery(parsed, filters=Filters(**filters))
    listed = memories if isinstance(memories, list) else [memories]
    return search(listed, query, lambda _header: ByFirstValues(), limit)


def tracks(result: SearchResult) -> list[int]:
    return [moment.shown.item.track_id for moment in result.moments]


# ------------------------------------------------------------------------------- rating


def test_the_best_moments_come_first_with_their_scores(opened: Any) -> None:
    memory = opened(view(1, vector=BLUE), view(2, vector=RED), view(3, vector=direction(1.0, 1.0)))
    result = found(memory, 'red person')
    assert tracks(result) == [2, 3, 1]
    scores = [moment.score for moment in result.moments]
    assert scores == pytest.approx([1.0, 0.707, 0.0], abs=0.05)
    assert (result.rated, result.stored) == (3, 3)
    assert tracks(found(memory, 'red person', limit=1)) == [2]


def test_views_of_a_track_are_one_moment_with_their_mean(opened: Any) -> None:
    memory = opened(
        view(1, 5.0, vector=BLUE),
        view(1, 2.0, vector=RED),
        view(2, 3.0, vector=direction(1.0, 0.9)),
        key_frame(1.0, vector=BLUE),
        key_frame(4.0, vector=BLUE),
    )
    result = found(memory, 'red')
    assert tracks(result) == [2, 1, 0, 0]
    one = result.moments[1]
    assert one.score == pytest.approx(0.5, abs=0.05)
    assert (one.begin_ns, one.end_ns) == (2 * NS_PER_S, 5 * NS_PER_S)
    assert one.shown.item.stamp_ns == 2 * NS_PER_S
    assert [len(moment.views) for moment in result.moments] == [1, 2, 1, 1]


def test_a_track_of_another_run_is_another_moment(tmp_path: Path) -> None:
    memory_of(tmp_path, view(1, vector=RED)).close()
    with memory_of(tmp_path, view(1, vector=BLUE)) as memory:
        result = found(memory, 'red')
        assert [len(moment.views) for moment in result.moments] == [1, 1]


def test_several_flights_are_searched_at_once(opened: Any) -> None:
    one = opened(view(1, vector=RED), view(2, vector=BLUE), name='one')
    two = opened(view(1, vector=direction(1.0, 0.5)), name='two')
    result = found([one, two], 'red')
    assert [(m.flight, m.shown.item.track_id) for m in result.moments] == [
        ('one', 1),
        ('two', 1),
        ('one', 2),
    ]


def test_without_words_moments_come_in_the_order_of_time(opened: Any) -> None:
    memory = opened(view(1, 3.0), view(2, 1.0), view(3, 2.0))
    assert tracks(found(memory)) == [2, 3, 1]
    assert tracks(found(memory, limit=2)) == [2, 3]


def test_examples_find_what_looks_alike(opened: Any) -> None:
    memory = opened(view(1, vector=BLUE), view(2, vector=RED), view(2, vector=direction(3.0, 1.0)))
    examples = taps_of(memory, 3)
    assert examples.shape == (2, LENGTH)
    query = MemoryQuery(examples=examples)
    result = search([memory], query, lambda _header: ByFirstValues())
    assert tracks(result) == [2, 1]
    both = MemoryQuery(read_query('blue person', LABELS), examples=np.stack([BLUE]))
    assert tracks(search([memory], both, lambda _header: ByFirstValues())) == [1, 2]
    with pytest.raises(FlightMemoryError, match='no view 77'):
        taps_of(memory, 77)
    with pytest.raises(FlightMemoryError, match='examples of 3 values'):
        search([memory], MemoryQuery(examples=np.ones((1, 3), np.float32)), lambda _: None)  # type: ignore[arg-type, return-value]


def test_examples_are_compared_by_the_tap_and_words_by_the_vector(opened: Any) -> None:
    memory = opened(view(1, vector=RED, tap=BLUE), view(2, vector=BLUE, tap=RED))
    by_example = search([memory], MemoryQuery(examples=RED[None]), lambda _: ByFirstValues())
    assert tracks(by_example) == [2, 1]
    assert tracks(found(memory, 'red')) == [1, 2]


def test_several_examples_count_as_the_one_object_that_they_show(opened: Any) -> None:
    memory = opened(view(1, vector=RED), view(2, vector=BLUE), view(3, vector=direction(1.0, 1.0)))
    query = MemoryQuery(examples=np.stack([RED, 100.0 * BLUE]))
    result = search([memory], query, lambda _header: ByFirstValues())
    assert tracks(result) == [3, 1, 2]
    assert result.moments[0].score == pytest.approx(1.0, abs=0.05)


def test_words_count_as_much_as_examples_whatever_their_scale(opened: Any) -> None:
    class Tiny:
        def scores(self, query: ParsedQuery, vectors: Vectors) -> FloatArray:
            return 1e-6 * ByFirstValues().scores(query, vectors)

    looks = [direction(1.0, 0.0, 0.0), direction(0.8, 0.0, 0.6), direction(0.0, 0.0, 1.0)]
    memory = opened(*(view(n, vector=look) for n, look in enumerate(looks, 1)))
    query = MemoryQuery(read_query('red'), examples=np.stack([direction(0.0, 0.0, 1.0)]))
    assert tracks(search([memory], query, lambda _header: Tiny()))[0] == 2


def test_the_scorer_is_that_of_the_bundle_and_rates_only_what_passes(opened: Any) -> None:
    memory, scorer, asked = opened(view(1), view(2), view(3, label='car')), ByFirstValues(), []

    def scorer_for(header: StoreHeader) -> ByFirstValues:
        asked.append(header)
        return scorer

    search([memory], MemoryQuery(read_query('red person', LABELS)), scorer_for)
    assert asked == [HEADER]
    assert scorer.asked == [('red person', 2)]


@pytest.mark.parametrize('wrong', [np.zeros(1), np.full(2, np.nan)])
def test_a_scorer_that_fails_is_not_believed(opened: Any, wrong: np.ndarray) -> None:
    class Broken:
        def scores(self, query: ParsedQuery, vectors: Vectors) -> FloatArray:
            return wrong

    with pytest.raises(FlightMemoryError, match='fetch the bundle again'):
        search(
            [opened(view(1), view(2))], MemoryQuery(read_query('red')), lambda _header: Broken()
        )


def test_many_key_frames_stay_behind_what_words_fit(opened: Any) -> None:
    nothing = np.zeros(LENGTH, np.float32)
    frames = [key_frame(float(n), vector=nothing, exit=0) for n in range(12)]
    views = [view(n, vector=direction(1.0, 0.5 * n), exit=3) for n in range(1, 11)]
    assert set(tracks(found(opened(*frames, *views), 'red'))) == set(range(1, 11))


# ------------------------------------------------------------------------------ filters


def test_filters_for_time_track_label_and_place(opened: Any) -> None:
    memory = opened(
        view(1, 1.0, position=Spot(0.0, 0.0, 0.0)),
        view(2, 2.0, position=Spot(3.0, 4.0, 50.0)),
        view(3, 3.0, label='car', position=Spot(30.0, 0.0, 0.0)),
        view(4, 4.0),
        key_frame(5.0),
    )
    assert tracks(found(memory, between_ns=(2 * NS_PER_S, 3 * NS_PER_S))) == [2, 3]
    assert tracks(found(memory, tracks=(4, 1, 0))) == [1, 4]
    assert tracks(found(memory, labels=('car',))) == [3]
    assert tracks(found(memory, 'car')) == [3]
    near = found(memory, centre=Spot(0.0, 0.0, 0.0), radius=5.0)
    assert tracks(near) == [1, 2]
    assert '2 views without a known place are left out' in near.notes


def test_filters_for_light_and_phase(opened: Any) -> None:
    memory = opened(
        view(1, 1.0, brightness=0.1, phase=FlightPhase.HOVERING),
        view(2, 2.0, brightness=0.2, phase=FlightPhase.TRAVELLING),
        view(3, 3.0, brightness=0.5),
        view(4, 4.0),
    )
    assert tracks(found(memory, lights=(Light.NIGHT, Light.DUSK))) == [1, 2]
    assert tracks(found(memory, 'person by day')) == [3]
    assert tracks(found(memory, 'person at night while hovering')) == [1]
    assert tracks(found(memory, phases=(FlightPhase.TRAVELLING,))) == [2]


def test_motion_is_judged_by_speed_and_by_the_drone(opened: Any) -> None:
    here = {'position': Spot(10.0, 0.0, 0.0), 'drone': DronePose(0.0, 0.0, 20.0)}
    memory = opened(
        view(1, 1.0, velocity=Spot(0.1, 0.0, 0.0), **here),
        view(2, 2.0, velocity=Spot(-1.2, 0.0, 0.0), **here),
        view(3, 3.0, velocity=Spot(3.0, 0.0, 0.0), **here),
        view(4, 4.0, velocity=Spot(0.0, 1.2, 0.0), **here),
        view(5, 5.0, velocity=Spot(-1.2, 0.0, 0.0)),
        view(6, 6.0),
    )
    assert tracks(found(memory, 'person standing')) == [1]
    assert tracks(found(memory, 'person walking')) == [2, 4, 5]
    assert tracks(found(memory, 'running person')) == [3]
    assert tracks(found(memory, 'moving person')) == [2, 3, 4, 5]
    assert tracks(found(memory, 'person approaching')) == [2]
    assert tracks(found(memory, motions=(Motion.LEAVING,))) == [3]
    assert '1 views without a known speed are left out' in found(memory, 'running').notes


# ---------------------------------------------------------------------------- relations


def standing(track: int, x: float, y: float, seconds: float = 1.0, **changes: Any) -> MemoryItem:
    made = {'velocity': Spot(0.0, 0.0, 0.0), 'drone': DronePose(0.0, 0.0, 20.0)}
    item: MemoryItem = view(track, seconds, position=Spot(x, y, 0.0), **{**made, **changes})
    return item


def test_near_is_judged_on_the_map_and_the_other_object_must_fit_too(opened: Any) -> None:
    memory = opened(
        standing(1, 10.0, 0.0, vector=RED),
        standing(2, 40.0, 0.0, vector=RED),
        standing(3, 80.0, 0.0, vector=RED),
        standing(4, 12.0, 0.0, 30.0, label='car', vector=BLUE),
        standing(5, 42.0, 0.0, 30.0, label='car', vector=RED),
    )
    result = found(memory, 'red person near a red car')
    assert tracks(result) == [2, 1]
    assert [m.beside.item.track_id for m in result.moments if m.beside] == [5, 4]
    assert result.moments[0].score == pytest.approx(1.0, abs=0.05)
    assert result.moments[1].score == pytest.approx(0.5, abs=0.05)
    assert tracks(found(memory, 'person near a person')) == []


def test_of_several_objects_beside_the_best_is_shown_and_the_same_spot_is_near(
    opened: Any,
) -> None:
    cars = [
        standing(10 + n, 100.0, 0.5 * n, label='car', vector=direction(1.0, abs(n - 3.0)))
        for n in range(8)
    ]
    people = [standing(n, 100.0, 0.0) for n in (1, 2)]
    result = found(opened(*people, *cars), 'person near a red car')
    assert [m.beside.item.track_id for m in result.moments if m.beside] == [13, 13]
    alone = found(opened(*people[:1], cars[0], name='alone'), 'person near a car')
    assert tracks(alone) == [1]


def test_relations_are_judged_among_many(opened: Any) -> None:
    pairs = [
        (standing(n, 30.0 * n, 0.0), standing(2000 + n, 30.0 * n, 3.0 + n % 2 * 4.0, label='car'))
        for n in range(1, 700)
    ]
    memory = opened(*(item for pair in pairs for item in pair))
    result = found(memory, 'person near a car', limit=1000)
    assert sorted(tracks(result)) == list(range(2, 700, 2))
    assert all(
        m.beside is not None and m.beside.item.track_id == 2000 + m.shown.item.track_id
        for m in result.moments
    )


def test_a_moving_object_is_near_only_at_the_same_time(opened: Any) -> None:
    passing = {'label': 'car', 'velocity': Spot(8.0, 0.0, 0.0)}
    memory = opened(
        standing(1, 0.0, 0.0, 10.0),
        standing(2, 50.0, 0.0, 10.0),
        standing(3, 2.0, 0.0, 10.5, **passing),
        standing(4, 52.0, 0.0, 14.0, **passing),
    )
    assert tracks(found(memory, 'person near a car')) == [1]


def test_what_stood_there_long_before_may_have_left(opened: Any) -> None:
    memory = opened(standing(1, 0.0, 0.0, 100.0), standing(2, 1.0, 0.0, 39.0, label='car'))
    assert tracks(found(memory, 'person near a car')) == []


def test_left_and_right_are_seen_from_the_drone(opened: Any) -> None:
    memory = opened(
        standing(1, 20.0, 5.0, 1.0),
        standing(2, 20.0, -5.0, 1.0),
        standing(3, 20.0, 0.0, 10.0, label='car'),
        standing(4, 20.0, 60.0, 1.0),
    )
    assert tracks(found(memory, 'person left of a car')) == [1]
    assert tracks(found(memory, 'person right of a car')) == [2]


def test_in_one_picture_boxes_say_what_is_left(opened: Any) -> None:
    # On the map it would be the other way round.
    memory = opened(
        standing(1, 20.0, -5.0, box=Box(100.0, 100.0, 140.0, 200.0)),
        standing(2, 20.0, 0.0, label='car', box=Box(300.0, 100.0, 400.0, 200.0)),
        standing(3, 20.0, 5.0, box=Box(330.0, 100.0, 380.0, 200.0)),
    )
    assert tracks(found(memory, 'person left of a car')) == [1]
    assert tracks(found(memory, 'person right of a car')) == []


@pytest.mark.parametrize(('seen', 'remembered'), [(RED, BLUE), (BLUE, RED)])
def test_the_best_of_one_picture_and_of_the_map_is_shown(
    opened: Any, seen: Vectors, remembered: Vectors
) -> None:
    memory = opened(
        standing(1, 20.0, 0.0, box=Box(100.0, 100.0, 140.0, 200.0)),
        standing(2, 20.0, -4.0, label='car', box=Box(300.0, 100.0, 400.0, 200.0), vector=seen),
        standing(3, 20.0, -6.0, 20.0, label='car', vector=remembered),
    )
    (moment,) = found(memory, 'person left of a red car').moments
    assert moment.beside is not None
    assert moment.beside.item.track_id == (2 if seen is RED else 3)


def test_a_relation_needs_places_and_says_so(opened: Any) -> None:
    memory = opened(view(1), standing(2, 0.0, 0.0, label='car'))
    result = found(memory, 'person near a car')
    assert result.moments == ()
    assert '1 views without a known place are left out' in result.notes


# -------------------------------------------------------------------------------- notes


def test_what_was_not_understood_or_not_stored_is_said(opened: Any) -> None:
    result = found(opened(view(1)), 'a striped woman near a van')
    assert 'not in the vocabulary: striped' in result.notes
    assert 'woman is searched for as person' in result.notes
    assert 'van is searched for as car' in result.notes
    assert 'no view is stored as car; stored labels: person' in result.notes


def test_nothing_found_is_never_called_absent(opened: Any, tmp_path: Path) -> None:
    for memory in (opened(view(1)), memory_of(tmp_path / 'empty.memory')):
        result = found(memory, 'red car')
        assert result.moments == ()
        assert any('none of them says that something was not there' in n for n in result.notes)


@settings(max_examples=25)
@given(data=st.data())
def test_any_filter_returns_only_views_that_pass_it(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    coordinates = st.one_of(st.just(float('nan')), st.floats(-50.0, 50.0))
    items = [
        view(
            data.draw(st.integers(1, 3)),
            data.draw(st.integers(0, 9)),
            label=data.draw(st.sampled_from(LABELS)),
            position=Spot(data.draw(coordinates), data.draw(coordinates), 0.0),
        )
        for _ in range(data.draw(st.integers(0, 6)))
    ]
    first, last = sorted(data.draw(st.lists(st.integers(0, 9), min_size=2, max_size=2)))
    radius = data.draw(st.floats(0.0, 40.0))
    with memory_of(tmp_path_factory.mktemp('any.memory'), *items) as memory:
        result = found(
            memory,
            'car',
            between_ns=(first * NS_PER_S, last * NS_PER_S),
            centre=Spot(0.0, 0.0, 0.0),
            radius=radius,
        )
    seen = [stored.item for moment in result.moments for stored in moment.views]
    expected = [
        i
        for i in items
        if i.label == 'car'
        and first * NS_PER_S <= i.stamp_ns <= last * NS_PER_S
        and np.hypot(np.float32(i.position.x), np.float32(i.position.y)) <= radius
    ]
    assert len(seen) == len(expected) == result.rated
