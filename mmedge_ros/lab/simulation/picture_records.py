"""What each picture of a flight adds to the recording, made here or by several processes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import cycle
from typing import TypeAlias

from mmedge_ros.geometry.ego_motion import ODOMETRY_FRAME
from mmedge_ros.lab.simulation import SimulationError
from mmedge_ros.lab.simulation.camera import CameraSimulator
from mmedge_ros.lab.simulation.flight_bag import CAMERA, CAMERA_INFO, GROUND_TRUTH, FlightRecord
from mmedge_ros.lab.simulation.flight_messages import FlightMessages
from mmedge_ros.lab.simulation.flight_schedule import camera_instants, stamp_ns
from mmedge_ros.lab.simulation.world import World
from mmedge_ros.lab.worker_processes import WorkError, worker_streams
from mmedge_ros.records.ground_truth import TrueObject, TrueScene

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
    for t, log_ns in zip(instants.times[first::step], instants.log_ns[first::step], strict=True):
        at, received = float(t), int(log_ns)
        picture = camera.picture(at)
        image = make.compressed_image(stamp_ns(at), picture.image)
        info = make.camera_info(stamp_ns(at), world.rig.camera)
        drone = world.path.state(at)
        states = {mover.id: mover.state(at) for mover in world.movers}
        objects = tuple(
            TrueObject(*item, states[item.id].position, states[item.id].velocity)
            for item in picture.objects
        )
        truth = make.ground_truth(
            TrueScene(stamp_ns(at), ODOMETRY_FRAME, objects, *world.scenario),
            drone.pose,
            drone.velocity,
            drone.angular_velocity,
        )
        yield (
            FlightRecord(received, CAMERA, make.serialized(image)),
            FlightRecord(received, CAMERA_INFO, make.serialized(info)),
            FlightRecord(received, GROUND_TRUTH, make.serialized(truth)),
        )
