"""Notices pictures that are unlike those of the calibration flights: fog, a dirty lens, flicker.

A network that has never seen such pictures misses people without a word. What is compared is
the appearance of each picture, which the encoder measures: brightness, contrast, sharpness, and
those of its thirds. Seconds are compared, not pictures: a shadow or a turn makes a few of them
odd. Their excess over what is usual is summed up (CUSUM, Page, 1954), so that small ones that
last count as large ones do.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from mmedge_ros.data_types import NS_PER_S, OF_WHOLE_PICTURE, Appearance, FloatArray
from mmedge_ros.encoding.usual_pictures import (
    DISTANCE,
    FLICKER,
    VEIL,
    Bounds,
    UsualPictures,
    logs_of,
)

# A clock that steps back by more than a late picture does begins anew.
_LATE = 2
# Turns and clouds change the brightness as a parabola within a second, and flicker does not.
_DEGREE = 2
_FEWEST_FOR_FLICKER = 5
_MOST_PICTURES = 1000
# A second counts as so many limits at most: nothing is known by one second alone.
_MOST_EXCESS = 1.5
# An alarm ends at the latest after so many usual seconds for each that it took to come.
_MOST_SUM = 2.0
_BEGIN = "pictures are unlike the calibration flights'"


class Second(NamedTuple):
    """One second of pictures: ``look`` (12,) as `Appearance`, and how much brightness flickers.

    ``flicker`` is the deviation of the logarithm from a parabola; NaN for too few pictures.
    """

    look: FloatArray
    flicker: float


def second_of(stamps_ns: list[int], appearances: list[Appearance]) -> Second:
    """Return what the pictures of a second have in common."""
    logs = logs_of(np.array(appearances, np.float64))
    return Second(np.exp(logs.mean(axis=0)), _flicker(stamps_ns, logs[:, 0]))


def _flicker(stamps_ns: list[int], brightness: FloatArray) -> float:
    freedom = len(stamps_ns) - _DEGREE - 1
    if len(stamps_ns) < _FEWEST_FOR_FLICKER:
        return math.nan
    times = (np.array(stamps_ns) - stamps_ns[0]) / NS_PER_S
    powers = np.vander(times, _DEGREE + 1)
    left = brightness - powers @ np.linalg.lstsq(powers, brightness, rcond=None)[0]
    return math.sqrt(float(left @ left) / freedom)


def values_of(second: Second, usual: UsualPictures) -> dict[str, float]:
    """Return what of a second is compared with bounds."""
    values = {DISTANCE: usual.distance(second.look), FLICKER: second.flicker}
    if usual.veil is not None:
        values[VEIL] = usual.veil.probability(second.look)
    return values


@dataclass
class Excess:
    """Sums up by how much a value is above its limit; it ``is_on`` from the alarm to zero."""

    bounds: Bounds
    sum: float = 0.0
    is_on: bool = False

    def take(self, value: float) -> bool:
        """Take the value of a second; returns whether the alarm begins now."""
        if math.isnan(value):
            return False
        above = min(value / self.bounds.limit - 1.0, _MOST_EXCESS)
        self.sum = min(max(self.sum + above, 0.0), _MOST_SUM * self.bounds.alarm)
        begins = not self.is_on and self.sum >= self.bounds.alarm
        self.is_on = begins or (self.is_on and self.sum > 0.0)
        return begins


@dataclass
class PictureDrift:
    """Follows the pictures of one flight.

    ``words`` say what is unlike; they stay as they are until it is over. ``alarms`` counts.
    """

    usual: UsualPictures
    words: tuple[str, ...] = ()
    alarms: int = 0
    sums: dict[str, Excess] = field(init=False)

    def __post_init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget all pictures."""
        self.sums = {name: Excess(bounds) for name, bounds in self.usual.bounds.items()}
        self.words = ()
        self._begin_second(0)

    def take(self, stamp_ns: int, appearance: Appearance) -> None:
        """Take a picture; one that was measured before the present second comes too late."""
        if not all(map(math.isfinite, appearance[:OF_WHOLE_PICTURE])):
            return
        number = stamp_ns // NS_PER_S
        if number != self._number:
            if number + _LATE < self._number:
                self.reset()
            elif number < self._number:
                return
            self._end_second()
            self._begin_second(number)
        if len(self._stamps_ns) < _MOST_PICTURES:
            self._stamps_ns.append(stamp_ns)
            self._appearances.append(appearance)

    def take_second(self, second: Second) -> None:
        """Take a whole second."""
        values = values_of(second, self.usual)
        begun = [name for name, value in values.items() if self.sums[name].take(value)]
        # Of several reasons the first is given: the words of an alarm do not change.
        if begun and not self.words:
            self.alarms += 1
            self.words = (
                f'{_BEGIN}: {self._what(begun[0], second)}, so that people may be missed',
            )
        if not any(excess.is_on for excess in self.sums.values()):
            self.words = ()

    def _what(self, name: str, second: Second) -> str:
        if name == DISTANCE:
            return self.usual.difference(second.look)
        if name == VEIL:
            return 'they look as behind fog, haze or a dirty lens'
        usually = 100.0 * self.usual.bounds[FLICKER].limit
        return (
            f'brightness flickers by {100.0 * second.flicker:.0f} %, usually by less than '
            f'{usually:.0f} %'
        )

    def _begin_second(self, number: int) -> None:
        self._number = number
        self._stamps_ns: list[int] = []
        self._appearances: list[Appearance] = []

    def _end_second(self) -> None:
        if self._stamps_ns:
            self.take_second(second_of(self._stamps_ns, self._appearances))
