"""People of hard flights hold their place in many postures, or come from out of view."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from mmedge_lab.simulation.articulated import ArticulatedMover, MoverCourse
from mmedge_lab.simulation.build import build_world
from mmedge_lab.simulation.camera import CameraSimulator
from mmedge_lab.simulation.people import draw_clothing
from mmedge_lab.simulation.postures import KINDS, Posture, posed_shape
from mmedge_lab.simulation.standard_sets import standard_set
from mmedge_lab.simulation.world import Body, World

TIMES = np.arange(0.0, 5.0, 0.25)
# How high head and trunk are, in heights of the person, and the most that any part is, m.
TRUNK = {'lie': 0.18, 'sit': 0.49, 'crouch': 0.61}
HIGHEST = {'lie': 0.55, 'sit': 1.1, 'crouch': 1.3}


def bodies(posture: Posture, tall: float, seed: int) -> list[Body]:
    """Somebody's body at TIMES."""
    shape = posed_shape(posture, tall, 1.0, draw_clothing(np.random.default_rng(seed)))
    course = MoverCourse(np.zeros((91, 2)), np.zeros(91), -2.0, 0.1)
    mover = ArticulatedMover(1, 'person', 1.0, shape, course)
    return [mover.body(t) for t in TIMES]


@pytest.mark.parametrize(('kind', 'variant'), list(product(KINDS, range(3))))
def test_a_body_is_as_high_as_its_posture_and_never_below_the_ground(
    kind: str, variant: int
) -> None:
    for seed, tall in enumerate((1.2, 1.6, 1.75, 1.9)):
        seen = bodies(Posture(kind, variant, 0.0), tall, seed)
        # Arms may be raised, and what is carried.
        trunk = [seen[0].first[seen[0].names.index(name)] for name in ('head', 'torso', 'hips')]
        for body in seen:
            tops = body.centres[:, 2] + body.radii
            assert (body.centres[:, 2] - body.radii).min() > -0.005
            assert tops[trunk].max() == pytest.approx(
                TRUNK.get(kind, 0.98) * tall, abs=0.05 * tall
            )
            assert tops.max() < HIGHEST.get(kind, 2.5)


def test_who_waves_stands_in_place_and_moves_the_arms() -> None:
    seen = bodies(Posture('wave', 1, 0.0), 1.7, 1)
    speeds = np.array([np.linalg.norm(body.velocities, axis=1) for body in seen])
    hands = [seen[0].first[i] for i, name in enumerate(seen[0].names) if name.endswith('hand')]
    feet = [seen[0].first[i] for i, name in enumerate(seen[0].names) if name.endswith('shoe')]
    assert speeds[:, hands].max(axis=0).min() > 0.8
    assert speeds[:, feet].max() < 0.02


def people(world: World, t: float) -> np.ndarray:
    return np.array([m.state(t).position[:2] for m in world.movers if m.label == 'person'])


def test_in_flights_of_still_people_most_hold_their_place() -> None:
    world = build_world('meadow_day_near', 6000, 8.0, condition='still')
    assert (people(world, 6.0) == people(world, 1.0)).all(axis=1).mean() > 0.5


def test_another_condition_shows_the_same_people() -> None:
    fog, lens = (build_world('meadow_day_near', 6000, 3.0, condition=c) for c in ('fog', 'lens'))
    assert np.array_equal(people(fog, 2.0), people(lens, 2.0))


def test_a_third_of_those_who_walk_come_into_view() -> None:
    world = build_world('meadow_day_near', 6000, 8.0, condition='lost')
    camera = CameraSimulator(world)
    seen = np.array([[o.box is not None for o in camera.truth(t)] for t in (0.0, 3.0, 6.0)])
    assert (~seen[0] & seen[1:].any(axis=0)).sum() >= 2


def test_on_a_patrol_nobody_is_in_view_for_a_minute_and_then_somebody_for_a_while() -> None:
    flight = standard_set('patrol_calibration')[0]
    world = build_world(flight.scenario, flight.seed, flight.seconds, True, flight.condition)
    camera = CameraSimulator(world)
    seen = np.array(
        [
            any(o.label == 'person' and o.visibility > 0.0 for o in camera.truth(t))
            for t in np.arange(0.0, flight.seconds, 4.0)
        ]
    )
    assert not seen[:15].any()
    assert 0.25 < seen.mean() < 0.6
