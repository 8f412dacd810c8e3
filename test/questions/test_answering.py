"""Answers follow from what was perceived, with evidence; what is not known is refused."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hand_made_observations import hovering, observed, walked

from mmedge_ros.memory.query import Phrase
from mmedge_ros.questions.answer import Answer
from mmedge_ros.questions.answering import ask
from mmedge_ros.questions.observations import Observations, ObservedTrack, observations_of
from mmedge_ros.questions.selection import KnownFlight


def crossing() -> Observations:
    """A person who comes near, one who stands, one who runs away late, and a car."""
    return observed(
        walked(1, place=(30.0, 0.0), velocity=(-1.0, 0.0)),
        walked(2, place=(10.0, 8.0)),
        walked(3, place=(10.0, -5.0), velocity=(0.0, -3.0), span=(6.0, 10.0)),
        walked(4, 'car', place=(11.0, 8.0)),
        drone=hovering(),
    )


def asked(text: str, observations: Observations | None = None) -> Answer:
    flight = crossing() if observations is None else observations
    return ask(text, KnownFlight(flight, labels=('person', 'car', 'cyclist')))


def value(text: str) -> object:
    found = asked(text)
    assert not found.refused, found.refused
    return found.value


@pytest.mark.parametrize(
    ('text', 'expected'),
    [
        ('how many people at 2 s', 2),
        ('how many people now', 3),
        ('how many people within 25 m of the drone at 2 s', 1),
        ('how many people and cars at 0:02', 3),
        ('how many people were running at 8 s', 1),
        ('was anybody within 21 m of us before 8 s', True),
        ('is there a cyclist', False),
        ('did anyone come within 2 m of the car', True),
        ('was anyone near track 1 in the first 5 seconds', False),
        ('is track 2 within 3 m of track 4', True),
        ('was track 1 within 15 m of the drone at any time', False),
        ('was track 3 seen before 5 s', False),
        ('were there people on the right in the last 3 s', True),
        ('was anyone behind the drone', False),
        ('what is near track 2', (4,)),
        ('which people were running', (3,)),
        ('who was more than 28 m from the drone', (1, 3)),
        ('who came closest', 2),
        ('who came closest to 20, 0', 1),
        ('which person was fastest', 3),
        ('what is the nearest car', 4),
        ('what is track 4', 'car'),
        ('which way is track 2 going', 'still'),
        ('is track 1 moving', True),
        ('is track 1 approaching', True),
        ('is track 1 running', False),
        ('was track 2 standing between 1 and 3 s', True),
        ('is track 1 faster than track 3', False),
        ('who is faster, track 1 or track 3', 3),
        ('did track 1 come closer than track 2', False),
        ('who was closer at 2 s, 1 or 2', 2),
        ('are there more people than cars at 8 s', True),
        ('were there at least three people at 2 s', False),
        ('were there exactly 2 people at 2 s', True),
        ('is anybody near track 2', False),
        ('was anybody behind us in the first half of the flight', False),
        ('were there more people at 8 s than at 2 s', True),
        ('were there more people moving or standing at 8 s', True),
        ('who was seen first', 1),
        ('who appeared first, track 3 or track 1', 1),
        ('was track 3 ever running', True),
        ('how many people were between 11 and 13 m from the drone 8 s ago', 1),
    ],
)
def test_each_kind_of_question_is_answered(text: str, expected: object) -> None:
    assert value(text) == expected


@pytest.mark.parametrize(
    ('text', 'expected'),
    [
        ('which way is track 3 going', -90.0),
        ('how fast is track 3', 3.0),
        ('how far is track 1', 20.0),
        ('how far was track 1 from the drone at 2 s', 28.0),
        ('how close did track 2 come to track 4', 1.0),
        ('how far is track 2 from 10, 0', 8.0),
        ('when was track 3 first seen', 6.0),
        ('what was the top speed of track 3', 3.0),
        ('how long was track 3 in view', 4.1),
        ('how long was track 3 running before 7.95 s', 2.0),
        ('how close did anyone get to the car', 1.0),
        ('when did you last see the car', 10.0),
    ],
)
def test_measured_answers_are_numbers(text: str, expected: float) -> None:
    found = value(text)
    assert isinstance(found, float)
    assert math.isclose(found, expected, abs_tol=1e-6)


def test_what_is_asked_in_the_present_is_of_the_newest_instant() -> None:
    gone = observed(walked(1, span=(0.0, 4.0)), walked(2, span=(5.0, 10.0)), drone=hovering())
    assert asked('is track 1 moving', gone).text.endswith('at 4.0 s.')
    assert asked('who is there', gone).value == (2,)
    assert asked('who was there', gone).value == (1, 2)
    assert 'at 10.0 s' in asked('is there a car', gone).text


def test_two_distances_that_hardly_differ_are_said_to() -> None:
    near = observed(walked(1), walked(2, place=(10.3, 0.0)), walked(3, place=(13.0, 0.0)))
    doubt = 'differ by less than one standard deviation'
    assert doubt in asked('who is closer to 0, 0, track 1 or track 2', near).text
    assert doubt not in asked('who is closer to 0, 0, track 1 or track 3', near).text


def test_an_answer_names_what_it_rests_on() -> None:
    found = asked('was anybody within 25 m of the drone after 2 s')
    first = next(one for one in found.evidence if one.track == 1)
    assert (first.label, first.begin, first.end) == ('person', 5.0, 10.0)
    assert first.distance == pytest.approx(20.0)
    assert first.deviation == pytest.approx(0.5)
    assert first.at == pytest.approx(10.0)
    assert found.text.startswith('Yes: tracks 1, 2 within 25 m')


def test_a_count_lies_between_those_seen_at_once_and_distinct_tracks() -> None:
    found = asked('how many people were seen')
    assert (found.low, found.value, found.high) == (2, 3, 3)
    assert found.text.startswith('3 (from 2 to 3) people, by 3 tracks')
    broken = observed(*(walked(n, span=(2.0 * n, 2.0 * n + 1.8)) for n in range(5)))
    count = asked('how many people were seen', broken)
    assert (count.low, count.value, count.high) == (1, 3, 5)
    assert ask('how many people were seen', KnownFlight(broken, is_exact=True)).value == 5


@pytest.mark.parametrize(
    ('text', 'reason'),
    [
        ('is track 9 moving', 'no track 9 in this flight; tracks: 1, 2, 3, 4'),
        ('is there a dog', 'detector does not know dog'),
        ('how many people after 0:30', 'not in this flight'),
        ('how fast was track 3 at 2 s', 'not tracked at 2.0 s; it was from 6.0 to 10.0 s'),
        ('is car 1 moving', 'track 1 is a person'),
        ('how fast is the person', '3 tracks are meant'),
        ('was the car faster than the person', '3 tracks are meant'),
        ('was the cyclist faster than the car', 'no cyclist was seen'),
        ('how many people in red', 'memory build'),
        ('which cyclist was fastest', 'no cyclist was seen'),
        ('how many unicorns', 'not understood: unicorns'),
    ],
)
def test_what_cannot_be_known_is_refused_with_the_reason(text: str, reason: str) -> None:
    found = asked(text)
    assert reason in found.refused
    assert (found.value, found.evidence) == (None, ())


@pytest.mark.parametrize(
    'text',
    [
        'how many people within 20 m',
        'how far is track 1',
        'is track 1 approaching',
        'who is on the left of the drone',
        'who came closest',
    ],
)
def test_without_odometry_nothing_is_said_of_distances_to_the_drone(text: str) -> None:
    lost = replace(crossing(), drone=None)
    assert 'no odometry' in asked(text, lost).refused
    assert asked('how far is track 1 from track 2', lost).value is not None


def test_where_the_camera_gave_nothing_nobody_is_counted_nor_missed() -> None:
    dark = observed(walked(1, span=(0.0, 3.0)), blind=(4.0, 8.0))
    assert 'camera gave nothing' in asked('was anybody there between 5 and 7 s', dark).refused
    assert 'camera gave nothing' in asked('how many people between 5 and 7 s', dark).refused
    partly = asked('was anybody there after 7.9 s', dark)
    assert partly.value is False
    assert partly.watched == pytest.approx(20 / 22)
    assert 'nothing was perceived' in asked('how many people', observations_of([])).refused


def test_looks_come_from_a_memory_and_what_has_no_view_only_widens_the_range() -> None:
    def red(track: ObservedTrack, _phrase: Phrase) -> float | None:
        return {1: 0.9, 2: 0.1}.get(track.id)

    flight = KnownFlight(crossing(), red)
    counted = ask('how many people in red at 8 s', flight)
    assert (counted.value, counted.low, counted.high) == (1, 1, 2)
    assert counted.source == 'tracks and memory'
    assert ask('was anyone in red near track 3 at 8 s', flight).value is False
    assert 'no view' in ask('was a red car seen', flight).refused
