"""What is known while it flies: the flight as a whole in little memory, and what now is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hand_made_sights import decided, sighted, standing

from mmedge_ros.core.data_types import CAMERA, NS_PER_S, STANDBY, Configuration, Decision
from mmedge_ros.core.data_types import ModalityConfiguration as Part
from mmedge_ros.geometry.ego_motion import EgoState
from mmedge_ros.geometry.transforms import Transform
from mmedge_ros.questions.answering import ask
from mmedge_ros.questions.live_flight import LiveFlight, is_about_now


class Live:
    """A flight, the time of its stamps, and how often its camera was woken."""

    def __init__(self, **options: object) -> None:
        self.now = 0.0
        self.wakes = 0
        self.flight = LiveFlight(lambda: round(self.now * NS_PER_S), self._wake, **options)  # type: ignore[arg-type]

    def _wake(self) -> None:
        self.wakes += 1

    def see(self, seconds: float, *tracks: int, camera: bool = True) -> None:
        self.now = seconds
        self.flight.add(seen(seconds, *tracks, camera=camera))


def seen(seconds: float, *tracks: int, camera: bool = True) -> Decision:
    people = [sighted(number, 1, 0, standing()) for number in tracks]
    decision = decided(seconds, *people)
    return replace(decision, newest_ns={CAMERA: decision.state_ns} if camera else {})


def test_now_is_the_newest_decision_and_the_clock_once_none_comes() -> None:
    live = Live()
    for tenth in range(30):
        live.see(100.0 + tenth / 10, 1, 2)
    live.now += 0.2
    assert ask('how many people are there now?', live.flight.known()).value == 2
    live.now += 60.0
    known = live.flight.known()
    assert 'nothing was perceived' in ask('how many people are there now?', known).refused
    assert 'nothing was perceived' in ask('how many people in the last 10 s?', known).refused
    assert ask('how many people were seen?', known).value == 2
    assert ask('how many people in the last 65 s?', known).value == 2


def test_distances_to_the_drone_are_known_while_its_way_is() -> None:
    live = Live()
    pose = Transform(np.eye(3), np.array([10.0, 0.0, 8.0]))
    for tenth in range(10):
        decision = seen(100.0 + tenth / 10, 1)
        live.flight.add(decision, EgoState(decision.state_ns, pose))
    question = 'how far is track 1 from the drone?'
    assert ask(question, live.flight.known()).value == pytest.approx(1.0)
    guessed = Live()
    guessed.flight.add(seen(100.0, 1), EgoState(1, pose))
    assert 'nothing is known of the way' in ask(question, guessed.flight.known()).refused


def test_only_detected_labels_are_known() -> None:
    live = Live(labels=('person',))
    live.see(100.0, 1)
    assert 'does not know dog' in ask('is there a dog?', live.flight.known()).refused


def test_a_memory_that_cannot_be_read_is_a_problem_and_no_end(tmp_path: Path) -> None:
    live = Live(memory=tmp_path / 'no.memory')
    live.see(100.0, 1)
    known = live.flight.known()
    assert ask('how many people were seen?', known).value == 1
    assert live.flight.problem.startswith('looks are not known: ')
    assert 'looks are known from a memory' in ask('was anybody in red there?', known).refused


@pytest.mark.parametrize(
    ('question', 'is_so'),
    [
        ('how many people are there now?', True),
        ('is there a dog?', True),
        ('where is track 7?', True),
        ('how many people in the last 10 s?', True),
        ('how many people were seen?', False),
        ('was anybody near a car after 0:30?', False),
        ('which way was track 7 going at 5 seconds?', False),
        ('what is that thing?', True),
    ],
)
def test_a_question_is_about_now_or_about_the_past(question: str, is_so: bool) -> None:
    assert is_about_now(question, ('person', 'dog', 'car')) is is_so


def test_a_camera_that_stands_by_is_woken_for_a_question_about_now_until_it_saw_enough() -> None:
    live = Live()
    live.see(100.0, 1)
    now, past = 'how many people are there now?', 'how many people were seen?'
    assert live.flight.awaited(now) is None, 'the camera is awake'
    live.flight.configured(Configuration(modalities=(Part(CAMERA, STANDBY),)))
    assert live.flight.awaited(past) is None
    assert live.wakes == 0
    has_come = live.flight.awaited(now)
    assert has_come is not None
    assert live.wakes == 1
    for tenth in range(1, 4):
        assert not has_come()
        live.see(100.0 + tenth / 10, camera=False)
        live.see(100.0 + tenth / 10 + 0.05)
    assert has_come()
    live.flight.configured(Configuration(modalities=(Part(CAMERA, 10.0),)))
    assert live.flight.awaited(now) is None
