"""What people said who had not seen the grammar means the same as a plain sentence."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

import pytest

from mmedge_ros.questions import QuestionError
from mmedge_ros.questions.grammar import read_question

LABELS = ('person', 'cyclist', 'car', 'dog')
_WORDS = {'text', 'said', 'words', 'taken_as', 'called'}


def meant(value: Any) -> Any:
    """Return what was understood without the words that it was said in."""
    if is_dataclass(value):
        return {f.name: meant(getattr(value, f.name)) for f in fields(value)} | dict.fromkeys(
            _WORDS & {f.name for f in fields(value)}
        )
    return [meant(one) for one in value] if type(value) is tuple else value


@pytest.mark.parametrize(
    ('said', 'plain'),
    [
        ('How many people did we pick up in total?', 'how many people were seen'),
        ('Number of cars within 30 m of the drone right now?', 'how many cars within 30 m now'),
        ('dogs, whole flight, how many?', 'how many dogs were seen'),
        ('Any dog running around in the last 30 seconds?', 'was a dog running in the last 30 s'),
        (
            'Which way was track 7 heading when we last saw it?',
            'which way is track 7 going',
        ),
        ('how fast is number 4 goin now', 'how fast is track 4 now'),
        (
            'Count the cyclists that came through between 14:05 and 14:10.',
            'how many cyclists were seen between 14:05 and 14:10',
        ),
        (
            'What was moving within 20 metres of us in the last 10 seconds?',
            'which objects were moving within 20 m in the last 10 s',
        ),
        (
            'How many cars were standing still three minutes into the flight?',
            'how many cars were standing at 180 s',
        ),
        ('Is track 9 still moving?', 'is track 9 moving'),
        ('track 5 still moving?', 'is track 5 moving'),
        ('Is there a person behind us at the moment?', 'is there a person behind the drone now'),
        (
            'Show me everybody who was running in the first two minutes.',
            'who was running in the first 120 s',
        ),
        (
            'Did we have more cyclists in the first three minutes or in the last three?',
            'were there more cyclists in the first 180 s or in the last 180 s',
        ),
        ('When did you last see the dog?', 'when was the dog last seen'),
        ('When did we last see the dog, track 40?', 'when was dog 40 last seen'),
        ('how many dogs can you see right now', 'how many dogs now'),
        (
            'How far off was track 15 one minute into the flight?',
            'how far was track 15 from the drone at 60 s',
        ),
        ('Did we see a cyclist before 10:15?', 'was a cyclist seen before 10:15'),
        ('List the children with backpacks, please.', 'which children with backpacks were seen'),
        (
            'Give me the top speed of cyclist 11 for the entire flight.',
            'what was the top speed of cyclist 11',
        ),
        (
            'Check whether a blue car was on the move between minute 2 and minute 4.',
            'was a blue car moving between 120 s and 240 s',
        ),
        (
            'Were there more people with backpacks than without?',
            'were there more people with backpacks than people without backpacks',
        ),
        ('anyone standing still close to the red car', 'was anyone standing near a red car'),
        (
            'How long did track 6 stay in one spot before 16:40?',
            'how long was track 6 standing before 16:40',
        ),
        (
            'Has anybody in black trousers carrying a rucksack shown up ahead of us in the first '
            '90 seconds?',
            'was anybody in black trousers with a backpack ahead of the drone in the first 90 s',
        ),
        (
            'Which cyclist was the quickest between minute one and minute two?',
            'which cyclist was the fastest between 60 s and 120 s',
        ),
        (
            'How many different people got within 10 metres of a car in the last five minutes?',
            'how many people were within 10 m of a car in the last 300 s',
        ),
        (
            'Can you tell me how many persons came closer than 10 metres to track 12?',
            'how many people were within 10 m of track 12',
        ),
        ('Was there a white car at all?', 'was there a white car'),
        (
            'What did we have in front of us in the first ten seconds?',
            'what was ahead of the drone in the first 10 s',
        ),
        ('How fast was nr 7 going at 14:03?', 'how fast was track 7 at 14:03'),
        (
            'In wich direction did track 22 move in the last 20 seconds?',
            'which way was track 22 going in the last 20 s',
        ),
        ('Were there more people or more cars?', 'were there more people or cars'),
        ('Who is faster, 12 or 15?', 'who is faster, track 12 or track 15'),
        (
            'Did more cyclists pass in the first 2 minutes than in the last 2 minutes?',
            'were there more cyclists in the first 120 s than in the last 120 s',
        ),
    ],
)
def test_a_paraphrase_means_what_the_plain_sentence_does(said: str, plain: str) -> None:
    assert meant(read_question(said, LABELS)) == meant(read_question(plain, LABELS))


@pytest.mark.parametrize(
    'text',
    [
        "What's the name of the guy in the orange top?",
        'Was anybody scared of the drone when it came closer than 15 metres?',
        'What was track 5 thinking just before we lost sight of it?',
        'How many of the people in the park were drunk?',
    ],
)
def test_what_nobody_can_know_is_refused(text: str) -> None:
    with pytest.raises(QuestionError):
        read_question(text, LABELS)
