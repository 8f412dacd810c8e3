"""A simulated flight, from its scenario to the recording; several processes take its pictures."""

from __future__ import annotations

import heapq
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from itertools import chain, cycle
from pathlib import Path
from typing import Any, TypeAlias

from mmedge_lab.simulation import SimulationError
from mmedge_lab.simulation.build import LONGEST, build_world
from mmedge_lab.simulation.camera import CameraSimulator
from mmedge_lab.simulation.flight_bag import (
    BATTERY,
    CAMERA,
    CAMERA_INFO,
    GROUND_TRUTH,
    GROUND_TRUTH_REACH,
    INERTIAL,
    ODOMETRY,
    RADAR,
    RANGE,
    SYSTEM,
    TF_STATIC,
    FlightRecord,
    write_flight,
)
from mmedge_lab.simulation.flight_folder import FlightDescription, read_description, whole_folder
from mmedge_lab.simulation.flight_messages import (
    CAMERA_FRAME,
    RADAR_FRAME,
    RANGE_FRAME,
    FlightMessages,
)
from mmedge_lab.simulation.flight_schedule import (
    BATTERY_REPORT,
    BEGIN_NS,
    INERTIAL_REPORT,
    ODOMETRY_REPORT,
    RANGE_REPORT,
    SYSTEM_REPORT,
    Instants,
    camera_instants,
    radar_instants,
    report_instants,
    scans_lost,
    stamp_ns,
)
from mmedge_lab.simulation.hard_sensors import RANGE_POSE, InertialUnit, Rangefinder
from mmedge_lab.simulation.hardships import Outages, within
from mmedge_lab.simulation.odometry import Odometry
from mmedge_lab.simulation.radar import RadarSimulator
from mmedge_lab.simulation.reach import Reach
from mmedge_lab.simulation.system_dynamics import SystemDynamics
from mmedge_lab.simulation.world import World
from mmedge_lab.worker_processes import WorkError, worker_streams
from mmedge_ros.core.data_types import NS_PER_S
from mmedge_ros.geometry.ego_motion import ODOMETRY_FRAME
from mmedge_ros.replay.ground_truth import TrueObject, TrueScene

# A process has to prepare the surroundings first: it pays off from so many seconds of flight on.
_SECONDS_EACH = 3.0
# More do not help: one process takes what all of them make.
_MOST = 8

PictureRecords: TypeAlias = tuple[FlightRecord, ...]


def useful_workers(seconds: float) -> int:
    """Return how many processes are worth taking the pictures of a flight of ``seconds``."""
    # In this order also for lengths that are no numbers, which are refused later.
    return max(1, int(min(len(os.sched_getaffinity(0)), _MOST, seconds / _SECONDS_EACH)))


@contextmanager
def pictures_of_workers(
    make_world: Callable[[], World], workers: int
) -> Iterator[Iterator[PictureRecords]]:
    """Have ``workers`` processes take a world's pictures; yield the records of each, in order.

    A picture depends on its instant only, so that it does not matter which process takes it.

    :param make_world: gives the same world in every process; it must be one that can be pickled
    :raises SimulationError: from within, if a process fails or was killed
    """
    sources = {
        f'pictures {number}': partial(_share_of_pictures, make_world, number, workers)
        for number in range(workers)
    }
    with worker_streams(sources, (SimulationError,)) as streams:
        yield _in_turn(streams)


def _in_turn(streams: Sequence[Iterator[PictureRecords]]) -> Iterator[PictureRecords]:
    try:
        for stream in cycle(streams):
            records = next(stream, None)
            # The first stream to end is the one whose turn it is.
            if records is None:
                return
            yield records
    except WorkError as err:
        raise SimulationError(f'the pictures were not all taken: {err}') from err


def _share_of_pictures(
    make_world: Callable[[], World], first: int, step: int
) -> Iterator[PictureRecords]:
    world = make_world()
    return picture_records(world, CameraSimulator(world), FlightMessages(), first, step)


def picture_records(
    world: World, camera: CameraSimulator, make: FlightMessages, first: int = 0, step: int = 1
) -> Iterator[PictureRecords]:
    """Return what each picture adds to a recording; of every ``step``-th one from ``first`` on."""
    instants = camera_instants(world)
    reach = Reach(world, world.hard) if world.hard else None
    for t, log_ns in zip(instants.times[first::step], instants.log_ns[first::step], strict=True):
        at, received = float(t), int(log_ns)
        pictured: PictureRecords = ()
        if world.hard is not None and within(world.hard.camera_silent, at):
            seen = camera.truth(at)
        else:
            picture = camera.picture(at)
            seen = picture.objects
            image = make.compressed_image(stamp_ns(at), picture.image)
            info = make.camera_info(stamp_ns(at), world.rig.camera)
            pictured = (
                FlightRecord(received, CAMERA, make.serialized(image)),
                FlightRecord(received, CAMERA_INFO, make.serialized(info)),
            )
        drone = world.path.state(at)
        states = {mover.id: mover.state(at) for mover in world.movers}
        objects = tuple(
            TrueObject(*item, states[item.id].position, states[item.id].velocity) for item in seen
        )
        scene = TrueScene(stamp_ns(at), ODOMETRY_FRAME, objects, *world.scenario)
        truth = make.ground_truth(scene, drone.pose, drone.velocity, drone.angular_velocity)
        records = (*pictured, FlightRecord(received, GROUND_TRUTH, make.serialized(truth)))
        if reach is not None:
            reached = make.reach(reach.of(scene, at))
            records += (FlightRecord(received, GROUND_TRUTH_REACH, make.serialized(reached)),)
        yield records


SHORTEST = 0.5
LARGEST_SEED = 2**32 - 1
# Two sidewalks' worth of people, a cyclist and a car, with and without trees in the way.
DEMO_FLIGHT = FlightDescription('street_day_middle', seed=7, seconds=20.0)

Progress = Callable[[float], None]


@dataclass(frozen=True)
class Sensors:
    """The sensors of one flight."""

    camera: CameraSimulator
    radar: RadarSimulator
    odometry: Odometry
    dynamics: SystemDynamics


def simulate_flight(
    folder: str | Path,
    scenario: str,
    seed: int,
    seconds: float,
    on_progress: Progress | None = None,
    workers: int = 1,
    trace_only: bool = False,
    patrol: bool = False,
    condition: str = '',
) -> None:
    """Simulate a flight and write it into a rosbag2 folder (mcap), which is whole or not there.

    The same flight has the same messages, byte for byte of every field. A simulated flight that
    was there before is replaced when the new one is complete.

    :param on_progress: called with the share done, 0..1
    :param workers: processes that take the pictures, see `useful_workers`; 1 does without
    :param trace_only: write the states of computer and battery alone, without any sensor
    :param patrol: as `build_world` has it, and ``condition``
    :raises SimulationError: for an unknown scenario, numbers out of bounds, or a folder that
        cannot be written
    """
    if not SHORTEST <= seconds <= LONGEST:
        raise SimulationError(
            f'a flight of {seconds:g} s; it must last {SHORTEST:g} to {LONGEST:g} s'
        )
    if not 0 <= seed <= LARGEST_SEED:
        raise SimulationError(f'seed {seed}; it must be a whole number of 0 to {LARGEST_SEED}')
    make_world = partial(build_world, scenario, seed, seconds, patrol, condition)
    world = make_world()
    pictures = None
    if workers > 1 and not trace_only:
        pictures = pictures_of_workers(make_world, workers)
    record_flight(
        Path(folder), world, standard_sensors(world), on_progress, pictures, trace_only=trace_only
    )


def kept_flight(folder: Path, wanted: FlightDescription, on_progress: Progress) -> Path:
    """Return ``folder`` with the wanted flight in it; it is simulated if it is not there yet.

    :param on_progress: called with the share done, 0..1, while the flight is simulated
    :raises SimulationError: if it cannot be simulated there
    """
    if read_description(folder) != wanted:
        workers = useful_workers(wanted.seconds)
        simulate_flight(folder, wanted.scenario, wanted.seed, wanted.seconds, on_progress, workers)
    return folder


def cached_demo_flight(on_progress: Progress) -> Path:
    """Return the demo's flight in the user's cache folder.

    :raises SimulationError: if it cannot be simulated there
    """
    cache = os.environ.get('XDG_CACHE_HOME', '')
    folder = Path(cache) if Path(cache).is_absolute() else Path.home() / '.cache'
    return kept_flight(folder / 'mmedge_ros' / 'demo_flight', DEMO_FLIGHT, on_progress)


def standard_sensors(world: World) -> Sensors:
    """Return the sensors every flight has."""
    return Sensors(
        CameraSimulator(world), RadarSimulator(world), Odometry(world), SystemDynamics(world)
    )


def record_flight(
    folder: Path,
    world: World,
    sensors: Sensors,
    on_progress: Progress | None = None,
    pictures: AbstractContextManager[Iterator[PictureRecords]] | None = None,
    *,
    trace_only: bool = False,
) -> None:
    """Write what sensors measure in a world, as `simulate_flight` does.

    :param pictures: takes the pictures in place of the camera
    """
    description = FlightDescription(
        world.scenario.name,
        world.seed,
        world.seconds,
        trace_only=trace_only,
        patrol=world.patrol,
        condition=world.hard.condition if world.hard else '',
    )
    with whole_folder(folder) as part, pictures or nullcontext() as taken:
        if trace_only:
            records = trace_records(world, sensors)
        else:
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
    odometry = report_instants(world, ODOMETRY_REPORT)
    besides = []
    if world.hard is not None:
        turns, below = (report_instants(world, r) for r in (INERTIAL_REPORT, RANGE_REPORT))
        unit, finder = InertialUnit(world, sensors.odometry), Rangefinder(world)
        besides.append(_readings(INERTIAL, turns, make, make.inertial, unit.at))
        besides.append(_readings(RANGE, below, make, make.range, finder.at))
    return heapq.merge(
        _static_records(world, make),
        chain.from_iterable(pictures),
        _radar_records(world, sensors, make),
        _readings(
            ODOMETRY,
            odometry,
            make,
            make.odometry,
            sensors.odometry.at,
            world.hard.odometry_stopped if world.hard else (),
        ),
        trace_records(world, sensors),
        *besides,
        key=_log_ns,
    )


def trace_records(world: World, sensors: Sensors) -> Iterator[FlightRecord]:
    """Return the states of battery and computer, in the order they are received."""
    make, dynamics = FlightMessages(), sensors.dynamics
    battery, system = (report_instants(world, r) for r in (BATTERY_REPORT, SYSTEM_REPORT))
    return heapq.merge(
        _readings(BATTERY, battery, make, make.battery, dynamics.battery),
        _readings(SYSTEM, system, make, make.system_state, dynamics.system),
        key=_log_ns,
    )


def _log_ns(record: FlightRecord) -> int:
    return record.log_ns


def _watched(
    records: Iterator[FlightRecord], seconds: float, on_progress: Progress | None
) -> Iterator[FlightRecord]:
    for record in records:
        yield record
        if on_progress is not None and record.topic == CAMERA:
            on_progress(min((record.log_ns - BEGIN_NS) / NS_PER_S / seconds, 1.0))


def _static_records(world: World, make: FlightMessages) -> Iterator[FlightRecord]:
    children = [(CAMERA_FRAME, world.rig.camera_pose), (RADAR_FRAME, world.rig.radar_pose)]
    if world.hard is not None:
        children.append((RANGE_FRAME, RANGE_POSE))
    message = make.static_transforms(BEGIN_NS, children)
    yield FlightRecord(BEGIN_NS, TF_STATIC, make.serialized(message))


def _radar_records(world: World, sensors: Sensors, make: FlightMessages) -> Iterator[FlightRecord]:
    instants = radar_instants(world)
    lost = scans_lost(world, len(instants.times))
    for number, (t, log_ns) in enumerate(zip(*instants, strict=True)):
        at = float(t)
        silent = world.hard is not None and within(world.hard.radar_silent, at)
        if lost[number] or silent or sensors.dynamics.radar_stutters(at):
            continue
        scan = make.points(stamp_ns(at), sensors.radar.scan(at, number))
        yield FlightRecord(int(log_ns), RADAR, make.serialized(scan))


def _readings(
    topic: str,
    instants: Instants,
    make: FlightMessages,
    message: Callable[[int, Any], Any],
    reading: Callable[[float], Any],
    stopped: Outages = (),
) -> Iterator[FlightRecord]:
    """Return one record per instant: the ``message`` of a stamp (ns) and its ``reading``, if any.

    :param stopped: when there are none
    """
    for t, log_ns in zip(*instants, strict=True):
        at = float(t)
        read = None if within(stopped, at) else reading(at)
        if read is not None:
            yield FlightRecord(int(log_ns), topic, make.serialized(message(stamp_ns(at), read)))
