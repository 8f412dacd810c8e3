"""The radar's physics: what it says agrees with where things are and how they move."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hand_made_world import Ball, StraightFlight, house, world
from numpy.typing import NDArray

from mmedge_lab.simulation.build import build_world
from mmedge_lab.simulation.radar import LineOfSight, RadarSimulator
from mmedge_lab.simulation.radar_detector import SimulatedRadarParameters
from mmedge_lab.simulation.world import Building, World
from mmedge_ros.core.data_types import FloatArray
from mmedge_ros.geometry.transforms import Transform

FAULTLESS = SimulatedRadarParameters(false_alarms=0.0, sidelobe_share=0.0, dropout_share=0.0)
# So high up that the ground is not heard.
ALOFT = 200.0


def scans(
    scene: World, count: int = 40, t: float = 0.0, parameters: SimulatedRadarParameters = FAULTLESS
) -> list[NDArray[np.float32]]:
    """Return scans of one instant that differ by their noise."""
    radar = RadarSimulator(scene, parameters)
    return [radar.scan(t, number) for number in range(count)]


def near(scan: NDArray[np.float32], distance: float, within: float = 0.5) -> NDArray[np.float32]:
    """Return the returns at about a distance."""
    return scan[np.abs(np.linalg.norm(scan[:, :3], axis=1) - distance) < within]


def floating(place: tuple[float, float], **more: object) -> Ball:
    """A ball at the height of a drone far above the ground."""
    return Ball(place, height=ALOFT, reflectivity=5.0, **more)  # type: ignore[arg-type]


def aloft(*movers: Ball, path: StraightFlight | None = None, **more: object) -> World:
    path = replace(path or StraightFlight(), height=ALOFT)
    return world(movers, path=path, **more)  # type: ignore[arg-type]


class TestGeometry:
    @pytest.mark.parametrize('place', [(6.0, 0.0), (20.0, 5.0), (15.0, -9.0), (33.0, 4.0)])
    def test_range_and_bearing_agree_with_where_the_target_is(
        self, place: tuple[float, float]
    ) -> None:
        found = np.concatenate(scans(aloft(floating(place))))
        distance = np.hypot(*place) - 0.3  # the near side of the ball
        ranges = np.linalg.norm(found[:, :3], axis=1)
        assert len(found) > 20
        assert np.abs(ranges - distance).max() <= 0.5 * FAULTLESS.range_resolution + 1e-3
        bearing = np.median(np.arctan2(found[:, 1], found[:, 0]))
        assert bearing == pytest.approx(np.arctan2(place[1], place[0]), abs=0.01)

    def test_nothing_is_seen_outside_the_field_of_view(self) -> None:
        for place in ((3.0, 10.0), (-10.0, 0.0), (0.0, -8.0)):
            assert not np.concatenate(scans(aloft(floating(place)))).size
        above = Ball((5.0, 0.0), height=ALOFT + 5.0, reflectivity=5.0)
        assert not np.concatenate(scans(aloft(above))).size


class TestDoppler:
    @pytest.mark.parametrize('speed', [-3.0, -0.4, 0.0, 1.3, 8.0])
    def test_a_target_on_the_axis_shows_its_speed(self, speed: float) -> None:
        found = np.concatenate(scans(aloft(floating((12.0, 0.0), speed=(speed, 0.0)))))
        assert len(found) > 20
        assert np.abs(found[:, 3] - speed).max() <= 0.5 * FAULTLESS.doppler_resolution + 1e-3

    def test_the_drones_own_speed_shows_with_the_opposite_sign(self) -> None:
        path = StraightFlight((3.0, 1.0, 0.0))
        place = np.array([16.0, 6.0])
        found = np.concatenate(scans(aloft(floating((16.0, 6.0)), path=path)))
        expected = -(place @ [3.0, 1.0]) / np.hypot(*place)
        assert np.median(found[:, 3]) == pytest.approx(expected, abs=0.06)

    def test_a_turning_drone_moves_a_radar_that_sits_off_its_middle(self) -> None:
        beside = Transform(np.eye(3), np.array([0.0, 1.5, 0.0]))
        path = StraightFlight(yaw_rate=1.0)
        scene = aloft(floating((15.0, 1.5)), path=path, radar_pose=beside)
        # At 1 rad/s and 1.5 m to the left it is carried backwards at 1.5 m/s.
        found = np.concatenate(scans(scene))
        assert np.median(found[:, 3]) == pytest.approx(1.5, abs=0.06)

    @pytest.mark.parametrize('speed', [11.0, -12.5, 21.0])
    def test_speeds_beyond_the_limit_wrap_around(self, speed: float) -> None:
        found = np.concatenate(scans(aloft(floating((20.0, 0.0), speed=(speed, 0.0)))))
        limit = 0.5 * FAULTLESS.doppler_resolution * FAULTLESS.doppler_bins
        wrapped = (speed + limit) % (2 * limit) - limit
        assert abs(wrapped - speed) > limit
        assert np.abs(found[:, 3]).max() <= limit
        assert np.median(found[:, 3]) == pytest.approx(wrapped, abs=0.06)

    def test_walls_show_a_moving_drones_speed_towards_them(self) -> None:
        flown = np.array([4.0, -1.5, 0.0])
        scene = world(
            buildings=[house(15.0, 3.0), house(28.0, -12.0)],
            path=StraightFlight((4.0, -1.5, 0.0), 2.0),
        )
        found = np.concatenate(scans(scene)).astype(np.float64)
        rays = found[:, :3] / np.linalg.norm(found[:, :3], axis=1, keepdims=True)
        over_ground = found[:, 3] + rays @ flown
        assert len(found) > 100
        # Half a bin, and the speed times the error of the bearing.
        assert np.percentile(np.abs(over_ground), 95) < 0.2
        assert np.median(found[:, 3]) < -3.0


class TestStrength:
    def test_snr_falls_with_the_fourth_power_of_range(self) -> None:
        ranges = np.array([6.0, 9.0, 14.0, 21.0, 32.0, 45.0])
        means = []
        for distance in ranges:
            ball = Ball((distance + 0.3, 0.0), height=ALOFT, reflectivity=60.0)
            found = scans(aloft(ball), 400, parameters=replace(FAULTLESS, threshold=3.0))
            power = 10.0 ** (0.1 * np.concatenate(found)[:, 4])
            means.append(power.sum() / 400)
        slope, at_1m = np.polyfit(np.log10(ranges), np.log10(means), 1)
        assert slope == pytest.approx(-4.0, abs=0.15)
        assert 10 * at_1m == pytest.approx(FAULTLESS.snr_at_1m + 10 * np.log10(60.0), abs=2.0)


class TestObstacles:
    person = Ball((20.0, 0.0), (1.0, 0.0), reflectivity=2.0)

    def moving(self, scene: World) -> int:
        return sum(int((scan[:, 3] > 0.5).sum()) for scan in scans(scene))

    def test_a_person_behind_a_house_is_not_seen(self) -> None:
        assert self.moving(world([self.person])) > 20
        assert self.moving(world([self.person], [house(8.0, 0.0)])) == 0

    def test_a_wall_mirrors_a_moving_person(self) -> None:
        # The wall stands at y = 3; the image walks at y = 7, beyond it.
        person = Ball((12.0, -1.0), (-2.0, 0.0), reflectivity=20.0)
        found = np.concatenate(scans(world([person], [house(2.0, 5.0, 4.0, 30.0)]), 200))
        moving = found[found[:, 3] < -0.5]
        ghosts = moving[moving[:, 1] > 5.0]
        assert 10 < len(ghosts) < 0.7 * len(moving)
        assert np.median(ghosts[:, 1]) == pytest.approx(7.0, abs=0.5)


class TestFaults:
    def test_two_targets_in_one_cell_are_one_return_and_apart_they_are_two(self) -> None:
        def returns(second: tuple[float, float], speed: float = 0.0) -> float:
            pair = (
                floating((10.0, 0.2), label='car'),
                floating(second, speed=(speed, 0.0), label='car'),
            )
            return float(np.mean([len(scan) for scan in scans(aloft(*pair), 60)]))

        assert returns((10.0, 0.3)) < 1.1
        assert returns((11.0, 0.2)) > 1.7
        assert returns((10.0, 0.2), speed=1.0) > 1.7
        assert returns((10.0, -4.0)) > 1.7


class TestScans:
    def test_a_scan_depends_on_seed_instant_and_number_only(self) -> None:
        scene = build_world('park_day_near', 4, 3.0)
        one, other = RadarSimulator(scene), RadarSimulator(scene)
        for number in (3, 1, 2):
            one.scan(0.5 * number, number)
        assert np.array_equal(one.scan(1.0, 7), other.scan(1.0, 7))
        assert not np.array_equal(one.scan(1.0, 7)[:, 4], one.scan(1.0, 8)[:, 4])
        another = RadarSimulator(replace(scene, seed=5))
        assert not np.array_equal(one.scan(1.0, 7), another.scan(1.0, 7))


RANDOM = np.random.default_rng(5)


def turned_house(x: float, y: float, angle: float, height: float) -> Building:
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    corners = np.array([[-3.0, -2.0], [3.0, -2.0], [3.0, 2.0], [-3.0, 2.0]]) @ turn.T
    return Building(corners + np.array([x, y]), height, (90, 90, 90), 1)


def inside(building: Building, points: FloatArray) -> NDArray[np.bool_]:
    edges = np.roll(building.footprint, -1, axis=0) - building.footprint
    away = points[:, None, :2] - building.footprint
    left = edges[:, 0] * away[..., 1] - edges[:, 1] * away[..., 0] > 0
    return np.asarray(left.all(axis=1) & (points[:, 2] < building.height), bool)


def test_blocked_agrees_with_walking_along_the_rays() -> None:
    houses = [
        turned_house(*RANDOM.uniform(-15, 15, 2), RANDOM.uniform(0, 3), RANDOM.uniform(2, 8))
        for _ in range(8)
    ]
    sight = LineOfSight(houses, [])
    agreeing = asked = hidden = 0
    for _ in range(12):
        eye = np.array([*RANDOM.uniform(-25, 25, 2), RANDOM.uniform(0.5, 7.0)])
        points = np.column_stack([RANDOM.uniform(-25, 25, (40, 2)), RANDOM.uniform(0, 5, 40)])
        if any(inside(h, eye[None]).any() for h in houses):
            continue
        found = sight.blocked(eye, points)
        steps = np.linspace(0.0, 1.0, 400)[:, None]
        for point, is_blocked in zip(points, found, strict=True):
            along = eye + steps * (point - eye)
            walked = any(inside(h, along).any() for h in houses)
            agreeing += walked == is_blocked
            asked, hidden = asked + 1, hidden + walked
    assert 0.2 * asked < hidden < 0.8 * asked
    # Rays that graze a corner may fall between two steps.
    assert agreeing >= 0.98 * asked
