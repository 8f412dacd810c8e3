"""Those who come and go during a patrol: visitors on foot, their dog, cyclists and cars."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from scipy.ndimage import gaussian_filter1d

from mmedge_lab.simulation.articulated import MoverCourse
from mmedge_lab.simulation.crowd import Crowd, draw_crowd
from mmedge_lab.simulation.flight_path import FlownTrack, knots
from mmedge_lab.simulation.obstacles import Block, Obstacles
from mmedge_lab.simulation.patrol import BEYOND, MAIN, Patrol, Station, Stay
from mmedge_lab.simulation.scenario import DistanceBand, Scenario
from mmedge_lab.simulation.site import Site
from mmedge_lab.simulation.traffic import (
    STEP,
    Loop,
    VisibleStage,
    Visit,
    Walker,
    carriageway,
    loop_around,
)
from mmedge_ros.core.data_types import FloatArray

# People who are there all the time, fewest and most, and how many come and go, alone or in pairs.
_RESIDENTS = {MAIN: (2, 4), BEYOND: (1, 2)}
_VISITORS = (9, 13)
_PLACES = (MAIN, BEYOND)
_SHARES = (0.65, 0.35)
# How long a visitor stays after the way there, s, and is away at least.
_STAY = (12.0, 40.0)
_AWAY = 20.0
_CANDIDATES, _EXITS = 600, 24
_REACH = 35.0  # m around a stage and the drone within which exits are
_CLEARANCE = 0.45
_AT_EXIT = 1.5  # m
# Speeds, m/s, and seconds between the trips of vehicles, alone on their way and mixed.
_SPEEDS = {'car': (5.0, 10.0), 'cyclist': (3.5, 6.0)}
_SLOW_YARD = 0.45
_GAPS = {1: (45.0, 90.0), 2: (5.0, 40.0)}
_VEHICLES = 2  # of each kind
_START = 1.5  # s, over which vehicles start and stop


class Exits:
    """Places (N, 2) m that the drone never sees, where those wait who have left a stage."""

    def __init__(
        self, places: FloatArray, stage: VisibleStage, random: np.random.Generator
    ) -> None:
        self.places = places
        self._stage = stage
        self._random = random

    def place(self, t: float, begin: FloatArray) -> FloatArray:
        """Return an exit that can be reached straight from ``begin``, rather a near one.

        It is ``begin`` for one who is at an exit, and a place on the stage if no way is free.
        """
        apart = np.hypot(*(self.places - begin).T)
        if apart.min() < _AT_EXIT:
            return begin
        for i in np.argsort(apart * self._random.uniform(1.0, 2.0, len(apart))):
            if self._stage.obstacles.clear_way(begin, self.places[i], _CLEARANCE):
                return np.asarray(self.places[i], np.float64)
        return self._stage.place(t, begin)


def draw_comers_and_goers(
    patrol: Patrol, band: DistanceBand, obstacles: Obstacles, seconds: float,
    random: np.random.Generator,
) -> Crowd:  # fmt: skip
    """Draw those who stay at a stage, whom only the drone leaves, and those who come and go."""
    crowd = Crowd()
    exits: dict[int, Exits] = {}
    stages: dict[int, VisibleStage] = {}
    for number in _PLACES:
        station = patrol.stations[number]
        at_station = FlownTrack(np.zeros(1), station.eye[None], station.stage, sweeps=False)
        stages[number] = stage = VisibleStage(at_station, band, obstacles, random)
        exits[number] = _draw_exits(patrol, station, stage, random)
        first = len(crowd.walkers)
        draw_crowd(stage, seconds, random, *_RESIDENTS[number], crowd)
        always = (Visit(-math.inf, math.inf, stage, stage),)
        for i in range(first, len(crowd.walkers)):
            crowd.walkers[i] = replace(crowd.walkers[i], visits=always)
    for number in range(int(random.integers(_VISITORS[0], _VISITORS[1] + 1))):
        place = MAIN if number == 0 or random.random() < _SHARES[0] else BEYOND
        stays = [s for s in patrol.stays if s.station == place and s.begin < seconds]
        if not stays or not len(exits[place].places):
            continue
        if number == 0:  # one with a dog, which is away for longer than the others
            _add_visitor(crowd, stages[place], exits[place], stays[::2], random, dog=True)
        else:
            chosen = [stay for stay in stays if random.random() < 0.5]
            chosen = chosen or [stays[random.integers(len(stays))]]
            _add_visitor(crowd, stages[place], exits[place], chosen, random)
    return crowd


def _draw_exits(
    patrol: Patrol, station: Station, stage: VisibleStage, random: np.random.Generator
) -> Exits:
    middle = 0.5 * (station.eye[:2] + station.stage)
    reach = _REACH + math.dist(middle, station.stage)
    places = middle + random.uniform(-reach, reach, (_CANDIDATES, 2))
    free = patrol.never_seen(places) & (stage.obstacles.distance(places) > 0.8)
    places = places[free]
    places = places[np.argsort(np.hypot(*(places - station.stage).T))]
    # Only such from which a place on the stage can be seen and reached.
    open_ones: list[FloatArray] = []
    for place in places:
        if len(open_ones) == _EXITS:
            break
        if math.dist(stage.place(0.0, place), place) > _AT_EXIT:
            open_ones.append(place)
    return Exits(np.array(open_ones).reshape(-1, 2), stage, random)


def _add_visitor(
    crowd: Crowd,
    stage: VisibleStage,
    exits: Exits,
    stays: list[Stay],
    random: np.random.Generator,
    dog: bool = False,
) -> None:
    """Add one who is on a stage during some of each of ``stays`` of the drone."""
    start = exits.places[random.integers(len(exits.places))]
    runs = not dog and random.random() < 0.15
    speed = random.uniform(2.3, 3.0) if runs else random.uniform(1.0, 1.7)
    visits: list[Visit] = []
    for stay in stays:
        way = math.dist(start, stage.place(0.0)) / speed
        begin = stay.begin + random.uniform(0.0, 0.6) * (stay.end - stay.begin) - way
        if visits and begin < visits[-1].end + _AWAY:
            continue
        visits.append(Visit(begin, begin + way + random.uniform(*_STAY), stage, exits))
    leader = len(crowd.walkers)
    walks = Walker(start, speed, visits=tuple(visits))
    crowd.add(walks, math.nan, 'runner' if runs else 'person')
    if dog:
        at = start + np.array([0.9, 0.4])
        crowd.add(Walker(at, 2.2, companion=leader, roams=2.5), math.nan, 'dog')
    elif not runs and random.random() < 0.3:
        apart = float(random.choice((-1.0, 1.0))) * random.uniform(0.6, 0.85)
        second = Walker(
            start + np.array([0.0, apart]), 1.15 * speed, companion=leader, beside=apart
        )
        crowd.add(second, math.nan, 'child' if random.random() < 0.25 else 'person')


def draw_trips(
    scenario: Scenario, site: Site, patrol: Patrol, seconds: float, random: np.random.Generator
) -> tuple[list[tuple[str, MoverCourse]], tuple[Block, ...]]:
    """Draw vehicles that make a round now and then, and where people must not walk meanwhile.

    They wait where the drone never sees them, and never two drive at a time.
    """
    with_cars = bool(site.roads)
    way = site.roads[0] if with_cars else site.paths[random.integers(len(site.paths))]
    kinds = ('car', 'cyclist') if with_cars else ('cyclist',)
    loop = loop_around(way, min(0.25 * way.width, 1.6))
    hidden = np.flatnonzero(patrol.never_seen(loop.points))
    if not len(hidden):
        return [], ()
    waits = loop.points[hidden] - patrol.stations[MAIN].stage
    wait = (
        loop.length
        / len(loop.points)
        * float(hidden[np.argmax(np.hypot(waits[:, 0], waits[:, 1]))])
    )
    fleet = [kind for kind in kinds for _ in range(_VEHICLES)]
    slow = _SLOW_YARD if scenario.surroundings == 'yard' else 1.0
    speeds = [random.uniform(*_SPEEDS[k]) * (slow if k == 'car' else 1.0) for k in fleet]
    trips: list[list[float]] = [[] for _ in fleet]
    now, turn = random.uniform(5.0, 40.0), int(random.integers(len(kinds)))
    while now < seconds:
        vehicle = _VEHICLES * turn + int(random.integers(_VEHICLES))
        trips[vehicle].append(now)
        now += loop.length / speeds[vehicle] + random.uniform(*_GAPS[len(kinds)])
        turn = (turn + 1) % len(kinds)
    traffic = [
        (kind, _course(loop, wait, begins, loop.length / speed, seconds))
        for kind, begins, speed in zip(fleet, trips, speeds, strict=True)
        if begins
    ]
    return traffic, ((carriageway(way),) if with_cars else ())


def _course(
    loop: Loop, wait: float, begins: list[float], duration: float, seconds: float
) -> MoverCourse:
    """Return the course of one that makes a round of ``duration`` s at each of ``begins`` s."""
    times = knots(seconds, STEP)
    rounds = sum(np.clip((times - begin) / duration, 0.0, 1.0) for begin in begins)
    rounds = gaussian_filter1d(np.asarray(rounds), _START / STEP, mode='nearest')
    distance = wait + loop.length * rounds
    ahead = loop.at(distance + 1.0) - loop.at(distance - 1.0)
    heading = np.unwrap(np.arctan2(ahead[:, 1], ahead[:, 0]))
    return MoverCourse(loop.at(distance), heading, float(times[0]), STEP)
