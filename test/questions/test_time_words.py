"""Times of questions count from the begin of the flight, or are those of a clock."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest

from mmedge_ros.core.data_types import NS_PER_S
from mmedge_ros.questions import QuestionError
from mmedge_ros.questions.time_words import read_span

BEGIN_NS, MINUTES = 100 * NS_PER_S, 2


def within(
    words: str, begin_ns: int = BEGIN_NS, seconds: int = 60 * MINUTES
) -> tuple[float, float]:
    """Return a span in seconds from the begin of a flight."""
    span, rest = read_span(words)
    assert rest == ''
    first, last = span.within(begin_ns, begin_ns + seconds * NS_PER_S)
    return (first - begin_ns) / NS_PER_S, (last - begin_ns) / NS_PER_S


@pytest.mark.parametrize(
    ('words', 'span'),
    [
        ('in the last minute', (60.0, 120.0)),
        ('during the past 1.5 minutes', (30.0, 120.0)),
        ('in the last half a minute', (90.0, 120.0)),
        ('in the last 10 minutes', (0.0, 120.0)),
        ('in the first ten seconds', (0.0, 10.0)),
        ('between 0:10 and 1:20', (10.0, 80.0)),
        ('between 3 and 8 seconds', (3.0, 8.0)),
        ('from 5 s to the end', (5.0, 120.0)),
        ('before 0:30', (0.0, 30.0)),
        ('after 90s', (90.0, 120.0)),
        ('after 1 minute and 5 seconds', (65.0, 120.0)),
        ('at 0:07', (7.0, 7.0)),
        ('at 12 s into the flight', (12.0, 12.0)),
        ('now', (120.0, 120.0)),
        ('during the whole flight', (0.0, 120.0)),
    ],
)
def test_spans_are_read_in_several_ways(words: str, span: tuple[float, float]) -> None:
    assert within(words) == span


def test_times_of_day_count_where_stamps_are_those_of_a_clock() -> None:
    begun = datetime(2026, 5, 4, 14, 2, 0, tzinfo=timezone.utc)
    begin_ns = round(begun.timestamp()) * NS_PER_S
    assert within('after 14:03', begin_ns) == (60.0, 120.0)
    assert within('at 14:02:30', begin_ns) == (30.0, 30.0)
    assert within('before 1:00', begin_ns) == (0.0, 60.0)
    with pytest.raises(QuestionError, match='not in this flight'):
        within('after 14:03')


def test_a_time_that_may_be_either_is_refused() -> None:
    begun = datetime(2026, 5, 4, 0, 1, 0, tzinfo=timezone.utc)
    with pytest.raises(QuestionError, match='of the flight or of the day'):
        within('at 0:01', round(begun.timestamp()) * NS_PER_S)


@pytest.mark.parametrize('words', ['between 9 s and 3 s', 'after 5:00', 'at 25:00:00'])
def test_a_time_outside_the_flight_is_refused(words: str) -> None:
    with pytest.raises(QuestionError):
        within(words)
