"""Fits how the pictures of calibration flights look, and writes it into bundles."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

import cv2
import numpy as np

from mmedge_lab.training import TrainingError
from mmedge_lab.training.picture_set import open_pictures
from mmedge_ros.core.data_types import NS_PER_S, FloatArray
from mmedge_ros.encoding.picture_drift import (
    DISTANCE,
    FLICKER,
    PICTURES_FILE,
    Bounds,
    Excess,
    Second,
    UsualPictures,
    second_of,
    usual_pictures_text,
)
from mmedge_ros.encoding.unit_encoder import appearance_of
from mmedge_ros.replay.recording import Recording
from mmedge_ros.report.report_files import write_files
from mmedge_ros.report.timed_pictures import recorded_pictures
from mmedge_ros.sensing.camera.image import Picture

# Of fewer it is not known what is usual.
_FEWEST_FLIGHTS = 10
# Flights are repeated up to this length: they last ten seconds.
REPEATED = 60
# How much more than what was ever summed up by chance an alarm takes.
_MARGIN = 1.5
_LEAST_ALARM, _LEAST_LIMIT = 2.0, 1e-3
_UNBOUNDED = 1e9

# From a picture's mean (0..255) and its time (s) to the gain and offset of its grey levels.
Change: TypeAlias = Callable[[float, float], tuple[float, float]]


def same(_mean: float, _at: float) -> tuple[float, float]:
    """Change nothing."""
    return 1.0, 0.0


def flight_seconds(
    flight: Path, changes: Mapping[str, Change], every: int = 1
) -> dict[str, list[Second]]:
    """Return the seconds of a flight under each change.

    :param every: only each so many-th picture
    :raises ReplayError: if the flight cannot be read
    """
    seconds: dict[str, list[Second]] = {name: [] for name in changes}
    for stamps_ns, pictures in _grouped(flight, every):
        for name, change in changes.items():
            looks = [
                appearance_of(_changed(picture, change, stamp_ns / NS_PER_S))
                for stamp_ns, picture in zip(stamps_ns, pictures, strict=True)
            ]
            seconds[name].append(second_of(stamps_ns, looks))
    return seconds


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


def _changed(picture: Picture, change: Change, at: float) -> Picture:
    """Return a picture as ``change`` leaves it at the time ``at`` (s)."""
    gain, offset = change(float(picture[::16, ::16].mean()), at)
    if (gain, offset) == (1.0, 0.0):
        return picture
    levels = np.clip(np.rint(np.arange(256) * gain + offset), 0, 255).astype(np.uint8)
    return np.asarray(cv2.LUT(picture, levels), np.uint8)


def repeated(seconds: Sequence[Second]) -> list[Second]:
    """Return seconds, again and again up to a minute."""
    times = max(-(-REPEATED // max(len(seconds), 1)), 1)
    return (list(seconds) * times)[: max(REPEATED, len(seconds))]


def single_looks(places: Sequence[Path]) -> FloatArray:
    """Return how each picture of some places looks, (N, 3) as `Second` has it.

    :raises TrainingError: if a place holds no pictures, or one cannot be read
    """
    pictures = [open_pictures(place) for place in places]
    looks = [
        second_of([0], [appearance_of(of.load(number).image)]).look
        for of in pictures
        for number in range(len(of))
    ]
    return np.array(looks).reshape(-1, 3)


def fit_pictures(
    flights: Sequence[Path],
    singles: FloatArray,
    on_progress: Callable[[float, str], None] = lambda _share, _words: None,
) -> UsualPictures:
    """Look at all flights, and fit what is usual to flights left out one at a time.

    :param singles: as of `fitted_pictures`
    :raises TrainingError: if there are too few flights with pictures, or of pictures
    :raises ReplayError: if a flight cannot be read
    """
    looked = []
    for number, flight in enumerate(flights):
        on_progress(number / len(flights), flight.name)
        looked.append(flight_seconds(flight, {'': same})[''])
    return fitted_pictures([seconds for seconds in looked if seconds], singles)


def fitted_pictures(flights: Sequence[Sequence[Second]], singles: FloatArray) -> UsualPictures:
    """Fit what is usual to the seconds of flights.

    :param singles: (N, 3) of `single_looks`: usual too, but they set no bounds
    :raises TrainingError: if there are too few flights
    """
    if len(flights) < _FEWEST_FLIGHTS:
        raise TrainingError(
            f'{len(flights)} flights with pictures; name sets with at least {_FEWEST_FLIGHTS}'
        )
    looks = [np.array([second.look for second in seconds]) for seconds in flights]
    flicker = [np.array([second.flicker for second in seconds]) for seconds in flights]
    flickering = [values for values in flicker if np.isfinite(values).any()]
    if not flickering:
        raise TrainingError(
            'fewer than five pictures a second do not say whether they flicker; look at more'
        )
    distances = []
    for number, seconds in enumerate(looks):
        left = [*looks[:number], *looks[number + 1 :], singles]
        others = UsualPictures(np.concatenate(left), {})
        distances.append(np.array([others.distance(second) for second in seconds]))
    bounds = {DISTANCE: fitted_bounds(distances), FLICKER: fitted_bounds(flickering)}
    return UsualPictures(np.concatenate([*looks, singles]), bounds)


def fitted_bounds(flights: Sequence[FloatArray]) -> Bounds:
    """Return the bounds of a value by what it is in the seconds of calibration flights.

    The limit is the largest mean of a flight, so that no flight drifts for good; the alarm is half
    as much again as any flight sums up that is repeated for a minute.
    """
    limit = max(_LEAST_LIMIT, *(float(np.nanmean(values)) for values in flights))
    peak = 0.0
    for values in flights:
        excess = Excess(Bounds(limit, _UNBOUNDED))
        for value in np.resize(values, max(REPEATED, len(values))).tolist():
            excess.take(value)
            peak = max(peak, excess.sum)
    return Bounds(limit, max(_MARGIN * peak, _LEAST_ALARM))


def write_pictures(bundle: Path, usual: UsualPictures, flights: int, singles: int) -> None:
    """Put what is usual into a bundle.

    :raises ReportError: if it cannot be written
    """
    about = (
        f'How the pictures of {flights} calibration flights look, second by second, and '
        f'{singles} single pictures, by `mmedge lab train fit pictures`.',
        'Brightness and contrast of white, and sharpness.',
    )
    write_files(bundle, {PICTURES_FILE: usual_pictures_text(usual, about).encode()})
