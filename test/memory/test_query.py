"""Questions are understood as far as words go, and what is not understood is named."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mmedge_ros.memory.moment import FlightPhase, Light, Motion
from mmedge_ros.memory.query import (
    Attribute,
    Filters,
    MemoryQuery,
    Phrase,
    Relation,
    RelationKind,
    read_query,
)

LABELS = ('person', 'car', 'dog', 'fire hydrant')


def test_a_question_is_taken_apart() -> None:
    parsed = read_query('Person in a red top near a white van', LABELS)
    assert parsed.subject == Phrase(
        ('person',), (Attribute('top', 'red'),), (), ('person', 'red', 'top')
    )
    other = Phrase(('car',), (Attribute('', 'white'),), (), ('white', 'van'))
    assert parsed.relations == (Relation(RelationKind.NEAR, other),)
    assert parsed.taken_as == (('van', 'car'),)
    assert parsed.unknown == ()
    assert parsed.of(other).subject == other


@pytest.mark.parametrize(
    ('text', 'attributes'),
    [
        ('red person', {('', 'red')}),
        ('person in red', {('', 'red')}),
        ('a red and white shirt', {('top', 'red'), ('top', 'white')}),
        ('blue jacket, brown trousers', {('top', 'blue'), ('bottom', 'brown')}),
        ('dark blue jeans', {('bottom', 'blue')}),
        ('dark car', {('', 'black')}),
        ('orange coat', {('top', 'yellow')}),
        ('person with a backpack', {('backpack', 'yes')}),
        ('person without a backpack', {('backpack', 'no')}),
        ('person with a red backpack', {('backpack', 'yes')}),
        ('a child in a green cap', {('child', 'yes'), ('cap', 'green')}),
        ('two children', {('child', 'yes')}),
    ],
)
def test_colours_belong_to_the_next_part(text: str, attributes: set[tuple[str, str]]) -> None:
    assert set(read_query(text, LABELS).subject.attributes) == attributes


@pytest.mark.parametrize(
    ('text', 'labels'),
    [
        ('people', ('person',)),
        ('two women', ('person',)),
        ('cars', ('car',)),
        ('a fire hydrant', ('fire hydrant',)),
        ('anything', ()),
    ],
)
def test_objects_are_found_under_the_label_they_are_stored_with(
    text: str, labels: tuple[str, ...]
) -> None:
    assert read_query(text, LABELS).subject.labels == labels


def test_a_stored_label_counts_as_itself() -> None:
    assert read_query('truck', LABELS).subject.labels == ('car',)
    assert read_query('truck', (*LABELS, 'truck')).subject.labels == ('truck',)
    assert read_query('Trucks', (*LABELS, 'Truck')).subject.labels == ('Truck',)


@pytest.mark.parametrize(
    ('text', 'kind'),
    [
        ('person beside a dog', RelationKind.NEAR),
        ('person next to the dog', RelationKind.NEAR),
        ('person with a dog', RelationKind.NEAR),
        ('person left of a dog', RelationKind.LEFT_OF),
        ('person to the left of a dog', RelationKind.LEFT_OF),
        ('person on the right side of the dog', RelationKind.RIGHT_OF),
    ],
)
def test_relations_are_read(text: str, kind: RelationKind) -> None:
    parsed = read_query(text, LABELS)
    assert parsed.subject.labels == ('person',)
    assert [(r.kind, r.other.labels) for r in parsed.relations] == [(kind, ('dog',))]
    assert parsed.unknown == ()


def test_a_colour_before_a_second_object_is_of_the_second() -> None:
    parsed = read_query('person with a white dog', LABELS)
    assert parsed.subject == Phrase(('person',), words=('person',))
    assert parsed.relations[0].other.attributes == (Attribute('', 'white'),)
    assert parsed.relations[0].other.words == ('white', 'dog')


def test_a_relation_that_is_not_judged_is_named_and_asks_for_nothing() -> None:
    parsed = read_query('person in front of a red car', LABELS)
    assert parsed.subject == Phrase(('person',), words=('person',))
    assert parsed.relations == ()
    assert parsed.unknown == ('in front of',)


@pytest.mark.parametrize(
    ('text', 'motions'),
    [
        ('a person standing near a dog', (Motion.STILL,)),
        ('running person', (Motion.RUNNING,)),
        ('somebody walking towards the drone', (Motion.APPROACHING,)),
        ('person walking away', (Motion.LEAVING,)),
        ('parked car', (Motion.STILL,)),
        ('person', ()),
    ],
)
def test_motion_is_read(text: str, motions: tuple[Motion, ...]) -> None:
    assert read_query(text, LABELS).subject.motions == motions


def test_light_and_phase_of_flight_are_read() -> None:
    parsed = read_query('red car at night while hovering', LABELS)
    assert parsed.lights == (Light.NIGHT,)
    assert parsed.phases == (FlightPhase.HOVERING,)
    assert read_query('somebody in the dark', LABELS).lights == (Light.NIGHT,)


def test_words_outside_the_vocabulary_are_named_and_kept_for_an_encoder() -> None:
    parsed = read_query('a person with a striped umbrella', LABELS)
    assert parsed.unknown == ('striped', 'umbrella')
    assert parsed.subject.words == ('person', 'striped', 'umbrella')


@pytest.mark.parametrize(
    ('text', 'unknown'),
    [
        ('person not in red', ('not red',)),
        ('not running', ('not running',)),
        ('no night', ('no night',)),
        ('person without', ('without',)),
    ],
)
def test_what_is_excluded_is_named_and_not_searched_for(
    text: str, unknown: tuple[str, ...]
) -> None:
    parsed = read_query(text, LABELS)
    assert parsed.unknown == unknown
    assert not parsed.subject.attributes
    assert not parsed.subject.motions
    assert not parsed.lights


def test_filters_that_are_given_go_before_those_in_the_words() -> None:
    parsed = read_query('running person at night', LABELS)
    asked = MemoryQuery(parsed, filters=Filters(labels=('dog',), radius=3.0)).all_filters
    assert asked.labels == ('dog',)
    assert asked.radius == 3.0
    assert asked.lights == (Light.NIGHT,)
    assert asked.motions == (Motion.RUNNING,)


@given(st.text(max_size=300), st.lists(st.text(max_size=20), max_size=4))
def test_any_text_is_read_twice_alike(text: str, labels: list[str]) -> None:
    parsed = read_query(text, labels)
    assert parsed == read_query(text, labels)
    assert set(parsed.subject.labels) <= {*labels, 'person', 'car', 'cyclist', 'dog'}
