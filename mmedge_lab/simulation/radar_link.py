"""What a board and its chirps make of an echo: link budget, antenna elements, thresholds.

Radar equation: C. Iovescu and S. Rao, "The fundamentals of millimeter wave radar sensors", TI.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from mmedge_ros.core.data_types import FloatArray
from mmedge_ros.sensing.radar.chirp_commands import Command, Dialect
from mmedge_ros.sensing.radar.chirp_configuration import SPEED_OF_LIGHT, ChirpConfiguration
from mmedge_ros.sensing.radar.chirp_rules import last_of

_TRANSMITTED = 12.0 - 30.0  # dBW of one transmitter: data sheets of all four chips
_THERMAL = 10.0 * math.log10(1.380649e-23 * 300.0)  # dB of W/Hz
# Between bins of both spectra on average 1 dB, radome 1.5 dB, fixed point and ageing 2.5 dB. What
# the window functions lose is not in it: the spectra have them.
_LOSS = 5.0
# Patches shine a little to all sides.
_LARGEST_LOSS = 20.0


class Board(NamedTuple):
    """``gain`` dBi of one antenna, where it is 6 dB down (rad), ``noise`` figure in dB.

    ``most`` is how many points the demo keeps.
    """

    gain: float
    azimuth: float
    elevation: float
    noise: float
    most: int


_WIDE, _HIGH = math.radians(50.0), math.radians(20.0)
# Data sheets (noise at 77-81 and 60-64 GHz) and user's guides of the BOOST and ISK boards; sizes
# of the lists as in the demos of SDK 2 and 3.
_BOARDS = {
    'xWR14': Board(10.5, _WIDE, _HIGH, 15.0, 100),
    'xWR16': Board(9.0, _WIDE, _HIGH, 15.0, 100),
    'xWR18': Board(10.5, _WIDE, _HIGH, 15.0, 500),
    'xWR68': Board(7.0, math.radians(60.0), _HIGH, 12.0, 500),
}
# Elements in half wavelengths to the left, and up, of each transmitter's bit: TX1 and TX3 make one
# row of eight (TX1 and TX2 where there are two), TX2 an upper row of four over its middle.
_PLACES = {2: {1: (0, 0), 2: (4, 0)}, 3: {1: (0, 0), 4: (4, 0), 2: (2, 1)}}


class Threshold(NamedTuple):
    """A CFAR pass along range (``axis`` 0) or Doppler (1), in cells and ``decibel``.

    ``mode`` 0 averages both sides, 1 takes the greater, 2 the smaller.
    """

    axis: int
    mode: int
    window: int
    guard: int
    cyclic: bool
    decibel: float


class RadarLink:
    """A board that runs these chirps. Range and Doppler bins are those of its spectra."""

    def __init__(self, chirps: ChirpConfiguration) -> None:
        self.chirps = chirps
        self.board = _BOARDS.get(chirps.platform[:5], _BOARDS['xWR18'])
        self.shape = (chirps.range_bins, chirps.velocity_bins)
        wavelength = SPEED_OF_LIGHT / chirps.profile.centre_frequency
        sampled = chirps.chirps_per_transmitter * chirps.profile.sampling_time
        # Power over noise of 1 m^2 at 1 m in one bin of one pair of antennas, dB.
        self.snr_at_1m = (
            _TRANSMITTED
            + 2.0 * self.board.gain
            + 10.0 * math.log10(wavelength**2 * sampled / (4.0 * math.pi) ** 3)
            - (_THERMAL + self.board.noise + _LOSS)
        )
        self._elements(wavelength)
        self._limits()
        self.thresholds = tuple(self._threshold(c) for c in self._all('cfarCfg'))

    def power(self, reflectivity: FloatArray, distance: FloatArray, ray: FloatArray) -> FloatArray:
        """Return mean power over noise (N,) of m^2 at m; ``ray`` (N, 3) in radar axes."""
        azimuth = np.arctan2(ray[:, 1], ray[:, 0])
        elevation = np.arcsin(np.clip(ray[:, 2], -1.0, 1.0))
        loss = 6.0 * (
            (azimuth / self.board.azimuth) ** 2 + (elevation / self.board.elevation) ** 2
        )
        gain = self.snr_at_1m - 2.0 * np.minimum(loss, _LARGEST_LOSS)
        return np.asarray(reflectivity * 10.0 ** (0.1 * gain) / np.maximum(distance, 0.02) ** 4)

    def _elements(self, wavelength: float) -> None:
        """Set the columns (A,) and rows of the elements, and the phase per m/s when each hears."""
        masks = [int(c.numbers[7]) for c in self._all('chirpCfg')][
            : self.chirps.frame.transmitters
        ]
        places = _PLACES.get(len(masks), {})
        first = [places.get(mask, (0, 0)) for mask in masks]
        count = self.chirps.receivers
        self.columns = np.concatenate([column + np.arange(count) for column, _ in first])
        self.rows = np.repeat([row for _, row in first], count)
        self.antennas = len(self.columns)
        turn = 4.0 * math.pi / wavelength * self.chirps.chirp_time
        self.phase_rate = turn * np.repeat(np.arange(len(masks)), count)

    def _limits(self) -> None:
        """Set the bins, speeds and direction cosines that are sent, and how many points."""
        chirps, last = self.chirps, self.shape[0] - 1
        reach, speed = (0.0, last * chirps.range_step), (-math.inf, math.inf)
        for command in self._all('cfarFovCfg'):
            limits = command.numbers[-2], command.numbers[-1]
            reach, speed = (limits, speed) if command.numbers[-3] == 0 else (reach, limits)
        for command in self._all('peakGrouping'):
            last = min(last, int(command.numbers[-1]))
        self.reach = (reach[0], min(reach[1], last * chirps.range_step))
        self.speeds = speed
        sides = [command.numbers[-4:] for command in self._all('aoaFovCfg')] or [
            (-90, 90, -90, 90)
        ]
        self.sides = np.sin(np.radians(sides[-1]))
        second = last_of(chirps.commands, 'multiObjBeamForming', chirps.source).numbers
        self.second_peak = second[-1] if second[-2] else math.inf
        fit = [n for n in range(self.board.most) if self._fits(n)]
        self.most = max(fit, default=0)
        grouping = [c.numbers[-4:-2] for c in self._all('peakGrouping')]
        cfar = [c.numbers for c in self._all('cfarCfg')]
        if not grouping and chirps.dialect is Dialect.SDK_3:
            grouping = [(cfar[0][-1], cfar[-1][-1])]
        self.grouping = grouping[-1] if grouping else (0.0, 0.0)

    def _fits(self, points: int) -> bool:
        return self.chirps.active_time + self.chirps.uart_time(points) <= self.chirps.period

    def _threshold(self, command: Command) -> Threshold:
        """Read cfarCfg: decibels in SDK 3.4, before that log2 of amplitude in fixed point.

        On chips with the accelerator 512 of these are 6 dB; the others sum over all antennas.
        """
        first = 0 if self.chirps.dialect is Dialect.PLAIN else 1
        axis, mode, window, guard, _, cyclic, level = command.numbers[first : first + 7]
        antennas = len(self.columns)
        if self.chirps.dialect is not Dialect.SDK_3 or level > 100.0:
            summed = self.board is _BOARDS['xWR16']
            level *= 6.0 / (256.0 * antennas if summed else 512.0)
        return Threshold(int(axis), int(mode), int(window), int(guard), cyclic != 0, level)

    def _all(self, name: str) -> list[Command]:
        return [command for command in self.chirps.commands if command.name == name]
