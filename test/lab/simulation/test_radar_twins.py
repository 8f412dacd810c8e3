"""Simulated twins of recorded scenes return about as much, as spread, as the radar did.

What stands around is guessed from where static returns lie.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from hand_made_world import StraightFlight, house, world

from mmedge_lab.simulation.articulated import ArticulatedMover, course_through
from mmedge_lab.simulation.hardships import draw_hardships
from mmedge_lab.simulation.people import draw_person
from mmedge_lab.simulation.radar import RadarSimulator
from mmedge_lab.simulation.world import Building, Lamp, Mover
from mmedge_ros.core.data_types import FloatArray
from mmedge_ros.sensing.radar.chirp_configuration import (
    configurations_folder,
    parse_configuration,
    read_configuration,
)

SCANS = 40
TURN = np.arange(-1.0, 6.0, 0.1)  # s


def swaying(number: int, middle: FloatArray, sway: FloatArray, rate: float) -> ArticulatedMover:
    phase = rate * TURN + 2.1 * number
    places = middle + np.column_stack([np.sin(phase), np.cos(phase)]) * sway
    shape, course = draw_person(np.random.default_rng(number)), (np.zeros(len(TURN)), -1.0, 0.1)
    return ArticulatedMover(number, 'person', 0.8, shape, course_through(places, *course))


def twin(movers: list[Mover], walls: list[Building], lamps: list[Lamp], chirps: Any) -> FloatArray:
    """Return all returns to a rig 1 m above the ground as `figures` takes them."""
    scene = world(movers, walls, lamps=lamps, path=StraightFlight(height=1.0), seconds=4.0)
    radar = RadarSimulator(replace(scene, hard=draw_hardships('still', 1, 8.0)), chirps=chirps)
    found = np.concatenate([radar.scan(0.04 * number, number) for number in range(SCANS)])
    return np.column_stack([found[:, :4], found[:, 4:].sum(axis=1)]).astype(np.float64)


def figures(returns: FloatArray, scans: int) -> FloatArray:
    """Count returns (N, 5), place, speed, intensity, by scan: all, moving, still beyond 0.3 m.

    Then come the spread of speeds, and of intensities, dB, of those that move and stand.
    """
    moves, near = np.abs(returns[:, 3]) > 0.1, np.linalg.norm(returns[:, :3], axis=1) < 0.3
    parts = np.ones(len(returns), bool), moves, ~moves & ~near
    spread = [returns[moves, 3].std(), *(returns[part, 4].std() for part in parts[1:])]
    return np.array([*(part.sum() / scans for part in parts), *spread])


def pole(x: float, y: float, height: float) -> Lamp:
    return Lamp(np.array([x, y]), height, 1.0, False)


def test_three_walkers_at_night(data_folder: Path) -> None:
    file = np.load(data_folder / 'millieye/20200729-213410_radar.npz')
    begin = file['offset'][7]  # earlier scans hold garbage
    columns = [file[name][begin:] for name in ('x', 'y', 'z', 'velocity', 'x')]
    sway = np.array([0.8, 0.8])
    walkers = [swaying(i, np.array([4.5, 0.9 * (i - 1)]), sway, 0.7) for i in range(3)]
    walls = [house(11.5, -4.0, 8.0), house(6.5, -7.0, 8.0, 3.0, 4.0)]
    poles = [pole(7.5, 4.5, 4.0), pole(4.5, -2.5, 1.2), pole(5.0, 3.4, 1.2)]
    ours = twin(walkers, walls, poles, read_configuration(data_folder / 'millieye/indoor.cfg'))
    # It has no intensities.
    ratio = figures(ours, SCANS)[:4] / figures(np.column_stack(columns), 400 - 7)[:4]
    assert (np.abs(np.log2(ratio)) < 1.0).all(), ratio


def test_one_person_who_exercises_in_a_room(data_folder: Path) -> None:
    file = np.load(data_folder / 'radhar/test.npz')
    theirs = file['points'].astype(np.float64)
    theirs = theirs[np.abs(theirs[:, 3]) < 10.0]
    # No file is published. This one has the recording's bins (3.9 cm up to 5 m, 0.61 m/s), and
    # groups peaks along Doppler only, as the recording shows.
    text = (configurations_folder() / 'iwr1443_sdk2_20hz.cfg').read_text()
    for old, new in (
        ('0 77 20 7 40 0 0 18 1 128 4000', '0 77 7.3 2 57.1 0 0 70 1 128 2333'),
        ('0 2 32 0 50', '0 2 16 0 33.333'),
        ('0 2 8 4 3 0 960', '0 2 8 4 3 0 1280'),
        ('peakGrouping 1 1 1 1 114', 'peakGrouping 1 0 1 1 126'),
    ):
        text = text.replace(old, new)
    walls, poles = [house(4.6, 0.0, 6.0, 1.0, 3.0)], [pole(1.3, 0.0, 1.0), pole(2.85, -0.3, 1.8)]
    person = swaying(0, np.array([2.0, -0.1]), np.array([0.13, 0.0]), 2.5)
    ours = twin([person], walls, poles, parse_configuration(text))
    # The recording's intensity is ten times the logarithm of an amplitude.
    ours[:, 4] *= 0.5
    ratio = figures(ours, SCANS) / figures(theirs, len(file['points_per_frame']))
    assert (np.abs(np.log2(ratio)) < 1.0).all(), ratio
