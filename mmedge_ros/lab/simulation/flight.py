"""A simulated flight, from its scenario to the recording."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from mmedge_ros.data_types import NS_PER_S
from mmedge_ros.lab.simulation import SimulationError
from mmedge_ros.lab.simulation.flight_bag import (
    BATTERY,
    CAMERA,
    ODOMETRY,
    RADAR,
    SYSTEM,
    TF_STATIC,
    FlightRecord,
    write_flight,
)
from mmedge_ros.lab.simulation.flight_folder import FlightDescription, whole_folder
from mmedge_ros.lab.simulation.flight_messages import (
    CAMERA_FRAME,
    RADAR_FRAME,
    FlightMessages,
)
from mmedge_ros.lab.simulation.flight_schedule import (
    BEGIN_NS,
    battery_instants,
    odometry_instants,
    radar_instants,
    scans_lost,
    stamp_ns,
    system_instants,
)
from mmedge_ros.lab.simulation.picture_records import (
    Camera,
    PictureRecords,
    picture_records,
    pictures_of_workers,
    useful_workers,
)
from mmedge_ros.lab.simulation.world import World

if TYPE_CHECKING:
    from mmedge_ros.lab.simulation.odometry import Odometry
    from mmedge_ros.lab.simulation.system_dynamics import SystemDynamics

__all__ = [
    'BEGIN_NS',
    'Camera',
    'Sensors',
    'flight_records',
    'record_flight',
    'require_possible',
    'simulate_flight',
    'standard_sensors',
    'useful_workers',
]

SHORTEST, LONGEST = 0.5, 3600.0
LARGEST_SEED = 2**32 - 1

Progress = Callable[[float], None]


class Radar(Protocol):
    """Scans; see `mmedge_ros.lab.simulation.radar.RadarSimulator`."""

    def scan(self, t: float, number: int) -> NDArray[np.float32]: ...


@dataclass(frozen=True)
class Sensors:
    """What looks at a world in flight."""

    camera: Camera
    radar: Radar
    odometry: Odometry
    dynamics: SystemDynamics


def simulate_flight(
    folder: str | Path,
    scenario: str,
    seed: int,
    seconds: float,
    on_progress: Progress | None = None,
    workers: int = 1,
) -> None:
    """Simulate a flight and write it into a rosbag2 folder (mcap), which is whole or not there.

    The same flight has the same messages, byte for byte of every field. A simulated flight that
    was there before is replaced when the new one is complete.

    :param on_progress: told the share done, 0..1
    :param workers: processes that take the pictures, see `useful_workers`; 1 does without
    :raises SimulationError: for an unknown scenario, numbers out of bounds, or a folder that
        cannot be written
    """
    require_possible(seed, seconds)
    from mmedge_ros.lab.simulation.build import build_world

    world = build_world(scenario, seed, seconds)
    pictures = None
    if workers > 1:
        pictures = pictures_of_workers(partial(build_world, scenario, seed, seconds), workers)
    record_flight(Path(folder), world, standard_sensors(world), on_progress, pictures)


def standard_sensors(world: World) -> Sensors:
    """Return the sensors every flight has."""
    from mmedge_ros.lab.simulation.camera import CameraSimulator
    from mmedge_ros.lab.simulation.odometry import Odometry
    from mmedge_ros.lab.simulation.radar import RadarSimulator
    from mmedge_ros.lab.simulation.system_dynamics import SystemDynamics

    return Sensors(
        CameraSimulator(world), RadarSimulator(world), Odometry(world), SystemDynamics(world)
    )


def require_possible(seed: int, seconds: float) -> None:
    """Check the numbers a flight is asked for with.

    :raises SimulationError: if one is out of bounds
    """
    if not SHORTEST <= seconds <= LONGEST:
        raise SimulationError(
            f'a flight of {seconds:g} s; it must last {SHORTEST:g} to {LONGEST:g} s'
        )
    if not 0 <= seed <= LARGEST_SEED:
        raise SimulationError(f'seed {seed}; it must be a whole number of 0 to {LARGEST_SEED}')


def record_flight(
    folder: Path,
    world: World,
    sensors: Sensors,
    on_progress: Progress | None = None,
    pictures: AbstractContextManager[Iterator[PictureRecords]] | None = None,
) -> None:
    """Let sensors look at a world and write what they see, as `simulate_flight` does.

    :param pictures: takes the pictures in place of the camera
    """
    description = FlightDescription(world.scenario, world.seed, world.seconds)
    with whole_folder(folder) as part, pictures or nullcontext() as taken:
        records = flight_records(world, sensors, taken)
        write_flight(part, description, _watched(records, world.seconds, on_progress))


def flight_records(
    world: World, sensors: Sensors, pictures: Iterator[PictureRecords] | None = None
) -> Iterator[FlightRecord]:
    """Return everything the flight's recorder receives, in that order.

    Every source is a stream in order of its own, so that merging them holds one message each.

    :param pictures: the records of each picture; None lets the camera take them
    """
    make = FlightMessages()
    if pictures is None:
        pictures = picture_records(world, sensors.camera, make)
    streams = (
        _static_records(world, make),
        chain.from_iterable(pictures),
        _radar_records(world, sensors, make),
        _odometry_records(world, sensors, make),
        _battery_records(world, sensors, make),
        _system_records(world, sensors, make),
    )
    return heapq.merge(*streams, key=lambda record: record.log_ns)


def _watched(
    records: Iterator[FlightRecord], seconds: float, on_progress: Progress | None
) -> Iterator[FlightRecord]:
    for record in records:
        yield record
        if on_progress is not None and record.topic == CAMERA:
            on_progress(min((record.log_ns - BEGIN_NS) / NS_PER_S / seconds, 1.0))


def _static_records(world: World, make: FlightMessages) -> Iterator[FlightRecord]:
    children = [(CAMERA_FRAME, world.rig.camera_pose), (RADAR_FRAME, world.rig.radar_pose)]
    message = make.static_transforms(BEGIN_NS, children)
    yield FlightRecord(BEGIN_NS, TF_STATIC, make.serialized(message))


def _radar_records(world: World, sensors: Sensors, make: FlightMessages) -> Iterator[FlightRecord]:
    instants = radar_instants(world)
    lost = scans_lost(world, len(instants.times))
    for number, (t, log_ns) in enumerate(zip(*instants, strict=True)):
        at = float(t)
        if lost[number] or sensors.dynamics.radar_stutters(at):
            continue
        scan = make.points(stamp_ns(at), sensors.radar.scan(at, number))
        yield FlightRecord(int(log_ns), RADAR, make.serialized(scan))


def _odometry_records(
    world: World, sensors: Sensors, make: FlightMessages
) -> Iterator[FlightRecord]:
    for t, log_ns in zip(*odometry_instants(world), strict=True):
        at = float(t)
        message = make.odometry(stamp_ns(at), sensors.odometry.at(at))
        yield FlightRecord(int(log_ns), ODOMETRY, make.serialized(message))


def _battery_records(
    world: World, sensors: Sensors, make: FlightMessages
) -> Iterator[FlightRecord]:
    for t, log_ns in zip(*battery_instants(world), strict=True):
        message = make.battery(stamp_ns(float(t)), sensors.dynamics.battery(float(t)))
        yield FlightRecord(int(log_ns), BATTERY, make.serialized(message))


def _system_records(
    world: World, sensors: Sensors, make: FlightMessages
) -> Iterator[FlightRecord]:
    for t, log_ns in zip(*system_instants(world), strict=True):
        message = make.system_state(stamp_ns(float(t)), sensors.dynamics.system(float(t)))
        yield FlightRecord(int(log_ns), SYSTEM, make.serialized(message))
