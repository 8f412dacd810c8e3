"""Windows of cached flights, as they come in flight and as they may: any rate, level, loss.

Batches of them are read by a thread while the network works on the one before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmedge_lab.training.epoch_training import made_ahead
from mmedge_lab.training.feature_cache import SHAPES, CachedFlight, UnitTimes
from mmedge_lab.training.fusion_settings import FusionSettings, WindowRandomness
from mmedge_lab.training.picture_set import is_clear
from mmedge_lab.training.picture_sources import CLASSES
from mmedge_ros.core.data_types import CAMERA, NS_PER_S, RADAR
from mmedge_ros.encoding.feature_grid import canvas_placement
from mmedge_ros.replay.ground_truth import TrueFrame
from mmedge_ros.sensing.rate_control import RateControl, native_period_ns

MODALITIES = (CAMERA, RADAR)
# Of a cut window so much of the end (s) is missing at most, and of a lossy one such a share.
_LONGEST_CUT = 0.35
_FEWEST_LOST, _MOST_LOST = 0.1, 0.6

Places = NDArray[np.intp]


class ChosenWindows(NamedTuple):
    """The units of one modality in a window, oldest first.

    ``places`` (T,) of the units in their recording, ``levels`` (T,) of their networks in the
    flight's levels.
    """

    places: Places
    levels: Places

    def select(self, chosen: NDArray[np.bool_]) -> ChosenWindows:
        """Return the units that a mask (T,) chooses."""
        return ChosenWindows(self.places[chosen], self.levels[chosen])


@dataclass(frozen=True, eq=False)
class Window:
    """The units that a window ends with; ``flight`` is the place of its flight in the set."""

    flight: int
    end_ns: int
    units: Mapping[str, ChosenWindows]


class WindowConfiguration(NamedTuple):
    """Rate (Hz, 0 = native) and level of each modality."""

    camera_rate: float = 0.0
    camera_level: str = 'large'
    radar_rate: float = 0.0
    radar_level: str = 'large'

    def rate(self, modality: str) -> float:
        """Return the rate of a modality."""
        return self.camera_rate if modality == CAMERA else self.radar_rate

    def level(self, modality: str) -> str:
        """Return the level of a modality."""
        return self.camera_level if modality == CAMERA else self.radar_level


class WindowSet:
    """All windows of some flights whose truth is known.

    :param window: length of a window, s
    :param stride: distance of window ends, s
    """

    def __init__(self, flights: Sequence[CachedFlight], window: float, stride: float) -> None:
        self.flights = tuple(flights)
        self._window_ns = round(window * NS_PER_S)
        self._stride_ns = round(stride * NS_PER_S)
        self._admitted: dict[tuple[int, str, float], NDArray[np.bool_]] = {}

    @cached_property
    def ends(self) -> tuple[tuple[int, int], ...]:
        """Flight and end of each window whose truth is known, in order."""
        return tuple(
            (place, end_ns)
            for place, flight in enumerate(self.flights)
            for end_ns in self._ends_of(flight)
            if self._is_known(self.at(place, end_ns, WindowConfiguration(0.0, '', 0.0, '')))
        )

    def at(self, flight: int, end_ns: int, configuration: WindowConfiguration) -> Window:
        """Return a window as it comes where nothing is lost.

        A level that a flight does not have is replaced by its first.
        """
        known = self.flights[flight]
        units = {}
        for kind in MODALITIES:
            times = known.units[kind]
            inside = times.usable & (times.available_ns <= end_ns)
            inside &= times.available_ns > end_ns - self._window_ns
            inside &= self._passes(flight, kind, configuration.rate(kind))
            places = np.flatnonzero(inside)
            places = places[np.argsort(times.stamps_ns[places], kind='stable')]
            levels, wanted = known.levels(kind), configuration.level(kind)
            level = levels.index(wanted) if wanted in levels else 0
            units[kind] = ChosenWindows(places, np.full(len(places), level, np.intp))
        return Window(flight, end_ns, units)

    def spread(self, count: int, configuration: WindowConfiguration) -> tuple[Window, ...]:
        """Return about so many undisturbed windows, spread evenly over all flights."""
        step = max(1, len(self.ends) // max(count, 1))
        return tuple(self.at(flight, end, configuration) for flight, end in self.ends[::step])

    def reference_ns(self, window: Window) -> int:
        """Return the instant a result refers to: the newest picture's, else the window's end."""
        camera = window.units[CAMERA]
        if not len(camera.places):
            return window.end_ns
        times = self.flights[window.flight].units[CAMERA]
        return int(times.stamps_ns[camera.places[-1]])

    def seconds(self, window: Window, modality: str) -> NDArray[np.float32]:
        """Return for each unit (T,) the time from its stamp to the window's end, s."""
        stamps = self.flights[window.flight].units[modality].stamps_ns
        left = window.end_ns - stamps[window.units[modality].places]
        return (left / NS_PER_S).astype(np.float32)

    def drawn(
        self,
        flight: int,
        end_ns: int,
        rates: Mapping[str, float],
        randomness: WindowRandomness,
        rng: np.random.Generator,
    ) -> Window:
        """Draw what may come of a window: levels, prefixes, losses, silent sensors.

        Where nothing would be left, or the truth at the instant it refers to is not known,
        the undisturbed window is returned.
        """
        plain = self.at(
            flight,
            end_ns,
            WindowConfiguration(rates.get(CAMERA, 0.0), '', rates.get(RADAR, 0.0), ''),
        )
        units = {
            kind: self._with_levels(flight, kind, chosen, randomness.mixed, rng)
            for kind, chosen in plain.units.items()
        }
        whole = replace(plain, units=units)
        window = self._disturbed(whole, randomness, rng)
        some = any(len(chosen.places) for chosen in window.units.values())
        return window if some and self._is_known(window) else whole

    def _with_levels(
        self, flight: int, kind: str, chosen: ChosenWindows, mixed: float, rng: np.random.Generator
    ) -> ChosenWindows:
        count, units = max(len(self.flights[flight].levels(kind)), 1), len(chosen.places)
        levels = np.full(units, rng.integers(count), np.intp)
        kind_of_mix, any_level = rng.random(), rng.integers(count, size=units)
        change, second = rng.integers(units + 1), rng.integers(count)
        if kind_of_mix < mixed / 2:
            levels = any_level.astype(np.intp)
        elif kind_of_mix < mixed:
            levels[change:] = second
        return ChosenWindows(chosen.places, levels)

    def _disturbed(
        self, window: Window, randomness: WindowRandomness, rng: np.random.Generator
    ) -> Window:
        units = dict(window.units)
        silent = rng.random()
        if silent < randomness.no_camera:
            units[CAMERA] = _nothing()
        elif silent < randomness.no_camera + randomness.no_radar:
            units[RADAR] = _nothing()
        for kind in MODALITIES:
            is_cut, is_lossy = rng.random(2) < (randomness.cut, randomness.lossy)
            cut_s, share = rng.uniform(0.0, _LONGEST_CUT), rng.uniform(_FEWEST_LOST, _MOST_LOST)
            chosen = units[kind]
            kept = rng.random(len(chosen.places)) >= (share if is_lossy else 0.0)
            if is_cut:
                times = self.flights[window.flight].units[kind]
                last_ns = window.end_ns - round(cut_s * NS_PER_S)
                kept &= times.available_ns[chosen.places] <= last_ns
            units[kind] = chosen.select(kept)
        return replace(window, units=units)

    def _is_known(self, window: Window) -> bool:
        truth = self.flights[window.flight].truth
        return self.reference_ns(window) in truth and window.end_ns in truth

    def _ends_of(self, flight: CachedFlight) -> range:
        times = np.concatenate([flight.units[kind].available_ns for kind in MODALITIES])
        if not len(times):
            return range(0)
        stride = self._stride_ns
        first = int(times.min()) + self._window_ns // 2
        return range(-(-first // stride) * stride, int(times.max()) + 1, stride)

    def _passes(self, flight: int, kind: str, rate: float) -> NDArray[np.bool_]:
        """Mark (N,) the units of a flight that pass at a rate, as the flight would choose."""
        key = flight, kind, rate
        if key not in self._admitted:
            self._admitted[key] = admitted(self.flights[flight].units[kind], rate)
        return self._admitted[key]


def admitted(units: UnitTimes, rate: float) -> NDArray[np.bool_]:
    """Mark (N,) the units that rate control lets through, in the order they arrive."""
    stamps = units.stamps_ns.tolist()
    control = RateControl(native_period_ns(stamps))
    passed = [control.admits(stamp_ns, rate) for stamp_ns in stamps]
    return np.array(passed, np.bool_)


def _nothing() -> ChosenWindows:
    return ChosenWindows(np.zeros(0, np.intp), np.zeros(0, np.intp))


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


def epoch_steps(windows: WindowSet, settings: FusionSettings) -> int:
    """Return the batches in an epoch."""
    size = min(settings.batch, len(windows.ends))
    return max(len(windows.ends) // (settings.thinning * size), 1) if size else 0


def window_batches(
    windows: WindowSet, settings: FusionSettings, epoch: int
) -> Iterator[WindowBatch]:
    """Yield the batches of an epoch; the same for the same seed, whatever was made before."""
    steps, size = epoch_steps(windows, settings), min(settings.batch, len(windows.ends))
    order = np.random.default_rng((settings.seed, epoch, 1)).permutation(len(windows.ends))

    def made(step: int) -> WindowBatch:
        rng = np.random.default_rng((settings.seed, epoch, step, 2))
        # One rate for a whole batch: otherwise most of it would be padding.
        rates = {
            CAMERA: float(rng.choice(settings.camera_rates)),
            RADAR: float(rng.choice(settings.radar_rates)),
        }
        ends = (windows.ends[place] for place in order[step * size : (step + 1) * size])
        drawn = [
            windows.drawn(flight, end_ns, rates, settings.randomness, rng)
            for flight, end_ns in ends
        ]
        return joined(windows, drawn)

    return made_ahead(made, steps)


def joined(windows: WindowSet, chosen: Sequence[Window]) -> WindowBatch:
    """Read windows into one batch; each holds at least one unit, of whatever sensor."""
    objects, ignored = [], []
    for place, window in enumerate(chosen):
        flight = windows.flights[window.flight]
        truth = flight.truth.at(windows.reference_ns(window))
        rows, clear = _object_rows(place, truth, flight), is_clear(truth)
        objects.append(rows[clear])
        ignored.append(rows[~clear, :6])
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


def _object_rows(place: int, truth: TrueFrame, flight: CachedFlight) -> NDArray[np.float32]:
    fit = canvas_placement(*flight.size)
    scale, offset = [fit.x_scale, fit.y_scale] * 2, [fit.x_offset, fit.y_offset] * 2
    boxes = truth.boxes * scale + offset
    classes = [CLASSES.index(str(label)) for label in truth.labels]
    columns = (np.full(len(boxes), place), classes, *boxes.T, truth.ranges)
    return np.stack(columns, axis=1).astype(np.float32)
