"""Object memory and its rivals: what is done with the pictures that are not encoded.

Rivals encode the same pictures as object memory. In the others they show what was detected last
where it was, or moved by the camera's turning alone, or nothing, so that the tracker predicts; or
they encode these pictures at a cheaper level.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from mmedge_lab.judging.bundle_cases import camera_configuration
from mmedge_ros.core.data_types import (
    Box,
    Configuration,
    Detection,
    ModalityConfiguration,
    Unit,
    UnitFeatures,
)
from mmedge_ros.encoding.object_memory import ReuseGrid
from mmedge_ros.encoding.unit_encoder import UnitEncoder, encoded_unit
from mmedge_ros.geometry.camera_turn import CameraView, turned_pixels

MEMORY = 'memory'
HELD, TURNED, PREDICTED, CHEAPER = 'held', 'turned', 'predicted', 'cheaper'
MEDIUM, LARGE, SMALL = 'medium', 'large', 'small'

# Where the camera looks at an instant (ns); None where that is not known.
ViewAt = Callable[[int], CameraView | None]


@dataclass(frozen=True)
class ReuseRow:
    """A row of the bench: one way to spend an encoder's time.

    ``reuse`` n: about every n-th picture is encoded at ``level``, and ``between`` says what is
    done with the others. ``rate`` in Hz, 0 for every picture. ``words`` are for people.
    """

    name: str
    words: str
    level: str = MEDIUM
    reuse: int = 1
    rate: float = 0.0
    between: str = MEMORY

    @property
    def is_rival(self) -> bool:
        """Whether a `RivalEncoder` is needed."""
        return self.between != MEMORY

    @property
    def configuration(self) -> Configuration:
        """What the camera is configured to; the radar as it is."""
        return camera_configuration(self.level, self.rate, self.reuse)

    @property
    def levels(self) -> tuple[str, ...]:
        """Levels at which pictures are encoded."""
        return (self.level, SMALL) if self.between == CHEAPER else (self.level,)


EVERY = 'medium'
ROWS: Mapping[str, ReuseRow] = {
    row.name: row
    for row in (
        ReuseRow(EVERY, 'every picture encoded'),
        ReuseRow('medium n=2', 'object memory, every second picture encoded', reuse=2),
        ReuseRow('medium n=3', 'object memory, every third picture encoded', reuse=3),
        ReuseRow('medium n=6', 'object memory, every sixth picture encoded', reuse=6),
        ReuseRow('held n=2', 'boxes of the last encoded picture, unmoved', reuse=2, between=HELD),
        ReuseRow('turned n=2', "boxes moved by the camera's turning", reuse=2, between=TURNED),
        ReuseRow(
            'predicted n=2', 'no boxes: the tracker predicts them', reuse=2, between=PREDICTED
        ),
        ReuseRow('small n=2', 'the other pictures encoded at small', reuse=2, between=CHEAPER),
        ReuseRow('15 Hz', 'half of the pictures', rate=15.0),
        ReuseRow('10 Hz', 'a third of the pictures', rate=10.0),
        ReuseRow('5 Hz', 'a sixth of the pictures', rate=5.0),
        ReuseRow('large n=2', 'object memory, every second picture encoded', LARGE, 2),
    )
}


class RivalEncoder:
    """Has every n-th picture encoded by ``full``; fills in the others as ``between`` says.

    :param view_at: where the camera looks, for boxes that are moved by its turning
    """

    def __init__(self, full: UnitEncoder, between: str, view_at: ViewAt) -> None:
        self.modality = full.modality
        self.levels = full.levels
        self.problems: Counter[str] = full.problems
        self._full = full
        self._between = between
        self._view_at = view_at
        self._grid = ReuseGrid()
        self._base: UnitFeatures | None = None
        self._items = 0

    def encode(
        self, unit: Unit, configuration: ModalityConfiguration, configuration_id: int
    ) -> UnitFeatures:
        takes = self._grid.takes(unit.stamp_ns, configuration.rate, configuration.reuse)
        every = replace(configuration, reuse=1)
        if takes or self._base is None:
            self._base = None
            self._base = self._numbered(self._full.encode(unit, every, configuration_id))
            return self._base
        if self._between == CHEAPER:
            return self._full.encode(unit, replace(every, level=SMALL), configuration_id)
        return encoded_unit(
            unit,
            configuration,
            configuration_id,
            image_size=self._base.image_size,
            detections=self._filled_in(self._base, unit.stamp_ns),
            followed=True,
        )

    def warm_up(self) -> None:
        self._full.warm_up()

    def _numbered(self, features: UnitFeatures) -> UnitFeatures:
        """Number what was detected, so that fusion knows the copies of a detection."""
        first = self._items + 1
        self._items += len(features.detections)
        numbered = (replace(d, item=n) for n, d in enumerate(features.detections, first))
        return replace(features, detections=tuple(numbered))

    def _filled_in(self, base: UnitFeatures, stamp_ns: int) -> tuple[Detection, ...]:
        if self._between == PREDICTED:
            return ()
        if self._between == HELD:
            return base.detections
        before, after = self._view_at(base.stamp_ns), self._view_at(stamp_ns)
        if before is None or after is None:
            return base.detections
        return turned_detections(base.detections, before, after)


def turned_detections(
    detections: tuple[Detection, ...], before: CameraView, after: CameraView
) -> tuple[Detection, ...]:
    """Return detections whose middles moved as the camera turned; sizes stay."""
    boxes = np.array([d.box for d in detections], float).reshape(-1, 4)
    middles = (boxes[:, :2] + boxes[:, 2:]) / 2.0
    moved = boxes + np.tile(turned_pixels(middles, before, after) - middles, 2)
    return tuple(
        replace(d, box=Box(*box)) for d, box in zip(detections, moved.tolist(), strict=True)
    )
