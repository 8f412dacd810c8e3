"""Seconds of recorded pictures, as they are and as another light would have left them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, TypeAlias, TypeVar

import cv2
import numpy as np

from mmedge_lab.simulation.flight_folder import read_description
from mmedge_ros.data_types import NS_PER_S, OF_WHOLE_PICTURE, Appearance, FloatArray
from mmedge_ros.encoding.picture_drift import Excess, Second, second_of
from mmedge_ros.encoding.unit_encoder import appearance_of
from mmedge_ros.encoding.usual_pictures import Bounds, UsualPictures
from mmedge_ros.replay.recording import Recording
from mmedge_ros.report.timed_pictures import recorded_pictures
from mmedge_ros.sensing.camera.image import Picture

T = TypeVar('T')

FLICKER_HZ = 3.7
_DAY = '_day_'
# How bright fog by day is, of white.
_FOG = 0.7
_WHITE = 255.0
# Flights are repeated up to this length: they last ten seconds.
REPEATED = 60
# How much more than what was ever summed up by chance an alarm takes.
_MARGIN = 1.5
_LEAST_ALARM, _LEAST_LIMIT = 2.0, 1e-3
_UNBOUNDED = 1e9

# From a picture's mean (0..255) and its time (s) to the gain and offset of its grey levels.
Change: TypeAlias = Callable[[float, float], tuple[float, float]]
# What a network makes of a picture, (C,).
Look: TypeAlias = Callable[[Picture], FloatArray]


def flicker(amplitude: float) -> Change:
    """Return a change of brightness by up to ``amplitude`` (0..1), as of lamps and a shutter."""
    turns = 2.0 * math.pi * FLICKER_HZ
    return lambda _mean, at: (1.0 + amplitude * math.sin(turns * at), 0.0)


def fog(left: float) -> Change:
    """Return fog by day that leaves so much (0..1) of every contrast."""
    return lambda _mean, _at: (left, (1.0 - left) * _FOG * _WHITE)


def haze(left: float) -> Change:
    """Return what leaves so much (0..1) of every contrast, and the mean as it is."""
    return lambda mean, _at: (left, (1.0 - left) * mean)


def same(_mean: float, _at: float) -> tuple[float, float]:
    """Change nothing."""
    return 1.0, 0.0


class SeenSecond(NamedTuple):
    """A second, and what a network makes of its first picture; empty without one."""

    second: Second
    vector: FloatArray


def flight_seconds(
    flight: Path, changes: Mapping[str, Change], every: int = 1, look: Look | None = None
) -> dict[str, list[SeenSecond]]:
    """Return the seconds of a flight under each change.

    :param every: only each so many-th picture
    :raises ReplayError: if the flight cannot be read
    """
    found: dict[str, list[SeenSecond]] = {name: [] for name in changes}
    for stamps_ns, pictures in _grouped(flight, every):
        for name, change in changes.items():
            shown = [
                changed(picture, change, stamp_ns / NS_PER_S)
                for stamp_ns, picture in zip(stamps_ns, pictures, strict=True)
            ]
            second = second_of(stamps_ns, [appearance_of(picture) for picture in shown])
            found[name].append(SeenSecond(second, look(shown[0]) if look else np.zeros(0)))
    return found


def _grouped(flight: Path, every: int) -> Iterator[tuple[list[int], list[Picture]]]:
    stamps_ns: list[int] = []
    pictures: list[Picture] = []
    with Recording(flight) as recording:
        for number, shot in enumerate(recorded_pictures(recording)):
            if number % every:
                continue
            if stamps_ns and shot.stamp_ns // NS_PER_S != stamps_ns[-1] // NS_PER_S:
                yield stamps_ns, pictures
                stamps_ns, pictures = [], []
            stamps_ns.append(shot.stamp_ns)
            pictures.append(shot.picture)
    if stamps_ns:
        yield stamps_ns, pictures


def changed(picture: Picture, change: Change, at: float) -> Picture:
    """Return a picture as ``change`` leaves it at the time ``at`` (s)."""
    gain, offset = change(float(picture[::16, ::16].mean()), at)
    if (gain, offset) == (1.0, 0.0):
        return picture
    levels = np.clip(np.rint(np.arange(256) * gain + offset), 0, 255).astype(np.uint8)
    return np.asarray(cv2.LUT(picture, levels), np.uint8)


def is_by_day(flight: Path) -> bool:
    """Whether it is a simulated flight by day."""
    made = read_description(flight)
    return made is not None and _DAY in made.scenario


def left_out_distances(flights: Sequence[FloatArray]) -> list[FloatArray]:
    """Return how far the seconds (N, 3) of each flight are from those of all others."""
    distances = []
    for number, seconds in enumerate(flights):
        others = np.concatenate([*flights[:number], *flights[number + 1 :]])
        usual = UsualPictures(others[:, :OF_WHOLE_PICTURE], {})
        distances.append(np.array([usual.distance(second) for second in seconds]))
    return distances


def fitted_bounds(
    flights: Sequence[FloatArray], limit: float | None = None, spared: int = 0
) -> Bounds:
    """Return the bounds of a value by what it is in the seconds of calibration flights.

    Without a limit it is the largest mean of a flight, so that no flight drifts for good; the
    alarm is half as much again as any flight sums up that is repeated for a minute, but for so
    many flights as are ``spared``.
    """
    if limit is None:
        limit = max(_LEAST_LIMIT, *(float(np.nanmean(values)) for values in flights))
    peaks = []
    for values in flights:
        excess, peak = Excess(Bounds(limit, _UNBOUNDED)), 0.0
        for value in repeated(values.tolist()):
            excess.take(value)
            peak = max(peak, excess.sum)
        peaks.append(peak)
    return Bounds(limit, max(_MARGIN * sorted(peaks)[-1 - spared], _LEAST_ALARM))


def repeated(values: Sequence[T]) -> list[T]:
    """Return values of seconds, again and again up to a minute."""
    times = max(-(-REPEATED // max(len(values), 1)), 1)
    return (list(values) * times)[: max(REPEATED, len(values))]


def appearances(seconds: Sequence[SeenSecond]) -> FloatArray:
    """Return the looks (N, 12) of seconds."""
    looks = [seen.second.look for seen in seconds]
    return np.array(looks, np.float64).reshape(-1, len(Appearance._fields))
