"""Views of a memory are given to the tracks that were there then, whatever their numbers."""

from __future__ import annotations

from pathlib import Path

import pytest
from hand_made_looks import HEADER, SPACE, seen
from hand_made_moments import memory_of
from hand_made_observations import BEGIN_NS, hovering, observed, walked

from mmedge_ros.core.data_types import NS_PER_S
from mmedge_ros.memory.moment import Spot
from mmedge_ros.questions.answer import Answer
from mmedge_ros.questions.answering import ask
from mmedge_ros.questions.looks import remembered_looks
from mmedge_ros.questions.selection import KnownFlight

BEGIN = BEGIN_NS / NS_PER_S


@pytest.fixture
def flight(tmp_path: Path) -> KnownFlight:
    """Somebody in red and somebody in blue, whom the memory numbered the other way round."""
    tracks = (
        walked(1, place=(10.0, 0.0), velocity=(1.0, 0.0)),
        walked(2, place=(10.0, 9.0)),
        walked(3, place=(40.0, 0.0)),
    )
    views = (
        seen('person red', 2, BEGIN + 2.0, position=Spot(12.1, 0.0, 0.0)),
        seen('person red', 2, BEGIN + 4.0, position=Spot(14.1, 0.0, 0.0)),
        seen('person blue', 1, BEGIN + 4.0, position=Spot(10.0, 9.3, 0.0)),
        # Nobody was tracked there, or then, or as that.
        seen('person green', 4, BEGIN + 4.0, position=Spot(80.0, 0.0, 0.0)),
        seen('person green', 4, BEGIN + 30.0, position=Spot(40.0, 0.0, 0.0)),
        seen('car white', 5, BEGIN + 4.0, position=Spot(40.0, 0.0, 0.0)),
    )
    with memory_of(tmp_path / 'flight.memory', *views, header=HEADER) as memory:
        observations, looks = remembered_looks(
            observed(*tracks, drone=hovering()), memory.table(), SPACE
        )
    return KnownFlight(observations, looks)


def asked(text: str, flight: KnownFlight) -> Answer:
    found = ask(text, flight)
    assert not found.refused, found.refused
    return found


def test_views_go_to_tracks_by_time_label_and_place(flight: KnownFlight) -> None:
    assert [track.view_ids for track in flight.observations.tracks] == [(1, 2), (3,), ()]


def test_looks_are_answered_with_views_as_evidence(flight: KnownFlight) -> None:
    found = asked('was anybody in red within 15 m of the drone', flight)
    assert found.value is True
    assert [(one.track, one.views) for one in found.evidence] == [(1, (1, 2))]
    counted = asked('how many people in blue at 5 s', flight)
    assert (counted.value, counted.high) == (1, 2)


def test_a_look_that_no_recogniser_knows_is_refused(flight: KnownFlight) -> None:
    assert 'does not know cap' in ask('was anybody with a cap there', flight).refused
