"""What fog, darkness and things on the lens take from the pictures of hard flights."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache

import cv2
import hand_made_world as made
import numpy as np
import pytest

from mmedge_lab.simulation.build import build_world
from mmedge_lab.simulation.camera import CameraSimulator
from mmedge_lab.simulation.camera_faults import CameraFaults
from mmedge_lab.simulation.hardships import Hardships, LensFaults, Outage, draw_hardships
from mmedge_lab.simulation.light import hard_light
from mmedge_lab.simulation.world import Mover, World
from mmedge_ros.core.data_types import Box

CLEAR = draw_hardships('lost', 1, 8.0)
AHEAD = np.array([1.0, 0.0])
MIDDLE = Box(300.0, 200.0, 340.0, 280.0)


def park(hard: Hardships, *movers: Mover) -> World:
    world = made.park(*movers)
    return replace(world, hard=hard, light=hard_light(world.light, hard, AHEAD, 1))


@cache
def with_lens(covered: bool = False, dirt: float = 0.0, glare: float = 0.0) -> World:
    spans = (Outage(0.5, 2.0),) if covered else ()
    hard = replace(CLEAR, lens=LensFaults(spans, dirt, glare))
    return park(hard, made.person(1, 8.0, 0.0))


def grey_levels(world: World, effects: bool) -> tuple[float, list[float]]:
    """Means of a picture, and of the middles of the boxes of people."""
    picture = CameraSimulator(world, effects).picture(1.0)
    image = cv2.cvtColor(picture.image, cv2.COLOR_BGR2GRAY)
    levels = []
    for seen in picture.objects:
        if seen.label == 'person' and seen.box is not None:
            x, y = (round(0.5 * (a + b)) for a, b in zip(seen.box[:2], seen.box[2:], strict=True))
            levels.append(float(image[y - 6 : y + 6, x - 2 : x + 3].mean()))
    return float(image.mean()), levels


def test_fog_leaves_five_per_cent_of_a_contrast_at_the_visibility() -> None:
    people = []
    for number, level in ((1, 250), (2, 10)):
        person = made.person(number, math.sqrt(12.0**2 - 2.0**2), 2.0 * number - 3.0)
        person.parts = tuple((name, (level,) * 3, spheres) for name, _, spheres in person.parts)
        people.append(person)
    foggy = park(replace(CLEAR, fog=12.0), *people)
    clear = replace(foggy, light=replace(foggy.light, fog_visibility=math.inf))
    in_fog, in_air = (grey_levels(world, effects=False)[1] for world in (foggy, clear))
    # Levels are whole numbers, so a difference of 8 has an error of some per cent.
    left = (in_fog[0] - in_fog[1]) / (in_air[0] - in_air[1])
    assert left == pytest.approx(0.05, abs=0.01)


def test_without_light_pictures_are_noise_that_shows_nobody_and_no_lamp_is_lit() -> None:
    world = build_world('street_lamps_near', 5, 2.0, condition='dark')
    assert world.lamps
    assert not any(lamp.lit for lamp in world.lamps)
    luma, people = grey_levels(world, effects=True)
    assert luma < 8.0
    assert len(people) > 1
    assert people == pytest.approx([luma] * len(people), abs=2.0)  # of 60 noisy pixels


def test_a_covered_picture_has_no_edges() -> None:
    pattern = np.random.default_rng(3).integers(0, 256, (480, 640, 3)).astype(np.uint8)
    covered = CameraFaults(with_lens(covered=True)).strike(pattern, 1.0).astype(float)
    assert max(np.abs(np.diff(covered, axis=axis)).max() for axis in (0, 1)) <= 1.0
    assert covered.max() < 80.0


@pytest.mark.parametrize(('dirt', 'glare', 'least_elsewhere'), [(1.0, 0.0, 0.74), (0.0, 1.0, 0.6)])
def test_dirt_and_glare_take_contrast_where_they_are_and_lay_a_veil_elsewhere(
    dirt: float, glare: float, least_elsewhere: float
) -> None:
    faults = CameraFaults(with_lens(dirt=dirt, glare=glare))
    pattern = np.random.default_rng(3).integers(0, 2, (480, 640, 1)).astype(np.uint8)
    white_and_black = np.tile(255 * pattern, (1, 1, 3))
    struck, other = (
        faults.strike(picture, 1.0).astype(float)
        for picture in (white_and_black, ~white_and_black)
    )
    kept = np.abs(struck - other).mean(axis=2) / 255.0
    assert np.abs(kept - faults.kept(1.0)).max() < 0.1
    assert kept.min() < 0.05
    assert (kept > least_elsewhere).mean() > 0.3
    if glare:
        assert struck[kept < 0.05].min() > 215.0


def test_glare_follows_its_source_as_the_drone_turns() -> None:
    world = replace(with_lens(glare=1.0), path=made.StraightFlight(height=3.0, yaw_rate=0.2))
    faults = CameraFaults(world)
    columns = [int(np.argmin(faults.kept(t).min(axis=0))) for t in (0.0, 0.3)]
    assert columns[1] > columns[0]
    away = replace(world.light, sun_direction=-world.light.sun_direction)
    assert CameraFaults(replace(world, light=away)).kept(0.0).min() == 1.0


def test_the_camera_is_clear_for_a_person_unless_something_hides_it() -> None:
    def clear(hard: Hardships | None, t: float = 1.0, distance: float = 10.0) -> bool:
        return CameraFaults(replace(made.park(), hard=hard)).clear(t, MIDDLE, distance)

    assert clear(None)
    assert clear(CLEAR)
    silent = replace(CLEAR, camera_silent=(Outage(0.5, 1.5),))
    assert [clear(silent, t) for t in (0.0, 1.0, 1.5)] == [True, False, True]
    assert not clear(with_lens(covered=True).hard)
    assert not clear(replace(CLEAR, unlit=True))
    fog = replace(CLEAR, fog=12.0)
    assert [clear(fog, distance=d) for d in (11.0, 13.0)] == [True, False]
    sliver = Box(639.8, 200.0, 640.0, 240.0)  # at the picture's edge
    assert CameraFaults(replace(made.park(), hard=CLEAR)).clear(1.0, sliver, 5.0)


def test_who_lies_mostly_in_dirt_or_in_the_dazzling_disc_is_not_clear() -> None:
    for world in (with_lens(dirt=1.0), with_lens(glare=1.0)):
        faults = CameraFaults(world)
        kept = cv2.blur(faults.kept(1.0), (21, 21))[10:-10, 10:-10]
        for place, is_clear in ((kept.argmin(), False), (kept.argmax(), True)):
            y, x = (float(i) for i in np.unravel_index(place, kept.shape))
            assert faults.clear(1.0, Box(x, y, x + 21.0, y + 21.0), 5.0) == is_clear
