"""Questions are read as they are meant, or refused with what was not understood."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mmedge_ros.memory.moment import Motion
from mmedge_ros.memory.query import LONGEST_QUERY, Attribute
from mmedge_ros.questions import QuestionError
from mmedge_ros.questions.grammar import read_question
from mmedge_ros.questions.place_words import Anchor, PlaceLimit, Side
from mmedge_ros.questions.question import Asked, Kind, Measure, Question, Sense

LABELS = ('person', 'car', 'cyclist', 'dog')


def read(text: str) -> Question:
    return read_question(text, LABELS)


@pytest.mark.parametrize(
    ('text', 'kind', 'asked'),
    [
        ('How many people were seen?', Kind.COUNT, Asked.COUNT),
        ('count the cyclists', Kind.COUNT, Asked.COUNT),
        ('what is the number of cars', Kind.COUNT, Asked.COUNT),
        ('is there a dog?', Kind.EXISTENCE, Asked.EXISTS),
        ('did you see anybody', Kind.EXISTENCE, Asked.EXISTS),
        ('has anyone been near us', Kind.EXISTENCE, Asked.EXISTS),
        ('is track 3 within 5 m of track 5', Kind.EXISTENCE, Asked.EXISTS),
        ('What is near track 7?', Kind.OBJECT, Asked.LIST),
        ('which people were running', Kind.OBJECT, Asked.LIST),
        ('which tracks are closest to the drone?', Kind.OBJECT, Asked.EXTREME),
        ('who came closest', Kind.OBJECT, Asked.EXTREME),
        ('what is track 7', Kind.OBJECT, Asked.LABEL),
        ('which way is track 7 going?', Kind.STATUS, Asked.HEADING),
        ('where is track 7 heading', Kind.STATUS, Asked.HEADING),
        ('is track 3 moving?', Kind.STATUS, Asked.MOTION),
        ('how fast is track 3', Kind.STATUS, Asked.SPEED),
        ('how fast did track 3 walk', Kind.STATUS, Asked.SPEED),
        ('where was track 5', Kind.STATUS, Asked.PLACE),
        ('how far away is track 2?', Kind.STATUS, Asked.DISTANCE),
        ('when was track 2 first seen', Kind.STATUS, Asked.FIRST_SEEN),
        ('how fast is the red van', Kind.STATUS, Asked.SPEED),
        ('is track 3 faster than track 5?', Kind.COMPARISON, Asked.PAIR),
        ('who came closer, 3 or 5?', Kind.COMPARISON, Asked.PAIR),
        ('which is farther from track 2, track 3 or track 5', Kind.COMPARISON, Asked.PAIR),
        ('are there more people than cars?', Kind.COMPARISON, Asked.COUNTS),
        ('were there at least three people', Kind.COMPARISON, Asked.COUNTS),
    ],
)
def test_each_kind_of_question_is_told_apart(text: str, kind: Kind, asked: Asked) -> None:
    question = read(text)
    assert (question.kind, question.asked) == (kind, asked)


def test_time_place_label_look_and_motion_are_read_from_one_question() -> None:
    question = read('How many people in red tops were walking within 20 m in the last minute?')
    (phrase,) = question.phrases
    assert phrase.labels == ('person',)
    assert phrase.attributes == (Attribute('top', 'red'),)
    assert phrase.motions == (Motion.WALKING,)
    assert question.places == (PlaceLimit(most=20.0),)
    assert question.span.last == 60.0


@pytest.mark.parametrize(
    ('words', 'place'),
    [
        ('within 20 m of the drone', PlaceLimit(most=20.0)),
        ('closer than ten metres to us', PlaceLimit(most=10.0)),
        ('more than 7.5 meters away from track 7', PlaceLimit(Anchor(track=7), least=7.5)),
        ('within 5 m of 12.5, -3', PlaceLimit(Anchor(spot=(12.5, -3.0)), most=5.0)),
        ('near track 7', PlaceLimit(Anchor(track=7), most=5.0)),
        ('nearby', PlaceLimit(most=5.0)),
        ('to the left of the drone', PlaceLimit(side=Side.LEFT)),
        ('on our right', PlaceLimit(side=Side.RIGHT)),
        ('in front of us', PlaceLimit(side=Side.AHEAD)),
        ('behind the drone', PlaceLimit(side=Side.BEHIND)),
    ],
)
def test_places_are_read_in_several_ways(words: str, place: PlaceLimit) -> None:
    assert read(f'were there any people {words}?').places == (place,)


def test_an_object_may_be_measured_from() -> None:
    (place,) = read('was anybody within 8 m of a red van').places
    assert place.most == 8.0
    assert place.anchor.phrase is not None
    assert place.anchor.phrase.labels == ('car',)
    assert place.anchor.phrase.attributes == (Attribute('', 'red'),)


def test_who_is_compared_by_what_is_read() -> None:
    question = read('did track 3 come closer to track 9 than track 5?')
    assert question.tracks == (3, 5)
    assert (question.measure, question.is_largest) == (Measure.DISTANCE, False)
    assert (question.is_yes_or_no, question.is_closest) == (True, True)
    assert question.anchor == Anchor(track=9)
    counts = read('were there fewer cars than people at 0:05')
    assert counts.sense is Sense.FEWER
    assert counts.versus is not None
    assert [phrase.labels for phrase in counts.versus.phrases] == [('person',)]
    assert counts.versus.span == counts.span


def test_several_objects_count_as_any_of_them() -> None:
    assert [p.labels for p in read('how many people and cars').phrases] == [('person',), ('car',)]
    (one,) = read('how many people in a red and white shirt').phrases
    assert len(one.attributes) == 2


def test_a_track_that_was_called_something_is_remembered_as_such() -> None:
    question = read('is person 3 faster than car 5')
    assert question.tracks == (3, 5)
    assert question.called == ((3, 'person'), (5, 'car'))


@pytest.mark.parametrize(
    ('text', 'named'),
    [
        ('how many happy people', 'happy'),
        ('are all people moving', 'all'),
        ('is nobody there', 'nobody'),
        ('how many people without a car', 'without'),
        ('who left', 'left'),
        ('how many people in the last 5', '5'),
        ('how many people at night', 'light'),
        ('person with a dog', 'person with a dog'),
        ('how many people left of track 7', 'left'),
        ('how many people left of something', 'left'),
        ('how many people before 3 s and after 5 s', 'two times'),
        ('how many people between 3 and 5', '3 what'),
        ('how many', 'how many'),
        ('how many people at 0:75', '0:75'),
        ('is track 3 faster than track 3', 'itself'),
        ('tell me a joke', 'joke'),
        ('', 'nothing is asked'),
        ("What's the name of the guy in the orange top?", 'name'),
        ('Was anybody scared of the drone when it came closer than 15 metres?', 'scared'),
        ('How many of the people in the park were drunk?', 'drunk'),
        ('how many people or so', 'so'),
        ('were there 3 people', '3'),
        ("'; DROP TABLE items; --", 'drop'),
        ('how many $(rm -rf /) people', 'rm'),
        ('how many people within 10 m of each other', 'other'),
        ('who was near a car or a dog', 'several objects'),
        ('was it dark', 'it'),
        ('was anybody walking or running', 'two motions'),
        ('is track 3 coming towards us or going away', 'or'),
        ('was anyone moving away from track 3', '3'),
        ('how many people moved faster than 2 m/s', 'faster'),
        ('were there more people in red than in red', 'the same'),
        ('were there more walking people than in red', 'both sides'),
        ('was the dog faster than track 3', 'by number'),
        ('how many people were talking', 'talking'),
        ('how many people in ../../etc/passwd', 'etc'),
    ],
)
def test_what_is_not_understood_is_named_and_refuses_the_question(text: str, named: str) -> None:
    with pytest.raises(QuestionError, match=named):
        read(text)


def test_a_question_is_at_most_so_long() -> None:
    with pytest.raises(QuestionError, match='at most'):
        read('how many people ' * (LONGEST_QUERY // 10))
    # One sign may stand for many.
    with pytest.raises(QuestionError, match='at most'):
        read('\N{ARABIC LIGATURE SALLALLAHOU ALAYHE WASALLAM}' * (LONGEST_QUERY - 1))


def is_handled(text: str) -> bool:
    """Whether a text is read as a question or refused with a reason."""
    try:
        return isinstance(read(text), Question)
    except QuestionError as err:
        return bool(str(err))


@given(st.text(max_size=LONGEST_QUERY))
def test_any_text_is_read_or_refused(text: str) -> None:
    assert is_handled(text)


WORDS = (
    'how many people is track 7 3 within 20 m of the drone in last minute between 0:05 and 8 s '
    'who what which closest faster than near car left right , - or was at 12:30 red not'
)


@given(st.lists(st.sampled_from(WORDS.split()), max_size=60).map(' '.join))
def test_words_in_any_order_are_read_or_refused(text: str) -> None:
    assert is_handled(text)


# What people said who had not seen the grammar, and plain sentences that mean the same.
ALIKE = """
How many people did we pick up in total? = how many people were seen
Number of cars within 30 m of the drone right now? = how many cars within 30 m now
dogs, whole flight, how many? = how many dogs were seen
Any dog running around in the last 30 seconds? = was a dog running in the last 30 s
Which way was track 7 heading when we last saw it? = which way is track 7 going
how fast is number 4 goin now = how fast is track 4 now
Is track 9 still moving? = is track 9 moving
track 5 still moving? = is track 5 moving
Is there a person behind us at the moment? = is there a person behind the drone now
Show me everybody who was running in the first two minutes. = who was running in the first 120 s
When did you last see the dog? = when was the dog last seen
When did we last see the dog, track 40? = when was dog 40 last seen
how many dogs can you see right now = how many dogs now
How far off was track 15 one minute into the flight? = how far was track 15 from the drone at 60 s
Did we see a cyclist before 10:15? = was a cyclist seen before 10:15
List the children with backpacks, please. = which children with backpacks were seen
Give me the top speed of cyclist 11 for the entire flight. = what was the top speed of cyclist 11
anyone standing still close to the red car = was anyone standing near a red car
How long did track 6 stay in one spot before 16:40? = how long was track 6 standing before 16:40
Was there a white car at all? = was there a white car
How fast was nr 7 going at 14:03? = how fast was track 7 at 14:03
Were there more people or more cars? = were there more people or cars
Who is faster, 12 or 15? = who is faster, track 12 or track 15
Could you tell me how many cars there are? = how many cars are there
how many people weren't moving = how many people were standing
how far apart are tracks 3 and 5 = what is the distance between track 3 and track 5
did anybody approach the drone = was anybody approaching
was anyone moving away = was anyone leaving
what's the speed of track 3 = how fast is track 3
is anybody still there = is anybody there now
is track 3 still moving = is track 3 moving
So, do you know if anybody came by? = was anybody there
track 3, was it moving? = was track 3 moving
how many peple did we pick up in total = how many people were seen
any cars on the move = was there any car moving
list everybody who you saw = list everybody
which way was track 3 heading when we last saw it = which way is track 3 going
how many people three minutes ago = how many people 3 min before the end
number of guys within a 20 m radius = how many people within 20 m
"""
_WORDS = {'text', 'said', 'words', 'taken_as', 'called'}


def meant(value: Any) -> Any:
    """Return what was understood without the words that it was said in."""
    if is_dataclass(value):
        known = {f.name: getattr(value, f.name) for f in fields(value) if f.name not in _WORDS}
        return {name: meant(part) for name, part in known.items()}
    return [meant(one) for one in value] if type(value) is tuple else value


@pytest.mark.parametrize('pair', ALIKE.strip().splitlines())
def test_a_paraphrase_means_what_the_plain_sentence_does(pair: str) -> None:
    said, plain = pair.split(' = ')
    assert meant(read(said)) == meant(read(plain))


def test_two_places_are_measured_each_from_its_own_object() -> None:
    drone, car = read('how many people near the drone were near a car').places
    assert drone.anchor.is_drone or car.anchor.is_drone
    assert sum(place.anchor.phrase is not None for place in (drone, car)) == 1


def test_a_time_may_stand_first() -> None:
    question = read('In the last 5 seconds, who was closer: track 3 or track 5?')
    assert (question.asked, question.tracks, question.span.last) == (Asked.PAIR, (3, 5), 5.0)
