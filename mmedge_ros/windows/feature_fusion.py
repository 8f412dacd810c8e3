"""Feature fusion: what a window holds corrects the detections of each of its new pictures.

Units are taken into each window they belong to as they arrive: that is most of the work, and it
is done before the window ends. What the networks are does not matter here.
"""

from __future__ import annotations

import bisect
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from mmedge_ros.core.clock import TimeBudget
from mmedge_ros.core.data_types import CAMERA, RADAR, Detection, UnitFeatures, UnitKey
from mmedge_ros.core.parameter import parameter
from mmedge_ros.core.run_record import count_failure
from mmedge_ros.encoding.feature_grid import CAMERA_GRID, MAP_SHAPE
from mmedge_ros.geometry import GeometryError
from mmedge_ros.geometry.sensor_poses import SensorGeometry
from mmedge_ros.tracking import FusionError
from mmedge_ros.tracking.map_decoding import DecodingParameters, decode_maps
from mmedge_ros.tracking.radar_grid import RADAR_INPUT, radar_fusion_input, usable_grid
from mmedge_ros.windows.window_bank import Steps, WindowBank

# Steps that wait in all windows together, about a second's worth of units: where there are more,
# each new unit is paid for at once.
_MOST_WAITING = 250
# Steps taken without a break: those of a few units, or of one that comes very late. Units that
# come late again and again must not delay decisions.
_MOST_AT_ONCE = 30
# The newest pictures of one decision; after a long gap the others are of no use.
_MOST_PICTURES = 10
# Decisions after one that time was short for; in these the newest picture is fused ahead, too.
_HURRIED = 20
_UNLIMITED = TimeBudget()
_WARM_UP_NS = 100_000_000


@dataclass(frozen=True)
class FeatureFusionParameters:
    """Which of the boxes feature fusion finds are used."""

    # A fused detection needs this score to begin a track (or that of the tracker where it is
    # lower): scores of fusion say how well a box fits, and are lower than those of detectors.
    begin_score: float = 0.25
    # Of two boxes of one label that overlap more (IoU), as those of two people rarely do, only the
    # better is kept.
    iou_threshold: float = 0.45
    # Of each picture; bounds the work of association.
    maximum_detections: int = 100
    labels: tuple[str, ...] = parameter(
        ('person',), 'labels to keep, as those of the camera encoder; empty keeps all'
    )
    # Relative standard deviation of the distances the networks give; docs/results/replay-set.md.
    distance_deviation: float = 0.15
    # Of the networks; more would take cores from the encoders.
    threads: int = 1

    def decoding(self, bundle_threshold: float) -> DecodingParameters:
        """Return how maps are decoded; detections below the bundle's threshold are dropped."""
        return DecodingParameters(
            bundle_threshold,
            self.iou_threshold,
            self.maximum_detections,
            self.labels,
            self.distance_deviation,
        )


class FusionNetworks(Protocol):
    """Aggregation and fusion networks; states are theirs and are only passed in and out."""

    @property
    def aggregators(self) -> Mapping[str, Steps[Any]]:
        """What steps windows, by modality; grids are (64, 30, 40) and (20, 30, 40)."""

    def fuse(self, states: Mapping[str, Any]) -> NDArray[np.float32]:
        """Return the maps (54, 30, 40) of a window, see `map_decoding`."""


class FusedDetections(NamedTuple):
    """What a window says of one of its camera units."""

    picture: UnitKey
    detections: tuple[Detection, ...]


class _Picture(NamedTuple):
    """A camera unit; of two the one stamped later is greater."""

    stamp_ns: int
    sequence: int
    image_size: tuple[int, int]

    @property
    def key(self) -> UnitKey:
        return UnitKey(CAMERA, self.sequence, self.stamp_ns)


class _Ahead(NamedTuple):
    """What was fused before its window was decided, and the states that it was made of."""

    states: Mapping[str, Any]
    fused: FusedDetections


class FeatureFusion:
    """Fuses the units of overlapping windows; each unit is taken into each of its windows.

    A window decides on each picture that no window before it decided on: its newest picture by
    all its units, the others by those stamped no later. The tracker so gets as many pictures as
    without fusion, and only the last is left to fuse when the window ends.

    Units come in any order. The result of a window depends on the units alone that were entered
    before it was decided, not on when they were, or on when the work on them was done.

    ``refused`` counts units that cannot be used, by what is wrong with them.
    """

    def __init__(self, networks: FusionNetworks, decoding: DecodingParameters) -> None:
        self.networks = networks
        self._decoding = decoding
        self._bank = WindowBank(networks.aggregators)
        self.refused: Counter[str] = self._bank.refused
        self.reset()

    def warm_up(self) -> None:
        """Run every network once, so that no unit of the flight pays for it.

        :raises FusionError: if they do not give what is to be decoded
        """
        states = {}
        for modality, shape in ((CAMERA, CAMERA_GRID), (RADAR, RADAR_INPUT)):
            steps = self.networks.aggregators[modality]
            state = steps.begin(0)
            # Far enough apart for what compares units in time.
            for stamp_ns in range(0, 3 * _WARM_UP_NS, _WARM_UP_NS):
                state = steps.step(state, steps.unit(np.zeros(shape, np.float32)), stamp_ns)
            states[modality] = state
        maps = self.networks.fuse(states)
        if maps.shape != MAP_SHAPE or not np.isfinite(maps).all():
            raise FusionError(
                f'the fusion networks give {list(maps.shape)}, not {list(MAP_SHAPE)} finite '
                'numbers; use a bundle made for this version'
            )

    def reset(self) -> None:
        """Forget all units and windows; counts go on."""
        self._bank.reset()
        self._pictures: dict[int, list[_Picture]] = {}
        self._ahead: dict[_Picture, _Ahead] = {}
        self._decided: _Picture | None = None
        self._hurried = 0
        self._left: list[_Picture] = []
        self.put_off: frozenset[UnitKey] = frozenset()

    def add(self, unit: UnitFeatures, ends_ns: Collection[int], geometry: SensorGeometry) -> bool:
        """Enter a unit that belongs to the windows that end then; nothing is computed yet.

        :param geometry: sensor poses at the stamp of the unit
        :return: False if its feature grid cannot be used, which is counted
        """
        try:
            grid = _grid_of(unit, geometry)
        except (FusionError, GeometryError) as err:
            count_failure(self.refused, str(err))
            return False
        entered = self._bank.add(unit.key, grid, ends_ns)
        if unit.modality == CAMERA:
            picture = _Picture(unit.stamp_ns, unit.sequence, unit.image_size)
            for end_ns in entered:
                bisect.insort(self._pictures.setdefault(end_ns, []), picture)
        for _ in entered:
            if self._bank.waiting > _MOST_WAITING:
                self._bank.work_ahead()
        return True

    def advance(self, end_ns: int) -> None:
        """Take units into the window that ends then, all but for a flood of late ones."""
        for _ in range(_MOST_AT_ONCE):
            if not self._bank.advance(end_ns):
                return

    @property
    def has_work(self) -> bool:
        """Whether units wait to be taken into any window, or pictures to be fused."""
        return self._bank.waiting > 0 or self._next_ahead() is not None

    def work_ahead(self, budget: TimeBudget = _UNLIMITED) -> None:
        """Take one unit into the earliest window that units wait for, or fuse one picture.

        The next decision waits for its pictures, and not for the steps of later windows.
        """
        begun_ns = budget.started()
        following = self._next_ahead()
        if following is None or self._bank.waiting_for(following[0]):
            self._bank.work_ahead()
            budget.ended('step', begun_ns)
            return
        end_ns, picture = following
        states = self._bank.state_until(end_ns, picture.stamp_ns)
        self._ahead[picture] = _Ahead(states, self._fused(picture, states))
        budget.ended('fusing', begun_ns)

    def preview(self, end_ns: int) -> tuple[FusedDetections, ...]:
        """Return what `decide` would now, and leave the window open."""
        return self._detections(end_ns, self._new_pictures(end_ns))

    def decide(self, end_ns: int, budget: TimeBudget = _UNLIMITED) -> tuple[FusedDetections, ...]:
        """Close a window, and every one before it.

        Where time is short the newest picture goes first. `put_off` names it if nothing can be
        made of it in time; the next window decides on it. Older ones are dropped.

        :return: by stamp; () where the window has no picture, or none that is new
        """
        pictures = self._new_pictures(end_ns)
        chosen = self._in_time(end_ns, pictures, budget)
        self._hurried = _HURRIED if len(chosen) < len(pictures) else max(self._hurried - 1, 0)
        left = [p for p in pictures if not chosen or p > chosen[-1]]
        self.put_off = frozenset(picture.key for picture in left)
        budget.shed['pictures'] += len(pictures) - len(chosen) - len(left)
        detections = self._detections(end_ns, chosen, budget)
        if chosen:
            self._decided = chosen[-1]
        self._left = left
        self._bank.drop(end_ns)
        self._pictures = {end: all_ for end, all_ in self._pictures.items() if end > end_ns}
        self._ahead = {p: ahead for p, ahead in self._ahead.items() if self._is_new(p)}
        return detections

    def pass_over(self, budget: TimeBudget) -> None:
        """Make nothing of the pictures that were put off, in later windows either."""
        budget.shed['pictures'] += len(self._left)
        self._decided = max([*self._left, self._decided or self._left[-1]])
        self._left, self.put_off = [], frozenset()

    def _in_time(
        self, end_ns: int, pictures: list[_Picture], budget: TimeBudget
    ) -> list[_Picture]:
        """Return the pictures there is time for, by stamp: the newest, and what more fits."""
        if not budget.is_limited:
            return pictures
        waiting = self._bank.waiting_for(end_ns)
        chosen: list[_Picture] = []
        fusing = steps = 0
        for picture in reversed(pictures):
            if picture not in self._ahead:
                fusing, steps = fusing + 1, waiting
            if budget.fits(step=steps, fusing=fusing, unit=len(chosen) + 1):
                chosen.insert(0, picture)
            elif chosen:
                break
        return chosen

    def _is_new(self, picture: _Picture) -> bool:
        return self._decided is None or picture > self._decided

    def _new_pictures(self, end_ns: int) -> list[_Picture]:
        """Return the pictures that a window has to decide on, the newest last."""
        pictures = [p for p in self._pictures.get(end_ns, []) if self._is_new(p)]
        return pictures[-_MOST_PICTURES:]

    def _next_ahead(self) -> tuple[int, _Picture] | None:
        """Return an unfused picture of the window that ends next.

        More units may come for the newest one, so that it is left for the end of the window, but
        where time was short lately.
        """
        if not self._pictures:
            return None
        end_ns = min(self._pictures)
        pictures = self._new_pictures(end_ns)
        candidates = pictures if self._hurried else pictures[:-1]
        waiting = [p for p in candidates if p not in self._ahead]
        return (end_ns, waiting[0]) if waiting else None

    def _detections(
        self, end_ns: int, pictures: list[_Picture], budget: TimeBudget = _UNLIMITED
    ) -> tuple[FusedDetections, ...]:
        """Fuse pictures of a window: its newest by all units, others by those until then."""
        newest = max(self._pictures.get(end_ns, ()), default=None)
        fused = []
        for picture in pictures:
            ahead = self._ahead.get(picture)
            begun_ns, waiting = budget.started(), self._bank.waiting_for(end_ns)
            if ahead is not None and not budget.fits(step=waiting, fusing=1, unit=1):
                fused.append(ahead.fused)
                continue
            if picture is newest:
                states = self._bank.state(end_ns)
            else:
                states = self._bank.state_until(end_ns, picture.stamp_ns)
            budget.ended('step', begun_ns, waiting - self._bank.waiting_for(end_ns))
            # What was fused ahead holds unless a unit came since that changes it.
            if ahead is not None and all(ahead.states[m] is state for m, state in states.items()):
                fused.append(ahead.fused)
                continue
            begun_ns = budget.started()
            fused.append(self._fused(picture, states))
            budget.ended('fusing', begun_ns)
        return tuple(fused)

    def _fused(self, picture: _Picture, states: Mapping[str, Any]) -> FusedDetections:
        maps = self.networks.fuse(states)
        return FusedDetections(picture.key, decode_maps(maps, picture.image_size, self._decoding))


def _grid_of(unit: UnitFeatures, geometry: SensorGeometry) -> NDArray[np.float32]:
    if unit.modality == RADAR:
        return radar_fusion_input(unit, geometry)
    if unit.modality != CAMERA:
        raise FusionError(f'a unit of {unit.modality!r}: only camera and radar are fused')
    if not all(unit.image_size):
        raise FusionError('a camera unit that does not say how large its picture is')
    return usable_grid(unit, CAMERA_GRID)
