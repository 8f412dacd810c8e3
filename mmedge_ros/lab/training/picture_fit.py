"""Writes into a bundle how the pictures of its calibration flights look."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from mmedge_ros.encoding.usual_pictures import (
    DISTANCE,
    FLICKER,
    PALENESS,
    PICTURES_FILE,
    UsualPictures,
    paleness,
    usual_pictures_text,
)
from mmedge_ros.lab.evaluation.picture_seconds import (
    SeenSecond,
    appearances,
    fitted_bounds,
    flight_seconds,
    left_out_distances,
    same,
)
from mmedge_ros.lab.reporting.report_files import write_files
from mmedge_ros.lab.training import TrainingError

# Of fewer it is not known what is usual.
_FEWEST_FLIGHTS = 10


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
    looked = []
    for number, flight in enumerate(flights):
        if on_progress:
            on_progress(number / len(flights), flight.name)
        looked.append(flight_seconds(flight, {'': same}, every)[''])
    return fitted_pictures([seconds for seconds in looked if seconds])


def fitted_pictures(flights: Sequence[Sequence[SeenSecond]]) -> UsualPictures:
    """Fit what is usual to the seconds of flights.

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
        PALENESS: fitted_bounds(
            [np.array([paleness(look) for look in flight]) for flight in looks]
        ),
        FLICKER: fitted_bounds(flickering),
    }
    return UsualPictures(np.concatenate(looks), bounds)


def write_pictures(bundle: Path, usual: UsualPictures, flights: int) -> None:
    """Put what is usual into a bundle.

    :raises ReportError: if it cannot be written
    """
    about = (
        f'How the pictures of {flights} calibration flights look, second by second, by '
        '`mmedge train pictures`.',
        'Brightness and contrast of white, and sharpness.',
    )
    write_files(bundle, {PICTURES_FILE: usual_pictures_text(usual, about).encode()})
