"""Batches of windows, read by a thread while the network works on the one before."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmedge_lab.training.epoch_training import made_ahead
from mmedge_lab.training.feature_cache import SHAPES, CachedFlight
from mmedge_lab.training.fusion_settings import FusionSettings
from mmedge_lab.training.window_set import MODALITIES, Window, WindowSet, epoch_order
from mmedge_lab.training.window_truth import TrueObjects
from mmedge_ros.core.data_types import CAMERA, RADAR
from mmedge_ros.encoding.feature_grid import canvas_placement


class UnitBatch(NamedTuple):
    """Units of one modality of B windows, padded to T of them.

    ``grids`` (B, T, C, 30, 40) float16, ``seconds`` (B, T) from stamp to window end, ``valid``
    (B, T) is 0 for padding, which comes first: the newest unit is always the last.
    """

    grids: NDArray[np.float16]
    seconds: NDArray[np.float32]
    valid: NDArray[np.float32]


class WindowBatch(NamedTuple):
    """Windows and what is true of each.

    ``objects`` (K, 7) are to be detected: window, class, x0, y0, x1, y1 in px of the canvas, range
    in m (NaN where not known). ``ignored`` (M, 6) need not be, without a range.
    """

    camera: UnitBatch
    radar: UnitBatch
    objects: NDArray[np.float32]
    ignored: NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class WindowSource:
    """Makes the batches of any epoch; the same for the same seed, whatever was made before."""

    windows: WindowSet
    settings: FusionSettings

    def __len__(self) -> int:
        """Batches in an epoch; the fewest, where they differ by one."""
        thinning = self.settings.thinning
        return min(len(epoch_order(self.windows, self.settings, k)) for k in range(thinning))

    def epoch(self, epoch: int) -> Iterator[WindowBatch]:
        """Return the batches of one epoch; their number is `__len__`."""
        batches = epoch_order(self.windows, self.settings, epoch)[: len(self)]
        return made_ahead(lambda k: self._batch(epoch, k, batches[k]), len(batches))

    def _batch(self, epoch: int, place: int, ends: Sequence[tuple[int, int]]) -> WindowBatch:
        settings = self.settings
        rng = np.random.default_rng((settings.seed, epoch, place, 2))
        # One rate for a whole batch: otherwise most of it would be padding.
        rates = {
            CAMERA: float(rng.choice(settings.camera_rates)),
            RADAR: float(rng.choice(settings.radar_rates)),
        }
        chosen = [
            self.windows.drawn(flight, end_ns, rates, settings.randomness, rng)
            for flight, end_ns in ends
        ]
        return joined(self.windows, chosen)


def joined(windows: WindowSet, chosen: Sequence[Window]) -> WindowBatch:
    """Read windows into one batch; each holds at least one unit, of whatever sensor."""
    objects, ignored = [], []
    for place, window in enumerate(chosen):
        flight = windows.flights[window.flight]
        truth = flight.truth.at(windows.reference_ns(window))
        rows = _object_rows(place, truth, flight)
        objects.append(rows[truth.clear])
        ignored.append(rows[~truth.clear, :6])
    camera, radar = (_units(windows, chosen, kind) for kind in MODALITIES)
    return WindowBatch(camera, radar, np.concatenate(objects), np.concatenate(ignored))


def _units(windows: WindowSet, chosen: Sequence[Window], kind: str) -> UnitBatch:
    longest = max(1, *(len(window.units[kind].places) for window in chosen))
    grids = np.zeros((len(chosen), longest, *SHAPES[kind]), np.float16)
    seconds = np.zeros((len(chosen), longest), np.float32)
    valid = np.zeros_like(seconds)
    for row, window in enumerate(chosen):
        flight, units = windows.flights[window.flight], window.units[kind]
        levels = flight.levels(kind)
        first = longest - len(units.places)
        for column, (place, level) in enumerate(zip(*units, strict=True), first):
            grids[row, column] = flight.grids[kind, levels[level]][place]
        seconds[row, first:] = windows.seconds(window, kind)
        valid[row, first:] = 1.0
    return UnitBatch(grids, seconds, valid)


def _object_rows(place: int, truth: TrueObjects, flight: CachedFlight) -> NDArray[np.float32]:
    fit = canvas_placement(*flight.size)
    scale = np.array([fit.x_scale, fit.y_scale] * 2, np.float32)
    offset = np.array([fit.x_offset, fit.y_offset] * 2, np.float32)
    boxes = truth.boxes * scale + offset
    window = np.full(len(boxes), place, np.float32)
    columns = (window, truth.classes.astype(np.float32), *boxes.T, truth.ranges)
    return np.stack(columns, axis=1)
