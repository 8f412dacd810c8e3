"""What the tracker is given in the place of pictures where networks fuse them."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from mmedge_ros.core.clock import TimeBudget
from mmedge_ros.core.data_types import CAMERA, UnitFeatures
from mmedge_ros.geometry.sensor_poses import SensorGeometry
from mmedge_ros.pipeline.pipeline_parameters import PipelineParameters
from mmedge_ros.pipeline.window_assembler import ClosedWindow
from mmedge_ros.tracking.followed_pictures import FollowedPictures
from mmedge_ros.windows.feature_fusion import FeatureFusion

# Only a clock that stands still lets so many units wait for their window.
_MOST_WAITING = 1000
# A picture that is put off goes without fusion where the newest one in tracks is so old at the end
# of the window.
_STALE_NS = 200_000_000


class FusedWindow(NamedTuple):
    """What a window gives the tracker in the place of its pictures.

    ``is_hasty``: one of them is as its encoder has it, because time was short. ``without``: what
    the decision has to do without, in words.
    """

    pictures: list[UnitFeatures]
    is_hasty: bool
    without: tuple[str, ...]


class FusedPictures:
    """Gives pictures the detections that feature fusion finds in them."""

    def __init__(self, fusion: FeatureFusion, parameters: PipelineParameters) -> None:
        self._fusion = fusion
        # Detections begin a track from these scores on: those of an encoder, and fused ones.
        self._own_score = parameters.tracker.high_score
        self._fused_score = parameters.tracking(feature_fusion=True).high_score
        self._followed = FollowedPictures()
        self._unusable: list[UnitFeatures] = []

    def reset(self) -> None:
        """Forget all units; counts go on."""
        self._fusion.reset()
        self._followed.reset()
        self._unusable = []

    def enter(
        self,
        unit: UnitFeatures,
        ends_ns: Collection[int],
        next_end_ns: int,
        geometry: SensorGeometry,
    ) -> None:
        """Enter a unit of the windows that end then."""
        if not self._fusion.add(unit, ends_ns, geometry):
            self._unusable.append(unit.without_grid())
            del self._unusable[:-_MOST_WAITING]
        # The window that ends next goes first; the others wait until it is decided.
        self._fusion.advance(next_end_ns)

    def of_window(
        self,
        window: ClosedWindow,
        put_off: Iterable[UnitFeatures],
        newest_ns: int,
        budget: TimeBudget,
    ) -> FusedWindow:
        """Fuse the new pictures of a window.

        Where nothing could be fused those without a usable grid stay as they are. In pictures that
        were followed, what was fused of an encoded one moves on.

        :param put_off: pictures of windows before, that this one may still take
        :param newest_ns: stamp of the newest picture that is in tracks
        """
        unusable = [unit for unit in self._unusable if unit.available_ns <= window.end_ns]
        self._unusable = [unit for unit in self._unusable if unit.available_ns > window.end_ns]
        fused = {f.picture: f for f in self._fusion.decide(window.end_ns, budget)}
        # Those that were put off are among the members alone.
        units = [unit for unit in window.members if unit.key in fused]
        pictures = [unit.without_grid(detections=fused[unit.key].detections) for unit in units]
        for unit in units:
            self._followed.add(unit, fused[unit.key].detections)
        if not fused:
            pictures = [unit for unit in unusable if unit.modality == CAMERA]
        hasty = None
        if self._fusion.put_off and window.end_ns - newest_ns >= _STALE_NS:
            hasty = self._in_haste([*put_off, *window.members], budget)
        if hasty is not None:
            pictures.append(hasty)
        pictures += self._moved_on(window.fresh)
        without = tuple(
            f'{modality} units without a usable feature grid take no part in feature fusion'
            for modality in sorted({unit.modality for unit in unusable})
        )
        return FusedWindow(pictures, hasty is not None, without)

    def preview(self, end_ns: int, pictures: Collection[UnitFeatures]) -> list[UnitFeatures]:
        """Return those of the pictures that could be fused now, with what is found in them."""
        fused = {f.picture: f for f in self._fusion.preview(end_ns)}
        new = [
            replace(picture, detections=fused[picture.key].detections)
            for picture in pictures
            if picture.key in fused
        ]
        return new + self._moved_on(pictures)

    def _in_haste(self, units: Iterable[UnitFeatures], budget: TimeBudget) -> UnitFeatures | None:
        """Return the newest of the pictures that fusion has put off.

        It goes to the tracker as the encoder has it: better than tracks that see nothing. What no
        track of an encoder would begin with begins none here.
        """
        waiting = [unit for unit in units if unit.key in self._fusion.put_off]
        unit = max(waiting, key=lambda u: u.stamp_ns, default=None)
        if unit is None:
            return None
        self._fusion.pass_over(budget)
        most = float(np.nextafter(self._fused_score, 0.0))
        detections = tuple(
            d if d.score >= self._own_score else replace(d, score=min(d.score, most))
            for d in unit.detections
        )
        self._followed.add(unit, detections)
        return unit.without_grid(detections=detections)

    def _moved_on(self, units: Iterable[UnitFeatures]) -> list[UnitFeatures]:
        """Return the followed pictures among units with fused detections, where there are any."""
        moved = ((unit, self._followed.moved(unit)) for unit in units if unit.followed)
        return [replace(unit, detections=found) for unit, found in moved if found is not None]
