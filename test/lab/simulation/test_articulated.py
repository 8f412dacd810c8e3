from __future__ import annotations

import numpy as np
import pytest

from mmedge_lab.simulation.articulated import ArticulatedMover, MoverCourse, course_through
from mmedge_lab.simulation.build import build_world
from mmedge_lab.simulation.people import draw_clothing, person_shape
from mmedge_lab.simulation.skeleton import STANCES, Gait
from mmedge_lab.simulation.world import LABELS, Mover, World

SECONDS = 8.0
STEP = 0.1
H = 1e-5


@pytest.fixture(scope='module')
def worlds() -> list[World]:
    names = ('street_day_near', 'park_day_middle', 'yard_day_far', 'meadow_day_near')
    return [build_world(name, seed, SECONDS) for seed, name in enumerate(names * 2)]


def movers_by_label(worlds: list[World]) -> dict[str, list[Mover]]:
    movers: dict[str, list[Mover]] = {label: [] for label in LABELS}
    for world in worlds:
        for mover in world.movers:
            movers[mover.label].append(mover)
    return movers


def straight(speed: float, heading: float = 0.0) -> MoverCourse:
    """A walk at constant speed, long enough to be steady from 2 to 8 s."""
    along = speed * STEP * np.arange(100)
    line = np.outer(along, (np.cos(heading), np.sin(heading)))
    return course_through(line, np.full(100, heading), 0.0, STEP)


def walker(speed: float, pace: float = 1.4) -> ArticulatedMover:
    gait = Gait(pace=pace, stride=1.4)
    dress = draw_clothing(np.random.default_rng(1))
    shape = person_shape(1.75, 1.0, gait, STANCES[0], dress)
    return ArticulatedMover(1, 'person', 0.8, shape, straight(speed))


@pytest.mark.parametrize('label', LABELS)
def test_sphere_velocities_are_the_derivatives_of_the_centres(
    worlds: list[World], label: str
) -> None:
    movers = movers_by_label(worlds)[label]
    assert movers
    for mover in movers[:8]:
        for t in np.linspace(0.13, SECONDS - 0.17, 9):
            slope = (mover.body(t + H).centres - mover.body(t - H).centres) / (2 * H)
            np.testing.assert_allclose(mover.body(t).velocities, slope, atol=2e-3)


def test_what_moves_stands_on_the_ground(worlds: list[World]) -> None:
    """The lowest point is never far above nor below the ground."""
    for world in worlds:
        for mover in world.movers:
            for t in np.linspace(0.0, SECONDS, 17):
                body = mover.body(t)
                lowest = (body.centres[:, 2] - body.radii).min()
                # A runner flies between steps.
                assert -0.03 < lowest < 0.12, (mover.label, t)


@pytest.mark.parametrize('speed', [0.7, 1.4, 1.8])
def test_a_foot_on_the_ground_does_not_slide(speed: float) -> None:
    person = walker(speed)
    slid, stood = [], 0
    for t in np.linspace(3.0, 6.0, 400):
        body = person.body(t)
        for side in ('left', 'right'):
            part = body.names.index(f'{side}_shoe')
            ball = body.first[part] + 1
            if body.centres[ball, 2] < body.radii[ball] + 0.004:
                stood += 1
                slid.append(np.hypot(*body.velocities[ball, :2]))
    assert stood > 250
    assert np.percentile(slid, 90) < 0.12 * speed
