"""What a simulated flight consists of, before any sensor looks at it.

Coordinates are metres in the ``odom`` frame (x east, y north, z up; the ground is z = 0, but
where a terrain says otherwise), time is float seconds since the flight's begin. Everything that
moves answers for any instant, so that sensors may look whenever they like and in any order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from mmedge_lab.simulation.hardships import Hardships
from mmedge_lab.simulation.scenario import Scenario
from mmedge_ros.core.data_types import FloatArray
from mmedge_ros.geometry.projection import CameraModel
from mmedge_ros.geometry.transforms import Transform

LABELS = ('person', 'cyclist', 'car', 'dog')


@dataclass(frozen=True, eq=False)
class Body:
    """A mover's shape at one instant: parts that are each the convex hull of spheres.

    ``centres`` (N, 3) m and ``velocities`` (N, 3) m/s of the spheres' centres, ``radii`` (N,)
    m. Part p owns spheres ``first[p]`` to ``first[p + 1]``; ``first`` has one entry more than
    there are parts. ``colours`` (P, 3) uint8 are albedos in BGR; ``names`` say what a part is
    (torso, left_shin, wheel, cabin ...).
    """

    centres: FloatArray
    velocities: FloatArray
    radii: FloatArray
    first: tuple[int, ...]
    names: tuple[str, ...]
    colours: NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class MoverState:
    """Where a mover stands.

    ``position`` (3,) m lies on the ground below its middle, ``velocity`` (3,) is in m/s,
    ``heading`` in rad from the x axis.
    """

    position: FloatArray
    velocity: FloatArray
    heading: float


class Terrain(Protocol):
    """Ground that is not flat."""

    def heights(self, places: FloatArray) -> FloatArray:
        """Return z (...) m of the ground at places (..., 2) m."""
        ...


class Mover(Protocol):
    """A person, cyclist, car or dog. ``reflectivity`` is its mean radar cross-section, m^2."""

    @property
    def id(self) -> int: ...

    @property
    def label(self) -> str: ...

    @property
    def reflectivity(self) -> float: ...

    def state(self, t: float) -> MoverState: ...

    def body(self, t: float) -> Body: ...


@dataclass(frozen=True, eq=False)
class Building:
    """Upright prism. ``footprint`` (4, 2) m, counter-clockwise; ``seed`` sets its windows."""

    footprint: FloatArray
    height: float
    colour: tuple[int, int, int]
    seed: int


@dataclass(frozen=True, eq=False)
class Plant:
    """Tree, bush or hedge piece: a crown (ellipsoid) on a trunk (radius 0 for a bush).

    It stands at z = ``base`` m.
    """

    position: FloatArray  # (2,) m
    trunk_height: float
    trunk_radius: float
    crown_radius: float
    crown_height: float
    colour: tuple[int, int, int]
    seed: int
    base: float = 0.0


@dataclass(frozen=True, eq=False)
class Lamp:
    """Street lamp: a pole of ``height`` m on ground at z = ``base`` m.

    It lights a pool of ``reach`` m where lit.
    """

    position: FloatArray  # (2,) m
    height: float
    reach: float
    lit: bool
    base: float = 0.0


@dataclass(frozen=True, eq=False)
class Strip:
    """A road or path on the ground: a polyline (N, 2) m of one ``width`` m and surface."""

    line: FloatArray
    width: float
    surface: str  # asphalt, gravel, paving


@dataclass(frozen=True, eq=False)
class Ground:
    """Flat ground z = 0 around the origin; ``surface`` grass, asphalt, gravel or paving."""

    surface: str
    strips: tuple[Strip, ...]
    seed: int


@dataclass(frozen=True, eq=False)
class SceneLight:
    """How a scene is lit and seen.

    ``sun_direction`` (3,) unit vector towards the sun or moon; ``sun`` and ``ambient`` scale
    albedos (1 = full daylight); ``tint`` is BGR, 1 = neutral. ``fog_visibility`` in m,
    infinite in clear air. ``exposure`` in s; ``noise`` is the standard deviation of a dark
    pixel, grey levels. ``sky`` (2, 3): BGR at the horizon and at the zenith.
    """

    name: str
    sun_direction: FloatArray
    sun: float
    ambient: float
    tint: tuple[float, float, float]
    fog_visibility: float
    exposure: float
    noise: float
    sky: FloatArray


@dataclass(frozen=True, eq=False)
class DroneState:
    """The drone at one instant: ``pose`` maps base_link (REP-103) to odom.

    ``velocity`` (3,) m/s and ``angular_velocity`` (3,) rad/s are in the odom frame.
    """

    pose: Transform
    velocity: FloatArray
    angular_velocity: FloatArray


class FlightPath(Protocol):
    """The drone's own motion, vibration included."""

    def state(self, t: float) -> DroneState: ...


class Timing(NamedTuple):
    """When a sensor fires and its data arrive, all in s.

    It fires at ``phase + n * period`` with Gaussian ``jitter``. A unit is available ``delay``
    after its measurement time, plus an exponential ``delay_jitter``.
    """

    phase: float
    period: float
    jitter: float
    delay: float
    delay_jitter: float


@dataclass(frozen=True, eq=False)
class Rig:
    """The sensors of one drone. Poses map a sensor's frame to base_link."""

    camera: CameraModel
    camera_pose: Transform
    camera_timing: Timing
    radar_pose: Transform
    radar_timing: Timing


@dataclass(frozen=True, eq=False)
class World:
    """One flight: everything the sensors could see. Instants run from 0 to ``seconds``.

    On a ``patrol`` the drone flies from station to station, and movers come and go. ``hard`` and
    ``terrain`` are those of hard flights; without them the ground is flat and nothing fails.
    """

    scenario: Scenario
    seed: int
    seconds: float
    ground: Ground
    buildings: tuple[Building, ...]
    plants: tuple[Plant, ...]
    lamps: tuple[Lamp, ...]
    light: SceneLight
    movers: tuple[Mover, ...]
    path: FlightPath
    rig: Rig
    patrol: bool = False
    hard: Hardships | None = None
    terrain: Terrain | None = None
