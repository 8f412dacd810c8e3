"""Builds the world of one flight, its sensors included, from a scenario's name and a seed."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from scipy.spatial.transform import Rotation

from mmedge_lab.simulation import SimulationError
from mmedge_lab.simulation.cast import draw_cast, middle_of_people
from mmedge_lab.simulation.flight_path import DronePath, draw_track
from mmedge_lab.simulation.hardships import draw_hardships
from mmedge_lab.simulation.light import draw_light, hard_light
from mmedge_lab.simulation.patrol import ASIDE, MAIN, draw_patrol
from mmedge_lab.simulation.scenario import DistanceBand, SeedStream, find_scenario, generator
from mmedge_lab.simulation.site import Clearing, lay_out
from mmedge_lab.simulation.terrain import draw_terrain, grounded, lifted
from mmedge_lab.simulation.view import READOUT
from mmedge_lab.simulation.world import Rig, Timing, World
from mmedge_ros.core.data_types import FloatArray
from mmedge_ros.geometry.projection import CameraModel
from mmedge_ros.geometry.sensor_poses import OPTICAL_TO_BODY
from mmedge_ros.geometry.transforms import Transform

WIDTH, HEIGHT = 640, 480
CAMERA_PERIOD = 1.0 / 30.0
RADAR_PERIOD = 1.0 / 20.0

# JPEG over USB takes 5 ms.
_CAMERA_TRANSPORT = 0.005
# Half of a 25 ms chirp frame after mid-frame, 6 ms of processing on the radar's chip, and
# about 700 bytes at 921600 baud.
_RADAR_HALF_FRAME = 0.0125
_RADAR_PROCESSING = 0.006
_RADAR_TRANSPORT = 0.008
_DELAY_JITTER = 0.0015
_CAMERA_JITTER = 0.0004
_RADAR_JITTER = 0.0006


def draw_rig(band: DistanceBand, exposure: float, seed: int) -> Rig:
    """Draw one drone's sensors; ``exposure`` in s of the camera.

    The camera's stamp is mid-exposure, so its delay is half the exposure, the readout and the
    transport.
    """
    random = generator(seed, SeedStream.RIG)
    pitch = math.radians(random.uniform(*band.pitch))
    yaw = math.radians(random.normal(0.0, 0.5))
    mounted = _leaning(yaw, pitch)
    # The radar is glued on by hand, a degree off the camera.
    radar = _leaning(
        yaw + math.radians(random.normal(0.0, 0.8)), pitch - math.radians(random.uniform(2.0, 6.0))
    )
    return Rig(
        camera=_draw_camera(random),
        camera_pose=Transform(mounted @ OPTICAL_TO_BODY, np.array([0.11, 0.0, -0.03])),
        radar_pose=Transform(radar, np.array([0.12, 0.0, -0.08])),
        camera_timing=Timing(
            random.uniform(0.0, CAMERA_PERIOD),
            CAMERA_PERIOD,
            _CAMERA_JITTER,
            0.5 * exposure + READOUT + _CAMERA_TRANSPORT,
            _DELAY_JITTER,
        ),
        radar_timing=Timing(
            random.uniform(0.0, RADAR_PERIOD),
            RADAR_PERIOD,
            _RADAR_JITTER,
            _RADAR_HALF_FRAME + _RADAR_PROCESSING + _RADAR_TRANSPORT,
            _DELAY_JITTER,
        ),
    )


def _leaning(yaw: float, pitch: float) -> FloatArray:
    """Return the rotation of a sensor turned left by ``yaw`` and down by ``pitch``, rad."""
    return np.asarray(Rotation.from_euler('ZY', [yaw, pitch]).as_matrix(), np.float64)


def _draw_camera(random: np.random.Generator) -> CameraModel:
    field = math.radians(random.uniform(70.0, 80.0))
    focal = 0.5 * WIDTH / math.tan(0.5 * field)
    tall = focal * random.uniform(0.998, 1.002)
    across, down = 0.5 * np.array([WIDTH - 1, HEIGHT - 1]) + random.normal(0.0, 3.0, 2)
    matrix = np.array([[focal, 0.0, across], [0.0, tall, down], [0.0, 0.0, 1.0]])
    barrel = random.uniform(-0.09, -0.04)
    bent = [barrel, -0.15 * barrel, random.normal(0.0, 3e-4), random.normal(0.0, 3e-4), 0.0]
    return CameraModel(WIDTH, HEIGHT, matrix, np.array(bent))


LONGEST = 3600.0


def build_world(
    name: str, seed: int, seconds: float, patrol: bool = False, condition: str = ''
) -> World:
    """Return the world of a flight of ``seconds``; the same arguments give the same world.

    :param patrol: the drone flies from station to station, and movers come and go
    :param condition: what makes it hard, see `hardships`; '' for nothing, on flat ground
    :raises SimulationError: for an unknown scenario or condition, a negative seed or an impossible
        duration
    """
    scenario = find_scenario(name)
    if seed < 0:
        raise SimulationError(f'seed {seed} is negative; a seed is 0 or more')
    if not 0.0 < seconds <= LONGEST or not math.isfinite(seconds):
        raise SimulationError(f'a flight of {seconds} s; it must last 0 to {LONGEST:g} s')
    hard = draw_hardships(condition, seed, seconds) if condition else None
    band = scenario.band
    tour = draw_patrol(band, seed, seconds, MAIN if hard is None else ASIDE) if patrol else None
    track = draw_track(band, seed, seconds) if tour is None else tour.track
    light = draw_light(scenario.light, seed)
    terrain = None
    if hard is not None:
        ahead = track.stage - track.positions[len(track.positions) // 2, :2]
        terrain = draw_terrain(hard, scenario.surroundings, seed, math.atan2(ahead[1], ahead[0]))
        track = lifted(track, terrain) if terrain else track
    clearing = Clearing(track.positions[::10], track.stage)
    axis = None if tour is None else tour.axis
    site = lay_out(scenario.surroundings, clearing, scenario.light, seed, axis)
    movers = draw_cast(scenario, site, track, seed, seconds, tour, hard.posed if hard else None)
    if tour is None:
        aim = middle_of_people(movers, np.clip(track.times, 0.0, seconds), track if hard else None)
    else:
        aim = tour.aim
    lamps = tuple(site.lamps)
    if hard is not None:
        half = len(aim) // 2
        light = hard_light(light, hard, aim[half] - track.positions[half, :2], seed)
        lamps = tuple(replace(lamp, lit=lamp.lit and not hard.unlit) for lamp in lamps)
    world = World(
        scenario=scenario,
        seed=seed,
        seconds=seconds,
        ground=site.ground,
        buildings=tuple(site.buildings),
        plants=tuple(site.plants),
        lamps=lamps,
        light=light,
        movers=movers,
        path=DronePath(track, aim, seed),
        rig=draw_rig(band, light.exposure, seed),
        patrol=patrol,
        hard=hard,
    )
    return grounded(world, terrain) if terrain else world
