"""Flights of hand-made worlds, with a camera that sees grey; also a program to be killed.

    python hand_made_flight.py FOLDER SECONDS [MOST_BYTES]

writes one flight, says after each picture how far it is, and may not write a file longer than
MOST_BYTES.
"""

from __future__ import annotations

import resource
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from hand_made_world import Ball, StraightFlight, world
from numpy.typing import NDArray

from mmedge_lab.simulation import SimulationError
from mmedge_lab.simulation.flight import Sensors, record_flight
from mmedge_lab.simulation.odometry import Odometry
from mmedge_lab.simulation.radar import RadarSimulator
from mmedge_lab.simulation.system_dynamics import SystemDynamics
from mmedge_lab.simulation.world import World
from mmedge_ros.core.data_types import Box
from mmedge_ros.replay.bag import Bag


class Seen(NamedTuple):
    id: int
    label: str
    box: Box | None
    visibility: float


class GreyPicture(NamedTuple):
    image: NDArray[np.uint8]
    objects: tuple[Seen, ...]


class GreyCamera:
    """Sees noise that depends on the instant, and the first mover."""

    def __init__(self, scene: World) -> None:
        self.taken = 0
        self._scene = scene

    def picture(self, t: float) -> GreyPicture:
        self.taken += 1
        noise = np.random.default_rng(round(t * 1e6)).integers(90, 120, (48, 64, 3), np.uint8)
        seen = [
            Seen(m.id, m.label, Box(3.0, 4.0, 20.0, 40.0) if place == 0 else None, 0.5)
            for place, m in enumerate(self._scene.movers)
        ]
        return GreyPicture(noise, tuple(seen))


@dataclass(frozen=True)
class Stutters:
    """System dynamics of which only the radar's supply is not as always."""

    usual: SystemDynamics
    begin: float
    end: float

    def __getattr__(self, name: str):  # type: ignore[no-untyped-def]
        return getattr(self.usual, name)

    def radar_stutters(self, t: float) -> bool:
        return self.begin <= t < self.end


def scene(seconds: float = 1.0, seed: int = 1) -> World:
    """A drone that flies forward and turns, over two people."""
    path = StraightFlight((2.0, 1.0, 0.0), 3.0, yaw_rate=0.5)
    people = [Ball((10.0, 0.0), (1.0, 0.5), id=4), Ball((15.0, 3.0), id=9, label='dog')]
    return world(people, path=path, seconds=seconds, seed=seed)


def sensors(scene: World, stutter: tuple[float, float] = (-1.0, -1.0)) -> Sensors:
    dynamics = Stutters(SystemDynamics(scene), *stutter)
    return Sensors(GreyCamera(scene), RadarSimulator(scene), Odometry(scene), dynamics)


def fly(folder: Path, seconds: float = 1.0, seed: int = 1) -> Path:
    """Write a flight and return its folder."""
    flown = scene(seconds, seed)
    record_flight(folder, flown, sensors(flown))
    return folder


def decoded(folder: Path) -> list[tuple[str, int, Any]]:
    """Return every field of every message, arrays as bytes."""
    with Bag(folder) as bag:
        return [(m.topic, m.log_ns, fields(bag.deserialize(m))) for m in bag.messages()]


def fields(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.tobytes()
    if isinstance(value, list):
        return [fields(item) for item in value]
    if hasattr(value, '__msgtype__'):
        return {name: fields(item) for name, item in vars(value).items()}
    # NaN is not equal to itself.
    return repr(value)


def main() -> None:
    folder, seconds, *most = sys.argv[1:]
    if most:
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(most[0]), int(most[0])))
    flown = scene(float(seconds))
    try:
        record_flight(
            Path(folder), flown, sensors(flown), lambda share: print(f'{share:.4f}', flush=True)
        )
    except SimulationError as err:
        sys.exit(str(err))


if __name__ == '__main__':
    main()
