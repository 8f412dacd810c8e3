from __future__ import annotations

import numpy as np
import pytest

from mmedge_lab.simulation.articulated import ArticulatedMover, Course, course_through
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


def straight(speed: float, heading: float = 0.0) -> Course:
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


@pytest.mark.parametrize('label', LABELS)
def test_a_movers_velocity_is_the_derivative_of_its_place(worlds: list[World], label: str) -> None:
    for mover in movers_by_label(worlds)[label][:8]:
        for t in np.linspace(0.13, SECONDS - 0.17, 9):
            slope = (mover.state(t + H).position - mover.state(t - H).position) / (2 * H)
            np.testing.assert_allclose(mover.state(t).velocity, slope, atol=1e-5)


def test_every_part_has_spheres_a_colour_and_a_name(worlds: list[World]) -> None:
    for world in worlds:
        for mover in world.movers:
            body = mover.body(1.0)
            parts = len(body.names)
            assert len(body.first) == parts + 1
            assert (np.diff(body.first) > 0).all()
            assert body.first[0] == 0
            assert body.first[-1] == len(body.radii) == len(body.centres) == len(body.velocities)
            assert body.colours.shape == (parts, 3)
            assert body.colours.dtype == np.uint8
            assert (body.radii > 0.0).all()


def test_what_moves_stands_on_the_ground(worlds: list[World]) -> None:
    """The lowest point is never far above nor below the ground."""
    for world in worlds:
        for mover in world.movers:
            for t in np.linspace(0.0, SECONDS, 17):
                body = mover.body(t)
                lowest = (body.centres[:, 2] - body.radii).min()
                # A runner flies between steps.
                assert -0.03 < lowest < 0.12, (mover.label, t)


def test_sizes_are_those_of_their_kind(worlds: list[World]) -> None:
    heights = {
        'person': (1.05, 2.6),
        'cyclist': (1.4, 2.15),
        'car': (1.35, 2.0),
        'dog': (0.4, 1.0),
    }
    lengths = {'person': (0.3, 2.0), 'cyclist': (1.5, 2.0), 'car': (3.7, 4.9), 'dog': (0.5, 1.4)}
    for label, movers in movers_by_label(worlds).items():
        for mover in movers:
            body = mover.body(2.0)
            height = (body.centres[:, 2] + body.radii).max()
            assert heights[label][0] < height < heights[label][1]
            heading = mover.state(2.0).heading
            along = body.centres[:, :2] @ (np.cos(heading), np.sin(heading))
            length = (along + body.radii).max() - (along - body.radii).min()
            assert lengths[label][0] < length < lengths[label][1]


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


def test_legs_keep_their_length_while_walking() -> None:
    person = walker(1.4)
    lengths = {'thigh': [], 'shin': []}
    for t in np.linspace(3.0, 5.0, 101):
        body = person.body(t)
        for bone, values in lengths.items():
            begin = body.first[body.names.index(f'left_{bone}')]
            values.append(np.linalg.norm(body.centres[begin + 1] - body.centres[begin]))
    assert np.ptp(lengths['thigh']) < 0.02
    assert np.ptp(lengths['shin']) < 0.03
    assert np.mean(lengths['thigh']) == pytest.approx(0.245 * 1.75, rel=0.03)


def test_limbs_swing_faster_than_the_body_moves() -> None:
    """What a radar sees as micro-Doppler: a swinging foot passes the body."""
    person = walker(1.4)
    fastest = max(person.body(t).velocities[:, 0].max() for t in np.linspace(3.0, 5.0, 101))
    assert 2.5 * 1.4 < fastest < 5.0 * 1.4


def test_somebody_who_stands_still_keeps_the_feet_where_they_are() -> None:
    person = walker(0.0)
    for t in np.linspace(2.0, 6.0, 9):
        body = person.body(t)
        shoe = body.first[body.names.index('left_shoe')]
        assert np.linalg.norm(body.velocities[shoe]) < 1e-6
        assert np.linalg.norm(person.state(t).velocity) < 1e-9


def test_a_walker_faces_where_it_goes() -> None:
    for heading in (-3.0, 0.0, 2.0):
        course = straight(1.2, heading)
        turned = np.angle(np.exp(1j * (course.headings[30:70] - heading)))
        assert np.abs(turned).max() < 1e-6
