"""The radar of hard worlds: its chirps, budget and clutter agree with closed forms."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hand_made_world import Ball, StraightFlight, StraightMover, person, world
from numpy.typing import NDArray

from mmedge_lab.simulation import radar_ground
from mmedge_lab.simulation.hardships import Outage, draw_hardships
from mmedge_lab.simulation.radar import RadarSimulator, posture_loss
from mmedge_lab.simulation.radar_link import RadarLink
from mmedge_lab.simulation.world import Mover, World
from mmedge_ros.core.data_types import FloatArray
from mmedge_ros.sensing.radar.chirp_configuration import (
    configurations_folder,
    parse_configuration,
)

ALOFT = 200.0  # the ground is not heard
CHIRPS = 'iwr1443_sdk2_20hz'
EYE = np.array([0.0, 0.0, 3.0])


def hard(*movers: Mover, height: float = 3.0, speed: float = 0.0, **faults: object) -> World:
    faults = {'chirps': CHIRPS, **faults}
    hardships = replace(draw_hardships('still', 1, 8.0), **faults)  # type: ignore[arg-type]
    path = StraightFlight((speed, 0.0, 0.0), height)
    return replace(world(movers, path=path), hard=hardships)


def ball(x: float, y: float = 0.0, speed: float = 0.0, up: float = 0.0) -> Ball:
    return Ball((x, y), (speed, 0.0), ALOFT + up, radius=0.1, reflectivity=5.0)


def returns(scene: World, count: int = 16) -> list[NDArray[np.float32]]:
    """Return scans of one instant without what is at the antenna."""
    radar = RadarSimulator(scene)
    found = [radar.scan(0.0, number) for number in range(count)]
    return [scan[np.linalg.norm(scan[:, :3], axis=1) > 1.0] for scan in found]


class Bank:
    def heights(self, places: FloatArray) -> FloatArray:
        return np.where(np.abs(places[..., 0] - 6.0) < 1.0, 2.8, 0.0)


def lying(x: float) -> StraightMover:
    def laid(spheres):  # type: ignore[no-untyped-def]
        return tuple((z - 0.9, side, ahead + 0.2, r) for ahead, side, z, r in spheres)

    upright = person(1, x, 0.0)
    return replace(upright, parts=tuple((*part[:2], laid(part[2])) for part in upright.parts))


def test_thresholds_and_lists_are_those_of_the_demo_for_each_sdk() -> None:
    def link(name: str, old: str = '', new: str = '') -> RadarLink:
        text = (configurations_folder() / f'{name}.cfg').read_text()
        return RadarLink(parse_configuration(text.replace(old, new)))

    def decibels(*arguments: str) -> list[float]:
        return [round(rule.decibel, 3) for rule in link(*arguments).thresholds]

    # Twelve antennas fill a sum of sixteen to three quarters, eight one of eight.
    assert decibels(CHIRPS) == [15.0]
    assert decibels(CHIRPS, 'frameCfg 0 2', 'frameCfg 0 1') == [11.25]
    assert decibels('iwr1642_sdk2_20hz') == [15.0, 15.0]
    assert decibels('iwr1642_sdk3_20hz') == [15.0, 15.0]
    assert decibels('iwr1642_sdk3_20hz', ' 15 1\n', ' 1280 1\n') == [15.0, 15.0]
    assert link('iwr1642_sdk2_20hz').most < 100 < link('iwr1642_sdk3_20hz').most


@pytest.mark.parametrize('speed', [2.0, -4.5, 8.0])
def test_range_and_speed_are_those_of_the_nearest_bin_and_wrap_around(speed: float) -> None:
    scene = hard(ball(20.0, 0.0, speed), height=ALOFT)
    chirps = RadarSimulator(scene)._board.link.chirps
    found = np.concatenate(returns(scene)).astype(np.float64)
    expected = np.rint(19.9 / chirps.range_step) * chirps.range_step
    assert np.linalg.norm(found[:, :3], axis=1) == pytest.approx(expected, abs=1e-3)
    wrapped = (speed + chirps.max_speed) % (2.0 * chirps.max_speed) - chirps.max_speed
    assert found[:, 3] == pytest.approx(wrapped, abs=0.5 * chirps.velocity_step + 1e-6)


def test_wrapped_speed_turns_the_angle_by_the_phase_between_transmitters() -> None:
    # Once around, the second of three transmitters, half of the row, is 2 pi / 3 off.
    half = np.repeat([1.0, np.exp(2j * np.pi / 3)], 4)
    expected = 2.0 * np.argmax(np.abs(np.fft.fft(half, 512))) / 512
    found = np.concatenate(returns(hard(ball(20.0, 0.0, 8.0), height=ALOFT)))
    assert expected > 0.1
    assert np.median(found[:, 1]) / 19.9 == pytest.approx(expected, abs=1 / 32 + 0.01)


def test_people_in_one_azimuth_cell_merge_and_apart_are_two() -> None:
    def per_scan(cosine: float) -> float:
        pair = [ball(15.0 * np.sqrt(1 - s * s), 15.0 * s) for s in (-cosine, cosine)]
        return float(np.mean([len(scan) for scan in returns(hard(*pair, height=ALOFT), 30)]))

    # A cell of eight elements is 0.25 wide.
    assert per_scan(0.05) < 1.1 < 1.15 < per_scan(0.25)


def test_an_echo_grouped_with_a_stronger_one_is_returned_as_seldom_as_stated() -> None:
    weak = replace(ball(12.0, -9.0), id=2, reflectivity=1.5)
    stated, found = [], []
    for apart in (0.3, 1.0):
        scene = hard(weak, ball(12.0 + apart, 9.0), height=ALOFT)
        stated.append(RadarSimulator(scene).detection_probability(0.0)[2])
        found.append(np.mean([(scan[:, 1] < -5.0).any() for scan in returns(scene, 60)]))
    assert found == pytest.approx(stated, abs=0.12)
    assert 2.0 * stated[0] < stated[1]


def test_only_boards_with_three_transmitters_tell_elevation() -> None:
    for chirps, least, most in (('iwr1642_sdk3_20hz', 0.0, 0.0), (CHIRPS, 1.5, 3.0)):
        scene = hard(ball(12.0, up=2.0), height=ALOFT, chirps=chirps)
        assert least <= np.median(np.concatenate(returns(scene))[:, 2]) <= most


def test_ground_sends_back_sigma0_times_its_area(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(radar_ground, 'TEXTURE', 0.0)
    monkeypatch.setattr(radar_ground, 'FLIGHT_SPREAD', 0.0)
    ranges: FloatArray = np.arange(1.0, 200.0) * 0.15
    echoes = radar_ground.GroundClutter(hard()).echoes(EYE, 0.3, ranges)
    rings = echoes.reflectivity.reshape(-1, len(ranges)).sum(axis=0)
    # Grass, -12 dB x sin(grazing), over 150 degrees of the ring of 15 m.
    assert rings[99] == pytest.approx(10**-1.2 * 0.2 * np.radians(150.0) * 15.0 * 0.15)
    assert not rings[ranges < 3.0].any()
    distance = np.linalg.norm(echoes.positions - EYE, axis=1).reshape(-1, len(ranges))
    assert distance[:, 99] == pytest.approx(15.0)


def test_the_drones_own_speed_smears_the_ground_over_doppler() -> None:
    for flown in (0.0, 4.0):
        board = RadarSimulator(hard(speed=flown))._board
        pose = board._world.path.state(0.0).pose
        signals = board._signals(0.0, pose, np.array([flown, 0, 0]), board._still(0.0, pose))
        is_ring = np.abs(signals.distance - 10.0) < 0.131
        speeds, flat = (
            signals.speed[is_ring],
            np.sqrt(1.0 - 9.0 / signals.distance[is_ring][0] ** 2),
        )
        # Straight ahead, and at the edge of what is looked at: 75 degrees less half a step.
        assert speeds.min() == pytest.approx(-flown * flat, abs=0.01)
        assert speeds.max() == pytest.approx(-flown * flat * np.cos(np.radians(72.9)), abs=0.01)


@pytest.mark.parametrize('chirps', [CHIRPS, 'iwr6843_sdk3_20hz'])
def test_people_are_returned_as_often_as_the_budget_says(chirps: str) -> None:
    places = [(r, 0.5 * (-1) ** i * r) for i, r in enumerate(np.arange(5.5, 26.0, 2.4))]
    people = [person(i, x, y, np.arctan2(y, x), (-1.3, 0.0)) for i, (x, y) in enumerate(places)]
    radar = RadarSimulator(scene := hard(*people, chirps=chirps))
    stated = np.array(list(radar.detection_probability(0.0).values()))
    ranges = np.array([np.hypot(np.hypot(*place), 2.0) for place in places])
    found = np.zeros((60, len(people)))
    for scan, hits in zip(returns(scene, len(found)), found, strict=True):
        moving = scan[np.abs(scan[:, 3] + 1.15) < 2.0 * radar._board.link.chirps.velocity_step]
        apart = np.abs(np.linalg.norm(moving[:, :3], axis=1)[:, None] - ranges)
        hits[:] = (apart < 0.8).any(axis=0)
    for low in range(5, 30, 5):
        chosen = (ranges >= low) & (ranges < low + 5)
        assert found[:, chosen].mean() == pytest.approx(stated[chosen].mean(), abs=0.1)
    assert stated[0] > 0.95 > stated[-1] + 0.3


def test_who_lies_or_stands_sideways_fades_earlier_and_a_brown_out_hides_people() -> None:
    def chance(mover: Mover, **faults: object) -> float:
        return RadarSimulator(hard(mover, **faults)).detection_probability(0.5)[1]

    assert posture_loss(person(1, 9.0, 0.0), 0.0, EYE) == pytest.approx(0.0, abs=1e-3)
    assert posture_loss(person(1, 9.0, 0.0, 0.5 * np.pi), 0.0, EYE) == pytest.approx(8.0)
    assert posture_loss(lying(9.0), 0.0, EYE) == pytest.approx(15.0)
    assert chance(person(1, 9.0, 0.0)) > 0.5 > 0.1 > chance(lying(9.0))
    walking, now = person(1, 12.0, 0.0, velocity=(-1.3, 0.0)), (Outage(0.0, 1.0),)
    assert chance(walking) > 0.9 > 0.2 > chance(walking, radar_weak=now, brown_out=20.0)
    assert chance(walking, radar_silent=now) == 0.0
    behind_a_bank = replace(hard(walking), terrain=Bank())
    assert RadarSimulator(behind_a_bank).detection_probability(0.5)[1] == 0.0
