"""The radar of hard worlds: its chirps, budget and clutter agree with closed forms."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hand_made_world import Ball, StraightFlight, StraightMover, person, world
from numpy.typing import NDArray

from mmedge_lab.simulation import radar_ground
from mmedge_lab.simulation.hardships import Span, draw_hardships
from mmedge_lab.simulation.radar import ChirpRadar, RadarSimulator, posture_loss
from mmedge_lab.simulation.radar_ground import GroundClutter, sigma0
from mmedge_lab.simulation.world import Mover, World
from mmedge_ros.core.data_types import FloatArray

ALOFT = 200.0  # the ground is not heard
CHIRPS = 'iwr1443_sdk2_20hz'


def hard(*movers: Mover, height: float = 3.0, speed: float = 0.0, **faults: object) -> World:
    path = StraightFlight((speed, 0.0, 0.0), height)
    faults = {'chirps': CHIRPS, **faults}
    hardships = replace(draw_hardships('still', 1, 8.0), **faults)  # type: ignore[arg-type]
    return replace(world(movers, path=path), hard=hardships)


def board(scene: World) -> ChirpRadar:
    return RadarSimulator(scene)._board


def ball(x: float, y: float = 0.0, speed: float = 0.0, number: int = 1) -> Ball:
    return Ball((x, y), (speed, 0.0), height=ALOFT, radius=0.1, reflectivity=5.0, id=number)


def returns(scene: World, count: int = 16) -> list[NDArray[np.float32]]:
    """Return scans of one instant without what is at the antenna."""
    radar = RadarSimulator(scene)
    found = [radar.scan(0.0, number) for number in range(count)]
    return [scan[np.linalg.norm(scan[:, :3], axis=1) > 1.0] for scan in found]


def lying(x: float, y: float) -> StraightMover:
    upright = person(1, x, y)
    parts = tuple(
        (name, colour, tuple((z - 0.9, side, ahead + 0.2, r) for ahead, side, z, r in spheres))
        for name, colour, spheres in upright.parts
    )
    return replace(upright, parts=parts)


@pytest.mark.parametrize('speed', [2.0, -4.5, 8.0])
def test_range_and_speed_are_those_of_the_nearest_bin_and_wrap_around(speed: float) -> None:
    scene = hard(ball(20.0, 0.0, speed), height=ALOFT)
    chirps = board(scene).link.chirps
    found = np.concatenate(returns(scene)).astype(np.float64)
    expected = np.rint(19.9 / chirps.range_step) * chirps.range_step
    assert np.linalg.norm(found[:, :3], axis=1) == pytest.approx(expected, abs=1e-3)
    wrapped = (speed + chirps.max_speed) % (2.0 * chirps.max_speed) - chirps.max_speed
    assert found[:, 3] == pytest.approx(wrapped, abs=0.5 * chirps.velocity_step + 1e-6)


def test_wrapped_speed_turns_the_angle_by_the_phase_between_transmitters() -> None:
    scene = hard(ball(20.0, 0.0, 8.0), height=ALOFT)
    # Once around, the second of three transmitters is 2 pi / 3 off. It feeds half of the row.
    half = np.repeat([1.0, np.exp(2j * np.pi / 3)], 4)
    expected = 2.0 * np.argmax(np.abs(np.fft.fft(half, 512))) / 512
    found = np.concatenate(returns(scene))
    assert np.median(found[:, 1] / np.linalg.norm(found[:, :3], axis=1)) == pytest.approx(
        expected, abs=1 / 32 + 0.01
    )
    assert expected > 0.1


def test_people_in_one_azimuth_cell_merge_and_apart_are_two() -> None:
    def per_scan(cosine: float) -> float:
        far = [ball(15.0 * np.sqrt(1 - s * s), 15.0 * s, 0.0, 2) for s in (-cosine, cosine)]
        found = returns(hard(*far, height=ALOFT), 30)
        return np.mean([len(scan) for scan in found])  # type: ignore[return-value]

    # A cell of eight elements is 0.25 wide.
    assert per_scan(0.05) < 1.1
    assert per_scan(0.25) > 1.15


def test_a_board_of_two_transmitters_has_no_elevation_and_one_of_three_has() -> None:
    for chirps, least, most in (('iwr1642_sdk3_20hz', 0.0, 0.0), (CHIRPS, 1.5, 3.0)):
        above = replace(ball(12.0), height=ALOFT + 2.0)
        found = np.concatenate(returns(hard(above, height=ALOFT, chirps=chirps)))
        assert len(found) > 8
        assert least <= np.median(found[:, 2]) <= most


def test_ground_sends_back_sigma0_times_its_area(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(radar_ground, 'TEXTURE', 0.0)
    monkeypatch.setattr(radar_ground, 'FLIGHT_SPREAD', 0.0)
    ground = GroundClutter(hard())
    ranges: FloatArray = np.arange(1.0, 200.0) * 0.15
    echoes = ground.echoes(np.array([0.0, 0.0, 3.0]), 0.3, ranges)
    rings = echoes.reflectivity.reshape(-1, len(ranges)).sum(axis=0)
    level = sigma0(np.array(-12.0), 3.0 / ranges[99])
    assert level == pytest.approx(-12.0 - 10 * np.log10(5.0))
    # 150 degrees of a ring.
    expected = 10 ** (0.1 * level) * np.radians(150.0) * ranges[99] * 0.15
    assert rings[99] == pytest.approx(expected)
    assert not rings[ranges < 3.0].any()
    distance = np.linalg.norm(echoes.positions - [0.0, 0.0, 3.0], axis=1)
    heard = distance.reshape(-1, len(ranges))[:, ranges > 3.0]
    assert heard == pytest.approx(np.tile(ranges[ranges > 3.0], (len(heard), 1)))


def test_the_drones_own_speed_smears_the_ground_over_doppler() -> None:
    speeds = []
    for flown in (0.0, 4.0):
        scene = board(hard(speed=flown))
        pose = scene._world.path.state(0.0).pose
        still = scene._still(0.0, pose)
        signals = scene._signals(0.0, pose, np.array([flown, 0.0, 0.0]), still)
        is_ring = np.abs(signals.distance - 10.0) < 0.131
        speeds.append(signals.speed[is_ring])
    flat = np.sqrt(1.0 - (3.0 / signals.distance[is_ring][0]) ** 2)
    assert not speeds[0].any()
    # Straight ahead, and at the edge of what is looked at: 75 degrees less half a step.
    assert speeds[1].min() == pytest.approx(-4.0 * flat, abs=0.01)
    assert speeds[1].max() == pytest.approx(-4.0 * flat * np.cos(np.radians(72.9)), abs=0.01)


def test_posture_and_aspect_weaken_a_person_as_stated() -> None:
    eye = np.array([0.0, 0.0, 3.0])
    standing = [posture_loss(person(1, 9.0, 0.0, turn), 0.0, eye) for turn in (0.0, 1.571, 3.142)]
    assert standing == pytest.approx([0.0, 8.0, 0.0], abs=1e-3)
    assert posture_loss(lying(9.0, 0.0), 0.0, eye) == pytest.approx(15.0)


@pytest.mark.parametrize('chirps', [CHIRPS, 'iwr6843_sdk3_20hz'])
def test_people_are_returned_as_often_as_the_budget_says(chirps: str) -> None:
    places = [(r, 0.5 * (-1) ** i * r) for i, r in enumerate(np.arange(5.5, 26.0, 2.4))]
    people = [
        person(i, *place, np.arctan2(*place[::-1]), (-1.3, 0.0)) for i, place in enumerate(places)
    ]
    scene = hard(*people, chirps=chirps)
    expected, link = RadarSimulator(scene).detection_probability(0.0), board(scene).link
    ranges = np.array([np.hypot(np.hypot(*place), 2.0) for place in places])
    found = np.zeros((60, len(people)))
    for scan, hits in zip(returns(scene, len(found)), found, strict=True):
        moving = scan[np.abs(scan[:, 3] + 1.15) < 2.0 * link.chirps.velocity_step]
        apart = np.abs(np.linalg.norm(moving[:, :3], axis=1)[:, None] - ranges)
        hits[:] = (apart < 0.8).any(axis=0)
    stated = np.array([expected[mover.id] for mover in people])
    for low in range(5, 30, 5):
        chosen = (ranges >= low) & (ranges < low + 5)
        assert found[:, chosen].mean() == pytest.approx(stated[chosen].mean(), abs=0.1)
    assert stated[0] > 0.95 > stated[-1] + 0.3


def test_who_lies_fades_earlier_and_a_brown_out_or_silence_hides_people() -> None:
    def chance(mover: Mover, **faults: object) -> float:
        return RadarSimulator(hard(mover, **faults)).detection_probability(0.5)[1]

    assert chance(person(1, 9.0, 0.0)) > 0.5 > 0.1 > chance(lying(9.0, 0.0))
    walking = person(1, 12.0, 0.0, velocity=(-1.3, 0.0))
    now = (Span(0.0, 1.0),)
    assert chance(walking) > 0.9 > 0.2 > chance(walking, radar_weak=now, brown_out=20.0)
    assert chance(walking, radar_silent=now) == 0.0
    assert RadarSimulator(world([walking])).detection_probability(0.5) == {}
