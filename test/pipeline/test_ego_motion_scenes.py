"""What a drone sees while it hovers, flies and turns, with people and without."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from point_targets import PointTargets, Walk, at_ns, pose, scattered_clutter

from mmedge_ros.core.data_types import RADAR, Decision, UnitFeatures
from mmedge_ros.pipeline.perception_pipeline import PerceptionPipeline

FLIGHTS = {
    'hovering with a sway': lambda t: pose(0.3 * np.sin(t), 0.2 * np.cos(1.3 * t), 5.0),
    'translating': lambda t: pose(2.0 * t, 0.5 * t, 6.0),
    'yawing': lambda t: pose(z=5.0, yaw=0.6 * t),
    'climbing, turning and pitching': lambda t: pose(
        t, 0.0, 4.0 + 0.7 * t, 0.3 * np.sin(t), 0.1 * np.sin(2 * t)
    ),
}


def walking(x: float, y: float, vx: float, vy: float) -> Walk:
    return lambda t: np.array([x + vx * t, y + vy * t, 0.0])


def fly(
    world: PointTargets,
    seconds: float,
    odometry: bool = True,
    units: Sequence[UnitFeatures] | None = None,
) -> list[Decision]:
    """Feed a pipeline as encoders and a flight controller would; return its decisions."""
    pipeline = PerceptionPipeline()
    pipeline.rig.set_camera(world.camera)
    pipeline.rig.add_transforms(world.transforms)
    decisions = []
    for unit in units if units is not None else list(world.units(seconds)):
        if odometry:
            time = (unit.stamp_ns - at_ns(0.0)) / 1e9
            pipeline.rig.add_ego_state(world.ego_state(time), 'odom', 'base_link')
        pipeline.add_features(unit, unit.available_ns)
        decisions += pipeline.poll(unit.available_ns)
    return [d.published(d.window_end_ns) for d in decisions]


@pytest.mark.parametrize('flight', FLIGHTS)
def test_static_clutter_makes_no_tracks_however_the_drone_moves(flight: str) -> None:
    world = PointTargets(FLIGHTS[flight], clutter=scattered_clutter(60))
    decisions = fly(world, 6.0)
    assert len(decisions) > 50
    assert sum(len(d.tracks) for d in decisions) == 0


@pytest.mark.parametrize('flight', ['hovering with a sway', 'translating'])
def test_without_odometry_the_returns_of_the_ground_give_the_motion_of_the_drone(
    flight: str,
) -> None:
    world = PointTargets(FLIGHTS[flight], clutter=scattered_clutter(60))
    decisions = fly(world, 6.0, odometry=False)
    assert sum(len(d.tracks) for d in decisions) == 0
    assert any('no odometry' in text for text in decisions[-1].degraded)


def test_a_walker_keeps_its_place_in_odom_while_the_drone_passes_and_turns() -> None:
    world = PointTargets(
        lambda t: pose(-4.0 + 0.8 * t, 1.0, 2.0, 0.1 * np.sin(t)),
        [walking(6.0, -1.0, 0.2, 0.6)],
        scattered_clutter(40),
    )
    decisions = fly(world, 6.0)
    people = [t for d in decisions for t in d.tracks if t.label == 'person']
    assert {t.id for t in people} == {people[0].id}
    assert decisions[-1].frame_id == 'odom'
    for decision in decisions[20:]:
        truth = world.walks[0]((decision.state_ns - at_ns(0.0)) / 1e9)
        (track,) = [t for t in decision.tracks if t.label == 'person']
        assert np.linalg.norm(track.position[:2] - truth[:2]) < 0.5
        assert np.linalg.norm(track.velocity[:2] - [0.2, 0.6]) < 0.6


def test_a_radar_that_is_late_and_out_of_order_changes_nothing_but_its_age() -> None:
    world = PointTargets(
        lambda t: pose(0.5 * t, 0.0, 3.0),
        [walking(6.0, -1.0, 0.5, 0.5), walking(9.0, 2.0, -0.5, 0.0)],
        scattered_clutter(20),
    )
    units = list(world.units(5.0))
    delays = np.random.default_rng(3).integers(40, 120, len(units))
    late = [
        replace(u, available_ns=u.stamp_ns + int(d) * 1_000_000) if u.modality == RADAR else u
        for u, d in zip(units, delays, strict=True)
    ]
    late.sort(key=lambda u: u.available_ns)
    # Beyond the end both see the same units, if only the camera goes on.
    last = max(u.available_ns for u in late)
    prompt, delayed = fly(world, 5.0, units=units), fly(world, 5.0, units=late)
    assert delayed[-1].ages[RADAR] >= prompt[-1].ages[RADAR]
    final = [_final_tracks(world, arrival, last) for arrival in (units, late)]
    assert final[0].keys() == final[1].keys()
    assert len(final[0]) == 2
    for number, position in final[0].items():
        np.testing.assert_allclose(position, final[1][number], atol=1e-9)


def _final_tracks(
    world: PointTargets, units: Sequence[UnitFeatures], last_ns: int
) -> dict[int, np.ndarray]:
    """Positions by id once everything has arrived."""
    pipeline = PerceptionPipeline()
    pipeline.rig.set_camera(world.camera)
    pipeline.rig.add_transforms(world.transforms)
    for time in np.arange(0.0, 5.0, 0.02):
        pipeline.rig.add_ego_state(world.ego_state(float(time)), 'odom', 'base_link')
    for unit in units:
        pipeline.add_features(unit, unit.available_ns)
        pipeline.poll(unit.available_ns)
    decisions = pipeline.poll(last_ns + 300_000_000)
    return {t.id: t.position for t in decisions[-1].tracks}
