"""What movers look like in words."""

from __future__ import annotations

import numpy as np
import pytest

from mmedge_lab.simulation.appearance import COLOURS, colour_name, look_of, looks_of
from mmedge_lab.simulation.build import build_world
from mmedge_lab.simulation.cast import _draw_shape


@pytest.mark.parametrize(
    ('bgr', 'name'),
    [
        ((28, 28, 30), 'black'),
        ((45, 60, 80), 'black'),
        ((95, 92, 90), 'grey'),
        ((160, 160, 160), 'grey'),
        ((225, 225, 225), 'white'),
        ((90, 50, 35), 'blue'),
        ((35, 30, 140), 'red'),
        ((180, 60, 220), 'red'),
        ((105, 135, 170), 'brown'),
        ((30, 200, 230), 'yellow'),
        ((60, 90, 50), 'green'),
        ((220, 120, 140), 'blue'),
    ],
)
def test_colours_have_the_names_that_people_use(bgr: tuple[int, int, int], name: str) -> None:
    assert colour_name(bgr) == name


def test_every_colour_has_one_of_eight_names() -> None:
    random = np.random.default_rng(0)
    names = {colour_name(random.integers(0, 256, 3)) for _ in range(5000)}
    assert names == set(COLOURS)


def test_the_looks_of_a_flight_follow_from_scenario_and_seed_whatever_the_light() -> None:
    day, night = (build_world(f'street_{light}_middle', 4007, 2.0) for light in ('day', 'night'))
    assert looks_of(day.movers) == looks_of(night.movers)
    assert {mover.label for mover in day.movers} == {
        look.label for look in looks_of(day.movers).values()
    }


def test_people_wear_something_and_cars_do_not() -> None:
    world = build_world('street_day_middle', 4010, 2.0)
    for mover in world.movers:
        look = look_of(mover)
        assert look.wears == (look.label in ('person', 'cyclist'))
        assert look.colour in COLOURS


class _Mover:
    label = 'person'

    def __init__(self, kind: str, seed: int) -> None:
        self.id = seed
        self.shape = _draw_shape(kind, np.random.default_rng(seed))

    def body(self, _: float) -> object:
        shape = self.shape
        centres = shape.resting[0]

        class Body:
            names, colours, radii, first = shape.names, shape.colours, shape.radii, shape.first

        Body.centres = centres  # type: ignore[attr-defined]
        return Body


def test_children_are_told_by_their_height() -> None:
    for seed in range(20):
        assert look_of(_Mover('child', seed)).child  # type: ignore[arg-type]
        assert not look_of(_Mover('person', seed)).child  # type: ignore[arg-type]
