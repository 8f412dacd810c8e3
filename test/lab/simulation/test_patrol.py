"""Patrols: the drone flies from station to station, and movers leave and come back."""

from __future__ import annotations

import math

import numpy as np
import pytest

from mmedge_lab.simulation.build import build_world
from mmedge_lab.simulation.patrol import ASIDE, BEYOND, MAIN, Patrol, draw_patrol
from mmedge_lab.simulation.scenario import DISTANCES
from mmedge_lab.simulation.world import Mover, World

SECONDS = 600.0
STREET = ('street_dusk_middle', 5008)
TIMES = np.arange(0.0, SECONDS, 1.0)
HALF_FIELD = math.radians(38.0)
MINUTE = 60.0


@pytest.fixture(scope='module')
def world() -> World:
    return build_world(*STREET, SECONDS, patrol=True)


@pytest.fixture(scope='module')
def patrol() -> Patrol:
    return draw_patrol(DISTANCES['middle'], STREET[1], SECONDS)


def in_view(world: World, mover: Mover) -> np.ndarray:
    """Whether a mover is ahead and near at each of TIMES, walls aside."""
    seen = []
    for t in TIMES:
        drone, place = world.path.state(t).pose, mover.state(t).position
        x, y, _ = drone.rotation.T @ (place - drone.translation)
        seen.append(abs(math.atan2(y, x)) < HALF_FIELD and math.hypot(x, y) < 80.0)
    return np.array(seen)


def absences(seen: np.ndarray) -> list[float]:
    """How long it is out of view between two times in view, s."""
    when = TIMES[seen]
    gaps = np.diff(when)
    return [float(gap) for gap in gaps if gap > 2.0]


@pytest.fixture(scope='module')
def seen(world: World) -> dict[int, np.ndarray]:
    return {mover.id: in_view(world, mover) for mover in world.movers}


def labelled(world: World, label: str) -> list[int]:
    return [mover.id for mover in world.movers if mover.label == label]


def test_people_leave_for_more_than_a_minute_and_come_back_under_their_id(
    world: World, seen: dict[int, np.ndarray]
) -> None:
    away = [max(absences(seen[i]), default=0.0) for i in labelled(world, 'person')]
    assert sum(longest > MINUTE for longest in away) >= 8


def test_nobody_comes_or_goes_in_a_jump(world: World) -> None:
    for mover in world.movers:
        places = np.array([mover.state(t).position for t in np.arange(0.0, SECONDS, 0.1)])
        fastest = 12.0 if mover.label in ('car', 'cyclist') else 6.0
        assert np.linalg.norm(np.diff(places, axis=0), axis=1).max() < 0.1 * fastest


def test_the_drone_flies_long_legs_turns_and_returns(world: World, patrol: Patrol) -> None:
    order = [stay.station for stay in patrol.stays]
    assert order[:6] == [MAIN, BEYOND, MAIN, ASIDE, MAIN, BEYOND]
    eyes = [station.eye[:2] for station in patrol.stations]
    assert math.dist(eyes[MAIN], eyes[BEYOND]) > 30.0
    returns = [stay for stay in patrol.stays if stay.station == MAIN and stay.end < SECONDS]
    for stay in returns:
        place = world.path.state(0.5 * (stay.begin + stay.end)).pose.translation
        assert math.dist(place[:2], eyes[MAIN]) < 4.0
    looks = []
    for number in (MAIN, ASIDE):
        stay = next(s for s in patrol.stays if s.station == number)
        forward = world.path.state(0.5 * (stay.begin + stay.end)).pose.rotation[:, 0]
        looks.append(math.atan2(forward[1], forward[0]))
    turned = abs(math.remainder(looks[1] - looks[0], 2.0 * math.pi))
    assert math.degrees(turned) > 55.0


def test_where_those_wait_who_left_is_never_in_view(world: World, patrol: Patrol) -> None:
    places = np.random.default_rng(0).uniform(-80.0, 80.0, (300, 2))
    hidden = places[patrol.never_seen(places)]
    assert 10 < len(hidden) < 290
    for t in TIMES[::3]:
        drone = world.path.state(t).pose
        ahead = (np.column_stack([hidden, np.zeros(len(hidden))]) - drone.translation) @ (
            drone.rotation
        )
        near = np.hypot(ahead[:, 0], ahead[:, 1]) < 90.0
        assert not (near & (np.abs(np.arctan2(ahead[:, 1], ahead[:, 0])) < HALF_FIELD)).any()
