"""Feature fusion: the grids of all units in a window become one set of detections.

Units are taken into each window they belong to as they arrive: that is most of the work, and it
is done before the window ends. What the networks are does not matter here.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from mmedge_ros.data_types import CAMERA, RADAR, Detection, UnitFeatures, UnitKey
from mmedge_ros.encoding.feature_grid import CAMERA_GRID
from mmedge_ros.failure_counts import count_failure
from mmedge_ros.fusion.errors import FusionError
from mmedge_ros.fusion.geometry import SensorGeometry
from mmedge_ros.fusion.map_decoding import MAP_SHAPE, DecodingParameters, decode_maps
from mmedge_ros.fusion.radar_grid import RADAR_INPUT, radar_fusion_input, usable_grid
from mmedge_ros.parameter import parameter

# Steps that wait at most, in all windows together: about a second's worth of units. What is
# beyond is worked off at once.
_MOST_WAITING = 250


@dataclass(frozen=True)
class FeatureFusionParameters:
    """Which of the boxes feature fusion finds are used."""

    score_threshold: float = parameter(
        0.0, 'detections below this score are dropped; 0 takes what the bundle says', '', 0.0, 1.0
    )
    iou_threshold: float = parameter(
        0.45,
        'of two overlapping boxes of one label above this IoU only the better is kept',
        '',
        0.0,
        1.0,
    )
    maximum_detections: int = parameter(
        100, 'the best so many per window are kept; bounds the work of association', '', 1, 1000
    )
    labels: tuple[str, ...] = parameter(
        ('person',), 'labels to keep, as those of the camera encoder; empty keeps all'
    )
    distance_deviation: float = parameter(
        0.15, 'relative standard deviation of the distances the network gives', '', 0.01, 2.0
    )
    threads: int = parameter(1, 'threads of the fusion networks', '', 1, 64)

    def decoding(self, bundle_threshold: float) -> DecodingParameters:
        """Return how maps are decoded, with the bundle's threshold unless there is an own one."""
        return DecodingParameters(
            self.score_threshold or bundle_threshold,
            self.iou_threshold,
            self.maximum_detections,
            self.labels,
            self.distance_deviation,
        )


class FusionNetworks(Protocol):
    """Aggregation and fusion networks; states are theirs and are only passed in and out."""

    def begin(self, end_ns: int) -> Any:
        """Return the state of a window that ends then and has no units yet."""

    def step(self, state: Any, modality: str, grid: NDArray[np.float32], stamp_ns: int) -> Any:
        """Return the state with one more unit; units come in the order of their stamps.

        :param grid: (64, 30, 40) of a camera unit, (20, 30, 40) of a radar scan
        """

    def fuse(self, state: Any) -> NDArray[np.float32]:
        """Return the maps (54, 30, 40) of a window, see `map_decoding`."""


class FusedDetections(NamedTuple):
    """What is seen in a window, as of its newest camera unit ``picture``."""

    picture: UnitKey
    detections: tuple[Detection, ...]


class _Grid(NamedTuple):
    """What the networks take of one unit."""

    modality: str
    values: NDArray[np.float32]
    stamp_ns: int


@dataclass
class _OpenWindow:
    """A window that is filling: the state of the networks, and units yet to be taken in."""

    state: Any
    waiting: deque[_Grid] = field(default_factory=deque)
    picture: UnitKey | None = None
    image_size: tuple[int, int] = (0, 0)


class FeatureFusion:
    """Fuses the units of overlapping windows; each unit is taken once into each of its windows.

    Units come in the order they were encoded in. One that is stamped before another of its
    modality is not used: the result of a window depends on the units alone, not on when the
    work on them was done.

    ``refused`` counts units that cannot be used, by what is wrong with them.
    """

    def __init__(self, networks: FusionNetworks, decoding: DecodingParameters) -> None:
        self.refused: Counter[str] = Counter()
        self._networks = networks
        self._decoding = decoding
        self.reset()

    def warm_up(self) -> None:
        """Run every network once, so that no unit of the flight pays for it.

        :raises FusionError: if they do not give what is to be decoded
        """
        state = self._networks.begin(0)
        for modality, shape in ((CAMERA, CAMERA_GRID), (RADAR, RADAR_INPUT)):
            state = self._networks.step(state, modality, np.zeros(shape, np.float32), 0)
        maps = self._networks.fuse(state)
        if maps.shape != MAP_SHAPE or not np.isfinite(maps).all():
            raise FusionError(
                f'the fusion networks give {list(maps.shape)}, not {list(MAP_SHAPE)} finite '
                'numbers; use a bundle made for this version'
            )

    def reset(self) -> None:
        """Forget all units and windows; counts go on."""
        self._windows: dict[int, _OpenWindow] = {}
        self._newest_ns: dict[str, int] = {}
        self._decided: UnitKey | None = None

    def add(self, unit: UnitFeatures, ends_ns: Iterable[int], geometry: SensorGeometry) -> bool:
        """Enter a unit that belongs to the windows that end then; nothing is computed yet.

        :param geometry: sensor poses at the stamp of the unit
        :return: False if its feature grid cannot be used, which is counted
        """
        try:
            grid = self._grid_of(unit, geometry)
        except FusionError as err:
            count_failure(self.refused, str(err))
            return False
        if unit.stamp_ns <= self._newest_ns.get(unit.modality, unit.stamp_ns - 1):
            count_failure(self.refused, f'a {unit.modality} unit that comes after a newer one')
            return True
        self._newest_ns[unit.modality] = unit.stamp_ns
        for end_ns in ends_ns:
            if end_ns not in self._windows:
                self._windows[end_ns] = _OpenWindow(self._networks.begin(end_ns))
            window = self._windows[end_ns]
            window.waiting.append(grid)
            if unit.modality == CAMERA:
                window.picture, window.image_size = unit.key, unit.image_size
        while sum(len(window.waiting) for window in self._windows.values()) > _MOST_WAITING:
            self.work_ahead()
        return True

    def advance(self, end_ns: int) -> None:
        """Take in all units of the window that ends then."""
        window = self._windows.get(end_ns)
        while window is not None and window.waiting:
            self._step(window)

    @property
    def has_work(self) -> bool:
        """Whether units wait to be taken into any window."""
        return any(window.waiting for window in self._windows.values())

    def work_ahead(self) -> None:
        """Take one unit into the earliest window that units wait for."""
        for end_ns in sorted(self._windows):
            if self._windows[end_ns].waiting:
                self._step(self._windows[end_ns])
                return

    def decide(self, end_ns: int) -> FusedDetections | None:
        """Close a window, and every one before it.

        :return: None where the window has no picture, or none that was not decided before
        """
        window = self._windows.get(end_ns)
        if window is not None and window.picture not in (None, self._decided):
            self.advance(end_ns)
        self._windows = {end: open_ for end, open_ in self._windows.items() if end > end_ns}
        if window is None or window.picture is None or window.picture == self._decided:
            return None
        self._decided = window.picture
        maps = self._networks.fuse(window.state)
        return FusedDetections(
            window.picture, decode_maps(maps, window.image_size, self._decoding)
        )

    def _grid_of(self, unit: UnitFeatures, geometry: SensorGeometry) -> _Grid:
        if unit.modality == RADAR:
            return _Grid(RADAR, radar_fusion_input(unit, geometry), unit.stamp_ns)
        if unit.modality != CAMERA:
            raise FusionError(f'a unit of {unit.modality!r}: only camera and radar are fused')
        if not all(unit.image_size):
            raise FusionError('a camera unit that does not say how large its picture is')
        return _Grid(CAMERA, usable_grid(unit, CAMERA_GRID), unit.stamp_ns)

    def _step(self, window: _OpenWindow) -> None:
        grid = window.waiting.popleft()
        window.state = self._networks.step(window.state, grid.modality, grid.values, grid.stamp_ns)
