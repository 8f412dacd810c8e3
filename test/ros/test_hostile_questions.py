"""Whatever is asked of whatever was perceived, a question ends with an answer or a sentence."""

from __future__ import annotations

import math
import time

import numpy as np
from hand_made_observations import BEGIN_NS, hovering, observed, walked
from hypothesis import given, settings
from hypothesis import strategies as st
from rclpy.serialization import serialize_message
from tries import tries

from mmedge_ros.questions.answering import ask
from mmedge_ros.questions.observations import Observations
from mmedge_ros.questions.question_worker import LiveAnswer
from mmedge_ros.questions.selection import KnownFlight
from mmedge_ros.ros.messages.question_messages import answer_lines, to_result

LONGEST = 2.0  # s
BEGINNINGS = (
    *('how many', 'is there', 'was anybody', 'which people were', 'who was', 'who came', 'is'),
    *('where was', 'when was', 'how fast was', 'how far was', 'how long was', 'what is', 'did'),
    *('are there more people than', 'were there at least', 'which way is', 'was', ''),
)
WORDS = """
people cars person track the_drone us anyone tracks moving red running standing within
m_of more_than near behind left_of closest fastest nearest to from and or before after between
at s in_the_last in_the_first half_of_the_flight minutes seconds hours now seen at_any_time
exactly faster_than closer_than of not without 0:02 99:99 0:00:00:01 1,5 20,_0 -3 1e9 1e400 nan
inf ² ٣ 0 1 2 3 4.5 0.1 ? . , ( ) % {}
"""
PIECES = (
    *WORDS.split(),
    *(str(2**31), str(2**63), '9' * 25, '9' * 300, '-' + '9' * 25),
    *('\0', '\n', '\x1b[2J', '😀', 'ﬁ', '\u202e', "'", '"', '\\'),
)
QUESTIONS = st.one_of(
    st.text(max_size=520),
    st.builds(
        lambda first, rest: ' '.join((first, *rest)).replace('_', ' '),
        st.sampled_from(BEGINNINGS),
        st.lists(st.sampled_from(PIECES), max_size=12),
    ),
)


def flights() -> dict[str, Observations]:
    far = walked(3, place=(9.9e8, -9.9e8), velocity=(1e8, 0.0))
    return {
        'usual': observed(
            walked(1, place=(30.0, 0.0), velocity=(-1.0, 0.0)),
            walked(2, place=(10.0, 8.0), span=(2.0, 5.0)),
            walked(4, 'car', place=(11.0, 8.0)),
            drone=hovering(),
        ),
        'absurd': observed(
            far,
            walked(2**32 - 1, 'x' * 64, place=(math.nan, 0.0), deviation=math.nan),
            walked(5, 'person with', place=(math.inf, 0.0), deviation=0.0),
            drone=hovering(math.nan),
        ),
        'blind': observed(walked(1), blind=(0.0, 10.0)),
        'empty': observed(),
    }


FLIGHTS = flights()


@settings(max_examples=tries(400))
@given(text=QUESTIONS, flight=st.sampled_from(sorted(FLIGHTS)))
def test_absurd_questions_are_answered_or_refused(text: str, flight: str) -> None:
    begun = time.monotonic()
    with np.errstate(all='ignore'):
        found = ask(text, KnownFlight(FLIGHTS[flight], labels=('person', 'car', 'x' * 64)))
    assert time.monotonic() - begun < LONGEST
    assert 0 < len(found.text) < 1500
    live = LiveAnswer(found, BEGIN_NS)
    if '\ud800' <= max(text, default=' ') <= '\udfff':
        return  # no message holds it
    serialize_message(to_result(live))
    assert answer_lines(text, live).count('\n') == 1, 'a question and its answer are two lines'
