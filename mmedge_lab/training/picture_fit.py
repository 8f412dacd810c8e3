"""Writes into a bundle how the pictures of its calibration flights look."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from mmedge_lab.judging.picture_seconds import (
    SeenSecond,
    appearances,
    fitted_bounds,
    flight_seconds,
    is_by_day,
    left_out_distances,
    same,
)
from mmedge_lab.training import TrainingError
from mmedge_lab.training.veil_fit import can_be_fitted, fitted_veil, left_out_veils
from mmedge_ros.data_types import OF_WHOLE_PICTURE
from mmedge_ros.encoding.usual_pictures import (
    DISTANCE,
    FLICKER,
    PICTURES_FILE,
    VEIL,
    UsualPictures,
    usual_pictures_text,
)
from mmedge_ros.report.report_files import write_files

# Of fewer it is not known what is usual.
_FEWEST_FLIGHTS = 10
# More probable behind a veil than not.
_EVEN = 0.5
# So rarely a flight looks veiled to those without it, as the densest fog does.
_ONE_IN = 100


def fit_pictures(
    flights: Sequence[Path],
    every: int = 1,
    on_progress: Callable[[float, str], None] | None = None,
) -> UsualPictures:
    """Look at all flights, and fit what is usual to flights left out one at a time.

    :param every: only each so many-th picture
    :raises TrainingError: if there are too few flights with pictures
    :raises ReplayError: if a flight cannot be read
    """
    looked, by_day = [], []
    for number, flight in enumerate(flights):
        if on_progress:
            on_progress(number / len(flights), flight.name)
        seconds = flight_seconds(flight, {'': same}, every)['']
        if seconds:
            looked.append(seconds)
            by_day.append(is_by_day(flight))
    return fitted_pictures(looked, by_day)


def fitted_pictures(
    flights: Sequence[Sequence[SeenSecond]], by_day: Sequence[bool]
) -> UsualPictures:
    """Fit what is usual to the seconds of flights, those ``by_day`` also behind veils.

    :raises TrainingError: if there are too few
    """
    if len(flights) < _FEWEST_FLIGHTS:
        raise TrainingError(
            f'{len(flights)} flights with pictures; name sets with at least {_FEWEST_FLIGHTS}'
        )
    looks = [appearances(seconds) for seconds in flights]
    flicker = [np.array([seen.second.flicker for seen in seconds]) for seconds in flights]
    flickering = [values for values in flicker if np.isfinite(values).any()]
    if not flickering:
        raise TrainingError(
            'fewer than five pictures a second do not say whether they flicker; look at more'
        )
    bounds = {
        DISTANCE: fitted_bounds(left_out_distances(looks)),
        FLICKER: fitted_bounds(flickering),
    }
    veil = None
    if can_be_fitted(looks, by_day):
        veil = fitted_veil(looks, by_day)
        spared = len(looks) // _ONE_IN
        bounds[VEIL] = fitted_bounds(left_out_veils(looks, by_day), _EVEN, spared)
    return UsualPictures(np.concatenate(looks)[:, :OF_WHOLE_PICTURE], bounds, veil)


def write_pictures(bundle: Path, usual: UsualPictures, flights: int) -> None:
    """Put what is usual into a bundle.

    :raises ReportError: if it cannot be written
    """
    about = (
        f'How the pictures of {flights} calibration flights look, second by second, by '
        '`mmedge lab train pictures`.',
        'Brightness and contrast of white, and sharpness.',
    )
    write_files(bundle, {PICTURES_FILE: usual_pictures_text(usual, about).encode()})
