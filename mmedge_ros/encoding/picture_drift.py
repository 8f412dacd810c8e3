"""Notices pictures that are unlike those of the calibration flights: fog, a dirty lens, flicker.

A network that has never seen such pictures misses people without a word. What is compared is
the appearance of each picture, which the encoder measures: brightness, contrast and sharpness.
Seconds are compared, not pictures: a shadow or a turn makes a few of them odd. Their excess over
what is usual is summed up (CUSUM, Page, 1954), so that small ones that last count as large ones
do.

What is usual is in ``usual_pictures.yaml`` beside the manifest, made by
`mmedge lab train fit pictures`::

    distance: {limit: 0.51, alarm: 4.2}
    flicker: {limit: 0.031, alarm: 6.0}
    pictures: |
      0.4812 0.1361 0.1412
      ...

A line is a second: brightness, contrast and sharpness (`Appearance`), geometric means over its
pictures. ``limit`` is what a value usually stays below, and ``alarm`` the sum of excesses, each a
share of the limit, from which on it is not by chance.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mmedge_ros.core.data_types import NS_PER_S, Appearance, FloatArray
from mmedge_ros.core.untrusted_files import PlainYamlError, is_number, load_plain_yaml, shown
from mmedge_ros.encoding import EncodingError

PICTURES_FILE = 'usual_pictures.yaml'
DISTANCE, FLICKER = 'distance', 'flicker'
_NAMES = Appearance._fields
_LARGEST_FILE = 1 << 20
_FEWEST, _MOST = 20, 10_000
_TINY, _LARGEST = 1e-12, 1e3
# Below it a value says no more than zero does.
_LEAST = 1e-3
# A single second of another flight is no company.
_NEIGHBOUR = 3
# Of so many in like light something is usual.
_IN_LIKE_LIGHT = 50
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


class Bounds(NamedTuple):
    """What a value usually stays below, and how much more is an alarm, in such limits."""

    limit: float
    alarm: float


class UsualPictures:
    """The seconds of calibration flights; measures how far from them another one is.

    :param seconds: (N, 3) brightness, contrast and sharpness
    :param bounds: of distance and flicker
    """

    def __init__(self, seconds: FloatArray, bounds: Mapping[str, Bounds]) -> None:
        self.seconds = seconds
        self.bounds = bounds
        logs = logs_of(seconds)
        self._scale = 1.0 / np.maximum(logs.std(axis=0), _LEAST)
        self._points = logs * self._scale

    def distance(self, second: FloatArray) -> float:
        """Return how far a second (3,) is from the third nearest of these.

        In standard deviations of the logarithms.
        """
        away: FloatArray = self._points - logs_of(second) * self._scale
        squares: FloatArray = (away * away).sum(axis=1)
        return math.sqrt(float(np.partition(squares, _NEIGHBOUR - 1)[_NEIGHBOUR - 1]))

    def difference(self, second: FloatArray) -> str:
        """Say what of a second (3,) is most unlike these, beside what is usual."""
        like = np.argsort(np.abs(self._points[:, 0] - logs_of(second)[0] * self._scale[0]))
        usual = np.exp(np.median(logs_of(self.seconds[like[:_IN_LIKE_LIGHT]]), axis=0))
        ratios = np.log(np.maximum(second, _LEAST) / np.maximum(usual, _LEAST))
        most = int(np.argmax(np.abs(ratios * self._scale)))
        words = f'{_NAMES[most]} is {math.exp(ratios[most]):.2g} of the usual'
        return words if most == 0 else f'{words} in such light'


def logs_of(seconds: FloatArray) -> FloatArray:
    """Return logarithms of values that may be zero."""
    return np.asarray(np.log(np.maximum(seconds, _LEAST)), np.float64)


def read_usual_pictures(bundle: Path) -> UsualPictures | None:
    """Read what a bundle knows of the pictures of its calibration flights; None if nothing.

    :raises EncodingError: if the file is wrong
    """
    path = bundle / PICTURES_FILE
    if not path.exists():
        return None
    try:
        content: Any = load_plain_yaml(path, _LARGEST_FILE)
    except PlainYamlError as err:
        raise EncodingError(str(err)) from err
    bounds = {name: _bounds(path, name, content.get(name)) for name in (DISTANCE, FLICKER)}
    return UsualPictures(_seconds(path, content.get('pictures')), bounds)


def usual_pictures_text(usual: UsualPictures, about: Sequence[str]) -> str:
    """Return what `read_usual_pictures` reads, with lines ``about`` it at the top."""
    lines = [f'# {line}' for line in about]
    for name, (limit, alarm) in usual.bounds.items():
        lines.append(f'{name}: {{limit: {limit:.4g}, alarm: {alarm:.4g}}}')
    lines.append('pictures: |')
    lines += ['  ' + ' '.join(f'{value:.4f}' for value in row) for row in usual.seconds]
    return '\n'.join(lines) + '\n'


def _bounds(path: Path, name: str, entry: Any) -> Bounds:
    values = [entry.get(key) if isinstance(entry, Mapping) else None for key in Bounds._fields]
    if not all(is_number(value, _TINY, _LARGEST) for value in values):
        raise EncodingError(
            f'{path} has {name} {shown(entry)}; it must be {{limit: ..., alarm: ...}}, both above '
            f'0 and at most {_LARGEST:g}; make it again with `mmedge lab train fit pictures`'
        )
    return Bounds(*(float(value) for value in values if value is not None))


def _seconds(path: Path, text: Any) -> FloatArray:
    try:
        lines = text.splitlines() if isinstance(text, str) else []
        rows = np.array([[float(word) for word in line.split()] for line in lines], np.float64)
    except ValueError:  # one is no number, or lines have different lengths
        rows = np.zeros(0)
    fits = rows.ndim == 2 and rows.shape[1] == len(_NAMES) and _FEWEST <= len(rows) <= _MOST
    if not fits or not (np.isfinite(rows).all() and (rows >= 0.0).all() and rows.max() < _LARGEST):
        raise EncodingError(
            f'{path} has pictures {shown(text)}; it must be {_FEWEST} to {_MOST} lines of '
            f'{len(_NAMES)} numbers; make it again with `mmedge lab train fit pictures`'
        )
    return np.asarray(rows)


class Second(NamedTuple):
    """One second of pictures: ``look`` (3,) as `Appearance`, and how much brightness flickers.

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
        if not all(map(math.isfinite, appearance)):
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
        values = {DISTANCE: self.usual.distance(second.look), FLICKER: second.flicker}
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
